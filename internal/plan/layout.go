package plan

import "github.com/tether-sandbox/tether/policy"

// tmp is where the private folder for temporary files lies, where it can be shown
// at another path than its own.
const tmp = "/tmp"

// Layout says where a system has what. It is a table and touches no file, so
// that a plan for one system can be made, from a tree that looks like it, on
// another.
type Layout struct {
	// Roots are the folders and files of the system that are shown, as far as
	// they exist; a link among them stays a link.
	Roots []string
	// Links are links at the top that stay where only listed roots are shown.
	Links []string
	// Holes are the parts of them that hold other people's or other programs'
	// private state, or their sockets.
	Holes []string
	// Linker is what the dynamic linker needs to start a program at all.
	Linker []string
	// Wide are folders that hold so much that a sandbox around them would
	// protect nothing, or that cannot be written sensibly at all; in Never there
	// is no place for a workspace.
	Wide, Never []string
	// Made are the folders that are made anew inside. A view of the host's in
	// their place would undo them, and one around them leave them no place.
	Made []string
	// Private is where Tether's own files for the command lie, Tmp the folder
	// for temporary files, VarTmp another one that programs write by its name.
	Private, Tmp, VarTmp string
	// InPlace says that nothing can be shown at another path than its own.
	InPlace bool
}

// own is a path in Private.
func (l *Layout) own(name string) string { return l.Private + "/" + name }

// in puts what is private to a command into a folder of its run.
func (l *Layout) in(run string) *Layout {
	here := *l
	here.Private, here.Tmp = run, run+"/tmp"
	return &here
}

// Below is the layout of a tree that looks like a whole system and lies in dir.
func (l *Layout) Below(dir string) *Layout {
	here := *l
	for _, list := range []*[]string{&here.Roots, &here.Links, &here.Holes, &here.Linker, &here.Wide, &here.Never, &here.Made} {
		moved := make([]string, 0, len(*list))
		for _, path := range *list {
			if path == "/" {
				path = ""
			}
			moved = append(moved, dir+path)
		}
		*list = moved
	}
	return &here
}

// Linux is the layout of Linux.
func Linux() *Layout {
	return &Layout{
		// /sys is not a root of the policy: it is the machine's own, and read-only
		// whatever it says.
		Roots: append(policy.SystemRoots(), "/sys"),
		Links: []string{"/bin", "/sbin"},
		// /var/tmp gets a private folder.
		Holes: []string{"/var/run", "/var/lock", "/var/spool", "/var/mail", "/var/backups", "/var/crash",
			"/var/cache/private", "/var/lib/private", "/var/lib/systemd/coredump", "/var/lib/docker", "/var/lib/containerd",
			"/var/lib/containers"},
		Linker: []string{"/lib", "/lib32", "/lib64", "/libx32", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libx32",
			"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d"},
		Wide: []string{"/", "/home", "/root", "/usr", "/bin", "/sbin", "/lib", "/etc", "/opt", "/var", "/tmp",
			"/var/tmp", "/run", "/run/user", "/boot", "/mnt", "/media", "/srv", "/nix", "/gnu", "/data",
			// Below /usr and /var as well, what every program of the machine uses: root could change it.
			"/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec", "/usr/share", "/usr/local", "/usr/local/bin",
			"/usr/local/sbin", "/usr/local/lib", "/usr/local/share", "/var/lib", "/var/log", "/var/cache"},
		Never:   []string{"/proc", "/sys", "/dev"},
		Made:    []string{"/proc", "/dev", "/sys", Private},
		Private: Private, Tmp: tmp, VarTmp: "/var/tmp",
	}
}

// Mac is the layout of macOS. /tmp, /var and /etc are links into /private.
func Mac() *Layout {
	return &Layout{
		Roots: []string{"/tmp", "/var", "/etc", "/usr", "/bin", "/sbin", "/System", "/Library", "/nix",
			// The loader's caches lie on another volume.
			"/System/Volumes/Preboot/Cryptexes", "/private/var/db/dyld",
			"/private/etc", "/private/var/db/timezone",
			// Which shell /bin/sh is, and which developer tools /usr/bin/git is.
			"/private/var/select", "/private/var/db/xcode_select_link", "/Applications/Xcode.app/Contents/Developer",
			// Homebrew without its state: var, and of etc all but certificates.
			"/opt/homebrew/bin", "/opt/homebrew/lib", "/opt/homebrew/opt", "/opt/homebrew/Cellar", "/opt/homebrew/share",
			"/opt/homebrew/etc/ca-certificates", "/opt/homebrew/etc/openssl@3"},
		Links: []string{"/tmp", "/var", "/etc", "/private/var/select/sh"},
		// /System/Volumes/Data is a second way to everything, homes included.
		Holes: []string{"/System/Volumes", "/Library/Keychains", "/Library/Logs", "/Library/Caches",
			"/Library/Application Support", "/Library/Preferences", "/usr/local/var"},
		Linker: []string{"/usr/lib", "/System/Library", "/System/Volumes/Preboot/Cryptexes", "/private/var/db/dyld"},
		Wide: []string{"/", "/Users", "/Users/Shared", "/System", "/Library", "/Applications", "/Volumes", "/Network", "/home", "/cores",
			"/private", "/private/etc", "/private/var", "/private/var/folders", "/private/var/root", "/private/var/tmp", "/private/tmp",
			"/usr", "/usr/local", "/bin", "/sbin", "/opt", "/opt/homebrew", "/nix"},
		Never:   []string{"/dev", "/System"},
		Made:    []string{"/dev", "/System/Volumes"},
		InPlace: true,
	}
}
