package filegate

import (
	"bytes"
	"encoding/binary"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Encoding is how a file's bytes stand for text.
type Encoding string

// The encodings.
const (
	UTF8    Encoding = "utf-8"
	UTF8BOM Encoding = "utf-8-bom"
	UTF16LE Encoding = "utf-16le" // with its byte order mark
	UTF16BE Encoding = "utf-16be" // with its byte order mark
	// Latin1 is a guess for text in some 8-bit encoding. Each byte is one
	// character, so that what was viewed can be replaced again.
	Latin1 Encoding = "latin-1"
	Binary Encoding = "binary"
)

// LineEnd says how lines end.
type LineEnd string

// The line ends.
const (
	NoLineEnd LineEnd = ""
	LF        LineEnd = "lf"
	CRLF      LineEnd = "crlf"
	Mixed     LineEnd = "mixed"
)

const (
	bomUTF8 = "\xef\xbb\xbf"
	bomLE   = "\xff\xfe"
	bomBE   = "\xfe\xff"
)

// detect says how raw is encoded. cut means that raw is the beginning of more,
// so that its last character may be incomplete.
func detect(raw []byte, cut bool) Encoding {
	switch {
	case bytes.HasPrefix(raw, []byte(bomLE)) && (cut || len(raw)%2 == 0):
		return UTF16LE
	case bytes.HasPrefix(raw, []byte(bomBE)) && (cut || len(raw)%2 == 0):
		return UTF16BE
	case bytes.IndexByte(raw, 0) >= 0:
		return Binary
	}
	enc := UTF8
	if bytes.HasPrefix(raw, []byte(bomUTF8)) {
		enc = UTF8BOM
	}
	whole := raw
	if cut {
		whole = wholeRunes(raw)
	}
	if utf8.Valid(whole) {
		return enc
	}
	strange := 0
	for _, c := range raw {
		if c < ' ' && (c < '\b' || c > '\r') && c != 0x1b || c == 0x7f {
			strange++
		}
	}
	if strange > len(raw)/64 {
		return Binary
	}
	return Latin1
}

// wholeRunes drops what is left of a rune that was cut off at the end.
func wholeRunes(b []byte) []byte {
	for i := len(b) - 1; i >= 0 && i >= len(b)-utf8.UTFMax; i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				return b[:i]
			}
			break
		}
	}
	return b
}

// decode returns raw as UTF-8, without a byte order mark. cut is as in detect.
func decode(raw []byte, enc Encoding, cut bool) string {
	switch enc {
	case UTF8, UTF8BOM:
		if cut {
			raw = wholeRunes(raw)
		}
		return string(bytes.TrimPrefix(raw, []byte(bomUTF8)))
	case UTF16LE, UTF16BE:
		order := byteOrder(enc)
		units := make([]uint16, 0, len(raw)/2)
		for i := 2; i+1 < len(raw); i += 2 {
			units = append(units, order.Uint16(raw[i:]))
		}
		return string(utf16.Decode(units))
	case Latin1:
		var b strings.Builder
		b.Grow(len(raw) + len(raw)/8)
		for _, c := range raw {
			b.WriteRune(rune(c))
		}
		return b.String()
	}
	return ""
}

// encode returns text in an encoding, without a byte order mark, and false if
// it cannot be written in it.
func encode(text string, enc Encoding) ([]byte, bool) {
	switch enc {
	case UTF8, UTF8BOM:
		return []byte(text), true
	case UTF16LE, UTF16BE:
		order, out := byteOrder(enc), make([]byte, 0, 2*len(text))
		for _, u := range utf16.Encode([]rune(text)) {
			out = order.AppendUint16(out, u)
		}
		return out, true
	case Latin1:
		out := make([]byte, 0, len(text))
		for _, r := range text {
			if r > 0xff {
				return nil, false
			}
			out = append(out, byte(r))
		}
		return out, true
	}
	return nil, false
}

type order interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

func byteOrder(enc Encoding) order {
	if enc == UTF16BE {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

// lineEnd says how the lines of a text end.
func lineEnd(text string) LineEnd {
	lf, crlf := strings.Count(text, "\n"), strings.Count(text, "\r\n")
	switch {
	case lf == 0:
		return NoLineEnd
	case crlf == 0:
		return LF
	case crlf == lf:
		return CRLF
	}
	return Mixed
}

// withLF ends lines in LF.
func withLF(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }

// countLines counts lines; one that is not ended counts.
func countLines(text string) int {
	n := strings.Count(text, "\n")
	if text != "" && text[len(text)-1] != '\n' {
		n++
	}
	return n
}

// lineRange returns lines first to last of a text, as far as they fit in most
// bytes: at least a part of the first. end is the last line that is in it, cut
// says that something asked for is missing.
func lineRange(text string, first, last, most int) (part string, end int, cut bool) {
	at := 0
	for range first - 1 {
		i := strings.IndexByte(text[at:], '\n')
		if i < 0 {
			return "", 0, false
		}
		at += i + 1
	}
	if at == len(text) {
		return "", 0, false
	}
	to := at
	for line := first; line <= last && to < len(text); line++ {
		next := len(text)
		if i := strings.IndexByte(text[to:], '\n'); i >= 0 {
			next = to + i + 1
		}
		if next-at > most {
			if line > first {
				return text[at:to], line - 1, true
			}
			return string(wholeRunes([]byte(text[at : at+most]))), line, true
		}
		to, end = next, line
	}
	return text[at:to], end, false
}
