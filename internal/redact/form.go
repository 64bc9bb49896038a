package redact

import (
	"bytes"
	"encoding/base64"
	"strings"
)

// A value longer than pieceWhole is looked for in pieces that overlap by
// pieceOver bytes, so that a part of it is found, too, and the longest needle,
// and with it what a stream may hold back, stays short.
const (
	pieceWhole = 80
	pieceSize  = 64
	pieceOver  = MinLength
)

// forms calls add with all spellings of a value that are looked for, some of
// them perhaps twice. add must not keep its argument.
func forms(v string, add func(form []byte)) {
	if len(v) <= pieceWhole {
		pieceForms(v, add)
		return
	}
	at := 0
	for ; at+pieceSize < len(v); at += pieceSize - pieceOver {
		pieceForms(v[at:at+pieceSize], add)
	}
	pieceForms(v[len(v)-pieceSize:], add)
}

func pieceForms(v string, add func(form []byte)) {
	var scratch [4 * pieceWhole]byte
	buf := scratch[:0]
	add(append(buf, v...))
	for shift := range 3 {
		// What of the encoding does not depend on what lies before and after.
		// Before v lie shift bytes of a group of three: they take as many
		// characters and a part of the next one.
		var padded [pieceWhole + 2]byte
		n := shift + copy(padded[shift:], v)
		first, last := (shift*8+5)/6, n*8/6
		std := base64.RawStdEncoding.AppendEncode(buf, padded[:n])[first:last]
		add(std)
		if bytes.ContainsAny(std, "+/") {
			add(base64.RawURLEncoding.AppendEncode(buf, padded[:n])[first:last])
		}
	}
	for _, digits := range []string{lowerHex, upperHex} {
		add(inHex(buf, "", v, digits))
		add(inHex(buf, "%", v, digits))
	}
	if strings.ContainsAny(v, "\"\\\n\r\t") {
		add(append(buf, jsonString(v)...))
	}
	if tokenLike(v, "-_.") {
		return // the usual case: nothing is encoded
	}
	// What different encoders leave as it is: RFC 3986, old ones, JavaScript's
	// encodeURIComponent and encodeURI, Python's quote, Go's PathEscape.
	for _, plain := range []string{"-_.~", "-_.", "-_.!~*'()", "-_.!~*'();/?:@&=+$,#", "-_.~/", "-_.~$&+=:@"} {
		add(percent(buf, v, plain, upperHex, false))
		add(percent(buf, v, plain, lowerHex, false))
		add(percent(buf, v, plain, upperHex, true))
	}
}

const (
	upperHex = "0123456789ABCDEF"
	lowerHex = "0123456789abcdef"
)

// percent encodes all of v but letters, digits and the characters of plain.
func percent(b []byte, v, plain, digits string, plus bool) []byte {
	for i := range len(v) {
		switch c := v[i]; {
		case alphanumeral(c) || strings.IndexByte(plain, c) >= 0:
			b = append(b, c)
		case c == ' ' && plus:
			b = append(b, '+')
		default:
			b = append(b, '%', digits[c>>4], digits[c&15])
		}
	}
	return b
}

// inHex encodes every byte of v, with prefix before each.
func inHex(b []byte, prefix, v, digits string) []byte {
	for i := range len(v) {
		b = append(append(b, prefix...), digits[v[i]>>4], digits[v[i]&15])
	}
	return b
}

// jsonString is what stands between the quotes when v is written as JSON.
func jsonString(v string) string {
	return strings.NewReplacer(`"`, `\"`, `\`, `\\`, "\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(v)
}
