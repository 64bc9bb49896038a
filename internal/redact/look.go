package redact

import (
	"math"
	"strings"
)

// credible reports whether value, found under name (which may be empty), is to
// be taken for a secret. A name that asks for one needs a value that is not
// plainly something else; without one the value itself must look random or have
// the form of a known provider's tokens.
//
// Hexadecimal numbers and UUIDs count by their names only: commits and
// identifiers look the same.
func credible(name, value string) bool {
	switch {
	case len(value) < MinLength || len(value) > 64<<10:
		return false
	case provider(value):
		return true
	case reference(value) || pathLike(value) || strings.Contains(value, "://"):
		return false
	}
	switch nameSays(name) {
	case aSecret:
		return varied(value, 2.3)
	case perhaps:
		if strings.ContainsAny(value, "0123456789") && !strings.ContainsAny(value, " \t") && varied(value, 3) {
			return true
		}
	}
	return random(value)
}

// provider reports whether s is one token of a form that only tokens have.
func provider(s string) bool {
	for _, prefix := range prefixes(s[0]) {
		if rest, ok := strings.CutPrefix(s, prefix); ok {
			return tokenLike(rest, "-_.=:/+~") && varied(rest, 2.5) && (strings.ContainsAny(rest, "0123456789") || s[0] == 'A')
		}
	}
	return false
}

// prefixes are what the tokens of providers begin with, by the first byte.
func prefixes(first byte) []string {
	switch first {
	case 'g':
		return []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "gldt-", "glrt-", "gsk_"}
	case 's':
		return []string{"sk-", "sk_live_", "sk_test_", "shpat_", "shpss_", "sntrys_", "sntryu_", "secret_"}
	case 'A':
		return []string{"AKIA", "ASIA", "AIza", "AGE-SECRET-KEY-"}
	case 'd':
		return []string{"dop_v1_", "doo_v1_", "dckr_pat_", "dapi"}
	case 'p':
		return []string{"pk_live_", "pypi-", "pplx-", "pul-"}
	case 'r':
		return []string{"rk_live_", "rk_test_", "r8_"}
	case 'x':
		return []string{"xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xapp-", "xai-"}
	case 'h':
		return []string{"hf_", "hvs.", "hvb."}
	case 'n':
		return []string{"npm_", "ntn_"}
	case '1', 'y', 'G', 'S', 'l', 't', 'w', 'e':
		return []string{"1//0", "ya29.", "GOCSPX-", "SG.", "lin_api_", "tfp_", "whsec_", "eyJ"}
	}
	return nil
}

// says is what a name tells of its value.
type says int

const (
	nothing says = iota
	perhaps
	aSecret
)

func nameSays(name string) says {
	switch strings.ToUpper(name) {
	case "", "PWD", "OLDPWD", "SSH_AUTH_SOCK", "XAUTHORITY":
		return nothing
	}
	best := nothing
	for word := range strings.FieldsFuncSeq(words(name), func(r rune) bool { return r == '_' }) {
		word = strings.TrimRight(word, "0123456789") // TOKEN2
		switch word {
		case "TOKENS", "SECRETS", "PASSWORDS", "PASSPHRASE", "PASS", "PWD", "CREDENTIAL", "CREDENTIALS", "CREDS", "BEARER", "JWT", "MNEMONIC", "PSK":
			return aSecret
		case "KEY", "KEYS", "AUTH", "AUTHORIZATION", "COOKIE", "DSN", "PAT", "SALT", "PEPPER", "PRIVATE", "SAS", "HMAC", "SEED", "WEBHOOK":
			best = perhaps
		}
		for _, end := range []string{"TOKEN", "SECRET", "PASSWORD", "PASSWD", "APIKEY", "ACCESSKEY", "SECRETKEY", "PRIVATEKEY"} {
			if strings.HasSuffix(word, end) {
				return aSecret
			}
		}
	}
	return best
}

// words spells a name in any style as WORDS_LIKE_THIS.
func words(name string) string {
	b := make([]byte, 0, len(name)+8)
	for i := range len(name) {
		c := name[i]
		switch {
		case c >= 'a' && c <= 'z':
			b = append(b, c-'a'+'A')
		case c >= 'A' && c <= 'Z':
			if i > 0 && name[i-1] >= 'a' && name[i-1] <= 'z' {
				b = append(b, '_')
			}
			b = append(b, c)
		case c >= '0' && c <= '9':
			b = append(b, c)
		default:
			b = append(b, '_')
		}
	}
	return string(b)
}

// reference reports whether s only says where the value comes from.
func reference(s string) bool {
	return strings.HasPrefix(s, "$") || strings.HasPrefix(s, "{{") || strings.HasPrefix(s, "<") || strings.Contains(s, "${") ||
		strings.HasPrefix(strings.ToLower(s), "your")
}

func pathLike(s string) bool {
	return strings.HasPrefix(s, "/") && strings.Count(s, "/") > 1 && tokenLike(s, "/._-") ||
		strings.HasPrefix(s, "./") || strings.HasPrefix(s, "../") || strings.HasPrefix(s, "~/")
}

// tokenLike reports whether s consists of letters, digits and the characters of
// others.
func tokenLike(s, others string) bool {
	for i := range len(s) {
		if !alphanumeral(s[i]) && strings.IndexByte(others, s[i]) < 0 {
			return false
		}
	}
	return true
}

func alphanumeral(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

// varied reports whether each byte of s carries at least so many bits, by the
// frequencies in s alone.
func varied(s string, bits float64) bool {
	var count [256]int
	for i := range len(s) {
		count[s[i]]++
	}
	var sum float64
	for _, n := range count {
		if n > 0 {
			p := float64(n) / float64(len(s))
			sum -= p * math.Log2(p)
		}
	}
	return sum >= bits
}

// random reports whether some part of s, without any separator, looks like
// drawn by a machine: long, of high entropy, digits among letters, and not
// hexadecimal. Words, paths, versions, host names and dates do not.
func random(s string) bool {
	var digits, upper, lower, other, changes, begin int
	last := byte(0)
	for i := 0; i <= len(s); i++ {
		kind := byte('a')
		switch {
		case i == len(s) || strings.IndexByte("-_.~+/=:!@#$%^&*", s[i]) >= 0:
			run := s[begin:i]
			if len(run) >= MinLength && digits >= 2 && upper+lower >= 4 && other >= 2 && changes >= 6 &&
				(upper > 0 && lower > 0 || len(run) >= 20) && varied(run, 3.3) {
				return tokenLike(s, "-_.~+/=:!@#$%^&*")
			}
			digits, upper, lower, other, changes, begin, last = 0, 0, 0, 0, 0, i+1, 0
			continue
		default:
			c := s[i]
			switch {
			case c >= '0' && c <= '9':
				digits++
				kind = '0'
			case c >= 'A' && c <= 'Z':
				upper++
				kind = 'A'
			default:
				lower++
			}
			if c|0x20 > 'f' && c > '9' {
				other++
			}
		}
		if kind != last {
			changes++
		}
		last = kind
	}
	return false
}
