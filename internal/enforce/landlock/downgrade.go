package landlock

import "fmt"

// Missing is something that a ruleset asks for and an ABI does not have.
type Missing struct {
	// What is a stable word for it.
	What string
	// ABI and Kernel are the first versions that have it.
	ABI    int
	Kernel string
	// Stricter says that its lack makes the walls refuse more than was asked,
	// instead of less.
	Stricter bool
	// Effect says what the lack means.
	Effect string
}

// String prints m on one line.
func (m Missing) String() string {
	return fmt.Sprintf("%s needs Landlock ABI %d (Linux %s): %s", m.What, m.ABI, m.Kernel, m.Effect)
}

// feature is something that some ABI added and that can be asked for.
type feature struct {
	Missing
	// asked reports whether a ruleset asks for it.
	asked func(*Ruleset) bool
	// drop takes it out of a ruleset.
	drop func(*Ruleset)
}

// features lists all. The whole of the file rules comes before its parts, which
// nobody asks for once it is gone. ABI 7 and 8 added logging and threads,
// nothing that a ruleset asks for.
func features() []feature {
	right := func(m Missing, bit uint64) feature {
		return feature{m, func(r *Ruleset) bool { return !r.AnyFile && r.lacks&bit == 0 },
			func(r *Ruleset) { r.lacks |= bit }}
	}
	socket := right(Missing{"socket", 9, "7.1", false, "Unix sockets with a path outside stay reachable"}, fsResolveUnix)
	walled := socket.asked
	socket.asked = func(r *Ruleset) bool { return !r.AnySocket && walled(r) }
	return []feature{
		{Missing{"udp", 10, "7.2", false, "any UDP port can be bound and sent to"},
			func(r *Ruleset) bool { return !r.AnyUDP }, func(r *Ruleset) { r.AnyUDP = true }},
		{Missing{"abstract", 6, "6.12", false, "abstract sockets outside stay reachable"},
			func(r *Ruleset) bool { return !r.AnyAbstract }, func(r *Ruleset) { r.AnyAbstract = true }},
		{Missing{"signal", 6, "6.12", false, "processes outside stay open to signals"},
			func(r *Ruleset) bool { return !r.AnySignal }, func(r *Ruleset) { r.AnySignal = true }},
		{Missing{"tcp", 4, "6.7", false, "any TCP port can be bound and connected to"},
			func(r *Ruleset) bool { return !r.AnyTCP },
			func(r *Ruleset) { r.AnyTCP, r.Bind, r.Connect = true, nil, nil }},
		{Missing{"files", 1, "5.13", false, "files are not restricted"},
			func(r *Ruleset) bool { return !r.AnyFile },
			func(r *Ruleset) {
				r.AnyFile, r.lacks = true, 0
				r.Read, r.Exec, r.Write, r.Device, r.List = nil, nil, nil, nil, nil
			}},
		socket,
		right(Missing{"ioctl", 5, "6.10", false, "any device file that can be opened answers ioctl"}, fsIoctlDev),
		right(Missing{"truncate", 3, "6.2", false, "any file can be cut to nothing, whether or not it can be opened for writing"}, fsTruncate),
		right(Missing{"refer", 2, "5.19", true, "renames and links from folder to folder fail with EXDEV"}, fsRefer),
	}
}

// Downgrade returns what is left of r on a kernel with the given ABI, and what
// is not. An ABI of 0 or less has nothing; one from the future has all that
// this package knows. Where the whole is missing its parts are not listed.
//
// Whether what is left suffices is the caller's to decide.
func (r Ruleset) Downgrade(abi int) (Ruleset, []Missing) {
	var missing []Missing
	for _, f := range features() {
		if f.ABI > abi && f.asked(&r) {
			missing = append(missing, f.Missing)
			f.drop(&r)
		}
	}
	return r, missing
}
