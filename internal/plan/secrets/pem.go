package secrets

import (
	"bytes"
	"encoding/base64"
	"strings"
	"unicode/utf8"
)

// maxContent bounds a file whose content is judged; a larger one is hidden.
const maxContent = 4 << 20

// PublicOnly says whether a PEM file holds public material only.
//
// It does when every byte lies in a public block that decodes, a blank line, a
// comment or a short header line, when the word "private" appears nowhere, and
// when there is at most 4 MiB of it. Public blocks are certificates, public
// keys, revocation lists, certificate requests and parameters; each must hold
// exactly the DER structure that its label says, so that a key under a wrong
// label is not public. PKCS#7 and CMS can carry any payload and are not
// public; nor is DER without armour, nor a block with encryption headers.
//
// An empty file, or one with blank lines only, is public: there is nothing in
// it. One that has comments or headers but no block is not.
func PublicOnly(data []byte) bool {
	if len(data) > maxContent || saysPrivate(data) {
		return false
	}
	blocks, other := 0, 0
	for len(data) > 0 {
		line, rest := cutLine(data)
		switch {
		case len(line) == 0:
			data = rest
		case bytes.HasPrefix(line, []byte("-----")):
			after, ok := publicBlock(line, rest)
			if !ok {
				return false
			}
			data = after
			blocks++
		default:
			underline, afterTitle := cutLine(rest)
			switch {
			case !harmless(line):
				return false
			case line[0] == '#' || isHeader(line):
				data = rest
			case len(underline) > 2 && len(bytes.Trim(underline, "=")) == 0:
				data = afterTitle // a title, as in curl's bundle
			default:
				return false
			}
			other++
		}
	}
	return blocks > 0 || other == 0
}

// cutLine returns the first line without its end and trailing blanks.
func cutLine(b []byte) (line, rest []byte) {
	line, rest, _ = bytes.Cut(b, []byte("\n"))
	return bytes.TrimRight(line, " \t\r"), rest
}

// saysPrivate looks for "private" without case.
func saysPrivate(b []byte) bool {
	const word = "private"
	for {
		i := bytes.IndexAny(b, "pP")
		if i < 0 || len(b)-i < len(word) {
			return false
		}
		if bytes.EqualFold(b[i:i+len(word)], []byte(word)) {
			return true
		}
		b = b[i+1:]
	}
}

// maxLine bounds a comment, a header and a title.
const maxLine = 320

