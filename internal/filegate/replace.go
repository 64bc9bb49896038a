package filegate

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tether-sandbox/tether/fault"
)

// replaced is the outcome of replacing text in a file's bytes.
type replaced struct {
	raw      []byte
	count    int
	lines    []int
	encoding Encoding
	lineEnd  LineEnd
}

// maxShown is how many places an answer names.
const maxShown = 10

// replace puts text in place of old in raw. Every byte outside of the matches
// stays as it is. See [ReplaceRequest] for what is asked of old.
func replace(raw []byte, r *ReplaceRequest, limit int64) (replaced, error) {
	switch {
	case r.Old == "":
		return replaced{}, invalid("the text to replace is empty", "write a new file instead, or give text that occurs in it")
	case r.Old == r.New:
		return replaced{}, invalid("the text and what replaces it are the same", "")
	case !utf8.ValidString(r.New):
		return replaced{}, invalid("the new text is not UTF-8", "")
	}
	out := replaced{encoding: detect(raw, false)}
	if out.encoding == Binary {
		return replaced{}, unfit(r.Path, "is binary, so no text in it can be replaced", "write the whole file, or run a command")
	}
	text := decode(raw, out.encoding, false)
	out.lineEnd = lineEnd(text)
	from, to := r.Old, r.New
	if out.lineEnd == CRLF {
		from, to = withCRLF(from), withCRLF(to)
	}
	old, fits := encode(from, out.encoding)
	if !fits {
		return replaced{}, missing(r, text)
	}
	text2, fits := encode(to, out.encoding)
	if !fits {
		return replaced{}, unfit(r.Path, "is in an 8-bit encoding that has no place for a character of the new text", "write the whole file in UTF-8")
	}
	width := 1
	if out.encoding == UTF16LE || out.encoding == UTF16BE {
		width = 2
	}
	places := find(raw, old, width, r.All)
	if len(places) == 0 {
		return replaced{}, missing(r, text)
	}
	out.count = len(places)
	out.lines = linesOf(raw, places, out.encoding)
	if len(places) > 1 && !r.All {
		return replaced{}, mismatch(r.Path, fmt.Sprintf("holds the text %s, at lines %s", times(len(places)), numbers(out.lines, len(places))),
			"give more of what stands around it, so that it occurs once, or replace all")
	}
	size := int64(len(raw)) + int64(len(places))*int64(len(text2)-len(old))
	if size > limit {
		return replaced{}, unfit(r.Path, "would grow to "+strconv.FormatInt(size, 10)+" bytes, more than a file may have here", "")
	}
	out.raw = make([]byte, 0, size)
	at := 0
	for _, p := range places {
		out.raw = append(append(out.raw, raw[at:p]...), text2...)
		at = p + len(old)
	}
	out.raw = append(out.raw, raw[at:]...)
	return out, nil
}

// maxPlaces is where counting ends when the text has to occur once.
const maxPlaces = 10_000

// find returns where old begins in raw, at multiples of width. For all of them
// they do not overlap; otherwise they may, since then, too, it is not clear
// which one is meant.
func find(raw, old []byte, width int, all bool) []int {
	var places []int
	for at := 0; at+len(old) <= len(raw); {
		i := bytes.Index(raw[at:], old)
		if i < 0 {
			break
		}
		at += i
		if at%width != 0 {
			at++
			continue
		}
		places = append(places, at)
		switch {
		case all:
			at += len(old)
		case len(places) == maxPlaces:
			return places
		default:
			at += width
		}
	}
	return places
}

// withCRLF ends lines in CRLF, also those that do so already.
func withCRLF(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\n", "\r\n")
}

// linesOf returns the lines, from 1, of the first places.
func linesOf(raw []byte, places []int, enc Encoding) []int {
	var lines []int
	line, at := 1, 0
	for _, p := range places[:min(len(places), maxShown)] {
		switch enc {
		case UTF16LE, UTF16BE:
			for order := byteOrder(enc); at < p; at += 2 {
				if order.Uint16(raw[at:]) == '\n' {
					line++
				}
			}
		default:
			line += bytes.Count(raw[at:p], []byte{'\n'})
			at = p
		}
		lines = append(lines, line)
	}
	return lines
}

// missing says that the text does not occur, and where it nearly does.
func missing(r *ReplaceRequest, text string) error {
	hint := "view the file: it may have changed, and white space counts"
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if near := strings.TrimSpace(strings.ReplaceAll(r.Old, "\r\n", "\n")); near != "" {
		if i := strings.Index(text, near); i >= 0 {
			hint = "without the white space around it, it occurs at line " + strconv.Itoa(1+strings.Count(text[:i], "\n"))
		} else if first, _, more := strings.Cut(near, "\n"); more {
			if i := strings.Index(text, first); i >= 0 {
				hint = "its first line occurs at line " + strconv.Itoa(1+strings.Count(text[:i], "\n")) + "; what follows differs"
			}
		}
	}
	return fault.New(fault.FileMismatch, quote(r.Path)+" does not hold the text").WithHint(hint)
}

func times(n int) string {
	if n == maxPlaces {
		return "at least " + strconv.Itoa(n) + " times"
	}
	return strconv.Itoa(n) + " times"
}

func numbers(lines []int, all int) string {
	var b strings.Builder
	for i, n := range lines {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strconv.Itoa(n))
	}
	if all > len(lines) {
		b.WriteString(", ...")
	}
	return b.String()
}
