package enforce

import "time"

// Shortest is the least time between two looks at what a command has used.
const Shortest = 10 * time.Millisecond

// Pace is how long to wait before what a command uses of the processors is looked
// at again: until the limit can be met at the earliest, with every processor busy
// for it. It is at least [Shortest], and twenty times as long as a look takes; at
// most a second, since more processors may come to be used than are known.
func Pace(left time.Duration, processors int, look time.Duration) time.Duration {
	wait := min(left/time.Duration(max(processors, 1)), time.Second)
	return max(wait, Shortest, 20*look)
}
