//go:build !linux

package need

import "time"

// Spent is how long f took.
func Spent(f func()) time.Duration {
	begin := time.Now()
	f()
	return time.Since(begin)
}
