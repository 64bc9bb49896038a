package redact

// How much is read of protected files, in all and of each.
const (
	maxFiles     = 2048
	maxFileBytes = 64 << 10
	maxBytes     = 8 << 20
)

// Source is a protected file whose content is secret, or a folder whose files
// are.
type Source struct {
	Path string
	// Dev and Ino identify it; something else at that path is not read.
	// Zero takes what is there.
	Dev, Ino uint64
}
