package enforce

// Opening is a place that the second wall leaves open to be written to, with
// everything below it.
type Opening struct {
	Path string
	// Devices says that device files there answer ioctl.
	Devices bool
}

// The Landlock versions from which the second wall has its parts.
const (
	// FilesABI is the first under which a wall round files costs nothing but what
	// it is for: before it, every rename from folder to folder fails.
	FilesABI = 2
	// ScopesABI restricts abstract sockets and signals.
	ScopesABI = 6
	// SocketsABI restricts Unix sockets with a path.
	SocketsABI = 9
)

// Openings returns what a second wall, by path, leaves open to be written to in
// the world that steps build. What can be read needs no list: it is the world.
// Walls only open, so that a place that the steps keep read-only inside a
// writable one is not told apart here; the mounts alone hold that.
func Openings(steps []Step) []Opening {
	last := make(map[string]int, len(steps)) // the step that says how a place can be written to
	for i := range steps {
		switch steps[i].Do {
		case Bind, Tmpfs, Devices, Proc, Seal:
			last[steps[i].Dst] = i
		}
	}
	var out []Opening
	for i := range steps {
		s := &steps[i]
		if j, ok := last[s.Dst]; !ok || j != i || s.Do == Seal || s.Flags&ReadOnly != 0 {
			continue
		}
		out = append(out, Opening{Path: s.Dst, Devices: s.Do == Devices})
	}
	return out
}