// harmless says whether a line of prose can hide no key: it is short, it is
// text, and it has no long run that looks like encoded data. Checksums pass
// where the line says that it is one.
func harmless(line []byte) bool {
	if len(line) > maxLine || !utf8.Valid(line) {
		return false
	}
	for _, c := range line {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	run, digits, hex := 0, 0, 0
	for i := 0; i <= len(line); i++ {
		if i < len(line) && isBase64(line[i]) {
			run++
			if c := line[i]; c >= '0' && c <= '9' {
				digits++
				hex++
			} else if lower := c | 0x20; lower >= 'a' && lower <= 'f' {
				hex++
			}
			continue
		}
		switch {
		case run < 28 || digits == 0 && run < 64:
		case digits == run && run <= 64: // a serial number
		case hex == run && (run == 32 || run == 40 || run == 64) && saysChecksum(line):
		case allEqual(line[i-run : i]): // a ruler
		default:
			return false
		}
		run, digits, hex = 0, 0, 0
	}
	return true
}

func isBase64(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || c == '+' || c == '/' || c == '='
}

func allEqual(b []byte) bool {
	return len(b) > 0 && len(bytes.Trim(b, string(b[:1]))) == 0
}

func saysChecksum(line []byte) bool {
	l := bytes.ToLower(line)
	return bytes.Contains(l, []byte("sha")) || bytes.Contains(l, []byte("md5")) || bytes.Contains(l, []byte("fingerprint"))
}

// isHeader knows the lines that openssl and others put before a public block.
func isHeader(line []byte) bool {
	text := string(bytes.TrimLeft(line, " \t"))
	switch text {
	case "Bag Attributes", "Bag Attributes: <Empty Attributes>", "Certificate chain":
		return true
	}
	end := strings.IndexAny(text, ":=")
	if end < 0 {
		return false
	}
	switch strings.ToLower(strings.TrimRight(text[:end], " ")) {
	case "issuer", "subject", "label", "serial", "friendlyname", "localkeyid",
		"notbefore", "notafter", "not before", "not after", "fingerprint",
		"md5 fingerprint", "sha1 fingerprint", "sha256 fingerprint",
		"i", "s", "0 s", "1 s", "2 s", "3 s", "4 s", "1.3.6.1.4.1.311.17.2", "2.16.840.1.113894.746875.1.1":
		return true
	}
	return false
}

// publicBlock checks the block that begins with line and returns what follows.
func publicBlock(line, rest []byte) (after []byte, ok bool) {
	label, ok := bytes.CutPrefix(line, []byte("-----BEGIN "))
	if !ok {
		return nil, false
	}
	if label, ok = bytes.CutSuffix(label, []byte("-----")); !ok {
		return nil, false
	}
	shape, ok := shapeOf(string(label))
	if !ok {
		return nil, false
	}
	var text []byte
	for len(rest) > 0 {
		line, rest = cutLine(rest)
		if end, ok := bytes.CutPrefix(line, []byte("-----END ")); ok {
			if string(end) != string(label)+"-----" {
				return nil, false
			}
			der := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
			n, err := base64.StdEncoding.Strict().Decode(der, text)
			return rest, err == nil && shape(der[:n])
		}
		for _, c := range line {
			if !isBase64(c) {
				return nil, false
			}
		}
		text = append(text, line...)
	}
	return nil, false
}

// shapeOf returns the check of a public label's content.
func shapeOf(label string) (func(der []byte) bool, bool) {
	switch label {
	case "CERTIFICATE", "X509 CERTIFICATE", "X509 CRL", "CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST":
		return isSigned, true
	case "TRUSTED CERTIFICATE": // a certificate, then what it is trusted for
		return func(der []byte) bool {
			tag, _, all, rest, ok := element(der)
			if !ok || tag != tagSequence || !isSigned(all) {
				return false
			}
			return len(rest) == 0 || isSequence(rest, nil)
		}, true
	case "PUBLIC KEY":
		return func(der []byte) bool { return isSequence(der, []byte{tagSequence, tagBitString}) }, true
	case "RSA PUBLIC KEY":
		return func(der []byte) bool { return isSequence(der, []byte{tagInteger, tagInteger}) }, true
	case "DSA PARAMETERS":
		return func(der []byte) bool { return isSequence(der, []byte{tagInteger, tagInteger, tagInteger}) }, true
	case "DH PARAMETERS":
		return func(der []byte) bool {
			return isSequence(der, []byte{tagInteger, tagInteger}) || isSequence(der, []byte{tagInteger, tagInteger, tagInteger})
		}, true
	case "X9.42 DH PARAMETERS": // p, g, q, and how they were made
		return func(der []byte) bool {
			group := []byte{tagInteger, tagInteger, tagInteger, tagInteger, tagSequence}
			made := []byte{tagInteger, tagInteger, tagInteger, tagSequence}
			return isSequence(der, group[:3]) || isSequence(der, group[:4]) || isSequence(der, group) || isSequence(der, made)
		}, true
	case "EC PARAMETERS": // a name, or the curve itself
		return func(der []byte) bool {
			if tag, _, _, rest, ok := element(der); ok && tag == tagOID {
				return len(rest) == 0
			}
			curve := []byte{tagInteger, tagSequence, tagSequence, tagOctets, tagInteger}
			return isSequence(der, curve) || isSequence(der, append(curve, tagInteger))
		}, true
	}
	return nil, false
}

const (
	tagInteger   = 0x02
	tagBitString = 0x03
	tagOctets    = 0x04
	tagOID       = 0x06
	tagSequence  = 0x30
)

// isSigned knows the shape of everything that is signed: the content, the
// algorithm, the signature. No private key has it.
func isSigned(der []byte) bool {
	return isSequence(der, []byte{tagSequence, tagSequence, tagBitString})
}

// isSequence says whether der is one complete SEQUENCE without a trailing byte
// whose elements have these tags; nil tags allow any.
func isSequence(der, tags []byte) bool {
	tag, body, _, rest, ok := element(der)
	if !ok || tag != tagSequence || len(rest) != 0 {
		return false
	}
	for i := 0; len(body) > 0; i++ {
		if tag, _, _, body, ok = element(body); !ok || tags != nil && (i >= len(tags) || tag != tags[i]) {
			return false
		}
		tagsLeft := len(tags) - i - 1
		if len(body) == 0 && tags != nil {
			return tagsLeft == 0
		}
	}
	return tags == nil
}

// element reads one DER element of definite length with a one-byte tag.
func element(b []byte) (tag byte, body, all, rest []byte, ok bool) {
	if len(b) < 2 || b[0]&0x1f == 0x1f {
		return 0, nil, nil, nil, false
	}
	tag, size, head := b[0], int(b[1]), 2
	if size >= 0x80 {
		n := size & 0x7f
		if n == 0 || n > 3 || len(b) < 2+n { // 3 bytes reach 16 MiB, over maxContent
			return 0, nil, nil, nil, false
		}
		size = 0
		for _, c := range b[2 : 2+n] {
			size = size<<8 | int(c)
		}
		head += n
	}
	if len(b)-head < size {
		return 0, nil, nil, nil, false
	}
	return tag, b[head : head+size], b[:head+size], b[head+size:], true
}

// isGitRef says whether data is what git keeps in a loose ref ("<id>" or "ref:
// refs/...") or in a reflog, so that a branch called release.key works. It is
// only asked for files where git keeps these: elsewhere the same bytes may well
// be a key in hexadecimal.
func isGitRef(data []byte) bool {
	if len(data) == 0 || data[len(data)-1] != '\n' {
		return false
	}
	if one := data[:len(data)-1]; !bytes.Contains(one, []byte("\n")) {
		if isObjectID(one) {
			return true
		}
		if name, ok := bytes.CutPrefix(one, []byte("ref: refs/")); ok {
			return len(name) > 0 && len(name) < 1024 && bytes.IndexFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f }) < 0
		}
	}
	for line := range bytes.Lines(data) { // "<old> <new> name <mail> time zone\tmessage"
		line = line[:len(line)-1]
		old, line, _ := bytes.Cut(line, []byte(" "))
		now, line, _ := bytes.Cut(line, []byte(" "))
		who, _, _ := bytes.Cut(line, []byte("\t"))
		if !isObjectID(old) || len(now) != len(old) || !isObjectID(now) || !bytes.Contains(who, []byte(" <")) || !bytes.Contains(who, []byte("> ")) {
			return false
		}
	}
	return true
}

func isObjectID(b []byte) bool {
	if len(b) != 40 && len(b) != 64 {
		return false
	}
	for _, c := range b {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// judge gives the verdict on a file's content.
func judge(data []byte) verdict {
	switch {
	case PublicOnly(data):
		return public
	case isGitRef(data):
		return gitRef
	}
	return secret
}
