package policy

import "bytes"

// Class says whether a base name is one that is hidden by default.
type Class int

// The classes, from strict to open.
const (
	// HiddenAny: hidden as a file and as a directory.
	HiddenAny Class = iota
	// HiddenFile: hidden as anything but a directory. A directory with such a
	// name is an ordinary one (python3 -m venv .env).
	HiddenFile
	// HiddenByContent: as HiddenFile, unless the content turns out public.
	HiddenByContent
	// NotHidden: no built-in rule hides it.
	NotHidden
)

// String names the class for tests and reports.
func (c Class) String() string {
	return spell("Class", c, []word[Class]{
		{"hidden", HiddenAny},
		{"hidden file", HiddenFile},
		{"hidden unless public", HiddenByContent},
		{"not hidden", NotHidden},
	})
}

// HiddenName classifies the base name of a directory entry by the built-in
// rules, without regard to case (see fold for what counts as the same name)
// and to final dots and spaces.
//
//   - .ssh is HiddenAny.
//   - .env* is HiddenFile: everything that begins so, hence also .envrc,
//     which holds secrets as often, and .environment. Not hidden is what ends
//     in .example, .sample, .template or .dist.
//   - id_rsa, id_dsa, id_ecdsa, id_ed25519 (the last two also with _sk),
//     authorized_keys and authorized_keys2 are HiddenFile; their .pub is not.
//   - *.pem and *.key are HiddenByContent.
//   - The side files that editors leave of any of these are classed like the
//     file itself: NAME~, NAME.~1~, .#NAME, #NAME#, .NAME.swp (also .swo,
//     .swn, .swx, and without the first dot) and NAME with .bak, .old, .orig,
//     .save, .backup or .tmp, also several of them.
//
// Not covered, because their names say nothing: free copies (id_rsa-2024,
// "id_rsa (copy)"), random temporary names, swap files in a folder of their
// own, key files with any other name. A name is all that is looked at; links
// and hard links are for the plan to follow.
//
// It allocates nothing: a walk calls it for every entry of a tree.
func HiddenName(name []byte) Class {
	var buf [nameMax]byte
	n := original(trimTail(fold(buf[:0], name)))
	if len(n) < len(".env") {
		return NotHidden
	}
	switch n[0] {
	case '.':
		if string(n) == ".ssh" {
			return HiddenAny
		}
		if string(n[:4]) == ".env" {
			if template(n) {
				return NotHidden
			}
			return HiddenFile
		}
	case 'a', 'i':
		if accessFile(n) {
			return HiddenFile
		}
	}
	if tail := n[len(n)-4:]; string(tail) == ".pem" || string(tail) == ".key" {
		return HiddenByContent
	}
	return NotHidden
}

func template(n []byte) bool {
	switch string(n[bytes.LastIndexByte(n, '.'):]) {
	case ".example", ".sample", ".template", ".dist":
		return true
	}
	return false
}

func accessFile(n []byte) bool {
	switch string(n) {
	case "id_rsa", "id_dsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk",
		"authorized_keys", "authorized_keys2":
		return true
	}
	return false
}

// original takes from a folded name what editors add to it for their side
// files. Each round shortens the name, so it ends.
func original(n []byte) []byte {
	for {
		m := withoutSide(n)
		if len(m) == len(n) {
			return n
		}
		n = trimTail(m)
	}
}

func withoutSide(n []byte) []byte {
	last := len(n) - 1
	if last < 1 {
		return n
	}
	switch {
	case n[last] == '~':
		return withoutNumber(n[:last])
	case n[last] == '#' && n[0] == '#':
		return n[1:last]
	case n[0] == '.' && n[1] == '#':
		return n[2:]
	}
	// The longest extension is .backup; most names are sorted out by the
	// position of their last dot alone.
	dot := last
	for dot >= 0 && last-dot < len(".backup") && n[dot] != '.' {
		dot--
	}
	if dot < 1 || n[dot] != '.' {
		return n
	}
	switch string(n[dot:]) {
	case ".bak", ".old", ".orig", ".save", ".tmp", ".backup":
		return n[:dot]
	case ".swp", ".swo", ".swn", ".swx":
		// vim puts a dot before a name that has none.
		if n[0] == '.' && accessFile(n[1:dot]) {
			return n[1:dot]
		}
		return n[:dot]
	}
	return n
}

// withoutNumber takes the ".~1" from what was NAME.~1~.
func withoutNumber(n []byte) []byte {
	i := len(n)
	for i > 0 && '0' <= n[i-1] && n[i-1] <= '9' {
		i--
	}
	if i < len(n) && i >= 2 && n[i-1] == '~' && n[i-2] == '.' {
		return n[:i-2]
	}
	return n
}
