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
	if strings.Trim(s, alphanumeric+"-_.=:/+~") != "" {
		return false
	}
	for _, prefix := range []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "gldt-", "glrt-",
		"sk-", "sk_live_", "sk_test_", "rk_live_", "rk_test_", "pk_live_", "whsec_", "xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xapp-",
		"AKIA", "ASIA", "AIza", "ya29.", "GOCSPX-", "1//0", "npm_", "pypi-", "dop_v1_", "doo_v1_", "hf_", "shpat_", "shpss_", "SG.",
		"dckr_pat_", "lin_api_", "ntn_", "secret_", "sntrys_", "sntryu_", "tfp_", "r8_", "gsk_", "xai-", "pplx-", "dapi", "pul-", "hvs.", "hvb.",
		"AGE-SECRET-KEY-", "eyJ"} {
		if strings.HasPrefix(s, prefix) {
			rest := s[len(prefix):]
			return varied(rest, 2.5) && (strings.ContainsAny(rest, "0123456789") || prefix == "AKIA" || prefix == "ASIA")
		}
	}
	return false
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
	return strings.HasPrefix(s, "/") && strings.Count(s, "/") > 1 && strings.Trim(s, alphanumeric+"/._-") == "" ||
		strings.HasPrefix(s, "./") || strings.HasPrefix(s, "../") || strings.HasPrefix(s, "~/")
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
	if strings.Trim(s, alphanumeric+"-_.~+/=:!@#$%^&*") != "" || pathLike(s) {
		return false
	}
	for run := range strings.FieldsFuncSeq(s, func(r rune) bool { return strings.ContainsRune("-_.~+/=:!@#$%^&*", r) }) {
		var digits, upper, lower, other, changes int
		last := byte(0)
		for i := range len(run) {
			c, kind := run[i], byte('a')
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
			if kind != last {
				changes++
			}
			last = kind
		}
		if len(run) < MinLength || digits < 2 || upper+lower < 4 || other < 2 || changes < 6 {
			continue
		}
		if varied(run, 3.3) && (upper > 0 && lower > 0 || len(run) >= 20) {
			return true
		}
	}
	return false
}
