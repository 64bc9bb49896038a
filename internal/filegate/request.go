package filegate

// ViewRequest asks for a part of a file, or for what is in a folder.
//
// A path is, in every request, relative to the workspace or absolute in one of
// the roots. It is taken literally: no ~, no variable, no URL.
type ViewRequest struct {
	Path string
	// First and Last are lines, from 1; zero is the first and the last one.
	First, Last int
	// MaxBytes bounds the text; zero and more than MaxText mean MaxText.
	MaxBytes int
}

// ViewResult is what was seen.
type ViewResult struct {
	// Path is relative to the workspace where it lies in it, else absolute;
	// links are resolved.
	Path string `json:"path"`
	// Text is UTF-8. In a file whose lines all end in CRLF they end in LF here.
	Text string `json:"text"`
	// First and Last are the lines that Text holds; zero when it holds none.
	First int `json:"first"`
	Last  int `json:"last"`
	// TotalLines counts the file's lines, or those of its beginning if Partial.
	TotalLines int `json:"total_lines"`
	// Truncated: the text ends before the last line that was asked for.
	Truncated bool `json:"truncated"`
	// Partial: the file is larger than MaxFile; only its beginning was read.
	Partial bool `json:"partial,omitempty"`
	// Encoding and LineEnd are the file's.
	Encoding Encoding `json:"encoding"`
	LineEnd  LineEnd  `json:"line_end"`
	// Size is the file's, in bytes.
	Size int64 `json:"size"`
	// SHA256 is of the whole file as it lies there, in hexadecimal; empty when
	// it was not read whole, or is not shown whole.
	SHA256 string `json:"sha256,omitempty"`
	// Redacted counts the marks in Text, [REDACTED:NAME], that stand for
	// secrets. Package tether sets it.
	Redacted int `json:"redacted,omitempty"`
	// Filtered: credentials were taken out of a git configuration.
	Filtered bool `json:"filtered,omitempty"`
	// Locked: it can be read and not written.
	Locked bool `json:"locked,omitempty"`
	// Folder: Entries lists it, and there is no text.
	Folder  bool    `json:"folder,omitempty"`
	Entries []Entry `json:"entries,omitempty"`
}

// WriteRequest asks for a whole file to be written, with the folders above it.
type WriteRequest struct {
	Path string
	// Text is written as it is, byte by byte.
	Text string
	// IfSHA256, when set, must be the digest of the file as it is before.
	IfSHA256 string
	// New refuses to replace a file that exists.
	New bool
}

// WriteResult is what was written.
type WriteResult struct {
	// Path is as in ViewResult.
	Path string `json:"path"`
	// Created: there was no such file before.
	Created bool `json:"created"`
	// Folders are those that were made on the way.
	Folders []string `json:"folders,omitempty"`
	// Size, in bytes, and SHA256 are the file's as it is now.
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	// InPlace: the file could not be replaced (it is a mount, its folder takes
	// no new file, or its owner could not be kept) and was rewritten where it
	// lies, which a reader may see half done.
	InPlace bool `json:"in_place,omitempty"`
}

// ReplaceRequest asks for a text in a file to be replaced.
type ReplaceRequest struct {
	Path string
	// Old must occur exactly once, or at least once if All is set. In a file
	// whose lines all end in CRLF, line ends of Old and New mean CRLF.
	Old, New string
	All      bool
	// IfSHA256, when set, must be the digest of the file as it is before.
	IfSHA256 string
}

// ReplaceResult is what was replaced.
type ReplaceResult struct {
	// Path is as in ViewResult.
	Path string `json:"path"`
	// Count is how many times, Lines the lines of the first ten.
	Count int   `json:"count"`
	Lines []int `json:"lines"`
	// Encoding and LineEnd are the file's.
	Encoding Encoding `json:"encoding"`
	LineEnd  LineEnd  `json:"line_end"`
	// Size, in bytes, and SHA256 are the file's as it is now.
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	// InPlace is as in WriteResult.
	InPlace bool `json:"in_place,omitempty"`
}

// ListRequest asks for what is in a folder.
type ListRequest struct {
	// Path is the folder; empty is the workspace.
	Path string
	// Depth is how many levels; zero is one.
	Depth int
	// Glob, when set, keeps entries that match: a base name or, with a slash, a
	// path from Path, as in policy.CompilePatterns (without case). Folders are
	// searched whether they match or not.
	Glob string
	// Max bounds the entries; zero and more than MaxEntries mean MaxEntries.
	Max int
}

// EntryType says what an entry is.
type EntryType string

// The types.
const (
	File   EntryType = "file"
	Folder EntryType = "folder"
	Link   EntryType = "link"
	Other  EntryType = "other"
)

// Entry is one name in a folder.
type Entry struct {
	// Path is relative to the workspace where it lies in it, else absolute.
	Path string `json:"path"`
	// Type is file, folder, link or other.
	Type EntryType `json:"type"`
	// Size is in bytes.
	Size int64 `json:"size"`
	// Hidden: it can be neither read nor written. Locked: not written.
	Hidden bool `json:"hidden,omitempty"`
	Locked bool `json:"locked,omitempty"`
}

// ListResult is what is in a folder, by name, parents before children.
type ListResult struct {
	// Path is the folder, as in ViewResult.
	Path string `json:"path"`
	// Entries are in it, or below it as deep as was asked for.
	Entries []Entry `json:"entries"`
	// Truncated: there is more than a bound allowed.
	Truncated bool `json:"truncated"`
}

// SearchRequest asks where a text occurs.
type SearchRequest struct {
	// Path is a folder or a file; empty is the workspace.
	Path string
	// Pattern is a regular expression (Go's regexp, ^ and $ at lines), or with
	// Literal the text itself.
	Pattern    string
	Literal    bool
	IgnoreCase bool
	// Glob keeps files that match, as in ListRequest.
	Glob string
	// Max bounds the matches; zero and more than MaxMatches mean MaxMatches.
	Max int
}

// Match is one line that matches; of several matches in it the first.
type Match struct {
	// Path is as in ViewResult.
	Path string `json:"path"`
	// Line counts from 1.
	Line int `json:"line"`
	// Text is the line, cut at 400 bytes.
	Text string `json:"text"`
}

// SearchResult is where it occurs. Hidden files, binary ones, links and, unless
// the search begins there, git's own folders are not searched.
type SearchResult struct {
	// Matches are the lines, by file.
	Matches []Match `json:"matches"`
	// Files is how many were searched; Binary and Large how many were not,
	// because they are no text or larger than MaxFile.
	Files  int `json:"files"`
	Binary int `json:"binary"`
	Large  int `json:"large"`
	// Redacted counts the marks in Matches; see ViewResult.
	Redacted int `json:"redacted,omitempty"`
	// Truncated: more was there than a bound allowed.
	Truncated bool `json:"truncated"`
}
