package policy

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// ParseSize reads a number of bytes for a limit: digits, then nothing, or K,
// M, G or T in any case, each optionally with iB. All are powers of 1024.
//
// The result is positive. Zero is refused, because a zero limit is the
// built-in one and not "none at all". KB, MB and so on are refused too: half
// the world reads them as powers of 1000.
func ParseSize(s string) (int64, error) {
	const hint = "write it like 10M, 1GiB, 512k or 4096 (powers of 1024)"
	digits := 0
	for digits < len(s) && '0' <= s[digits] && s[digits] <= '9' {
		digits++
	}
	if digits == 0 {
		return 0, invalid("cannot read "+quote(s)+" as a size", hint)
	}
	shift, ok := unit(s[digits:])
	if !ok {
		return 0, invalid("cannot read "+quote(s)+" as a size", hint)
	}
	n, err := strconv.ParseInt(s[:digits], 10, 64)
	if err != nil || n > math.MaxInt64>>shift {
		return 0, invalid("the size "+quote(s)+" is too large", hint)
	}
	if n == 0 {
		return 0, invalid("a size of zero is no limit that can be met", "leave it out for the built-in limit, or "+hint)
	}
	return n << shift, nil
}

// SizeText spells a number of bytes as [ParseSize] reads it, with the largest
// unit that leaves a whole number.
func SizeText(n int64) string {
	units := [...]string{"", "K", "M", "G", "T"}
	i := 0
	for ; i+1 < len(units) && n >= 1024 && n%1024 == 0; i++ {
		n /= 1024
	}
	return strconv.FormatInt(n, 10) + units[i]
}

// unit returns the power of two of a size's unit.
func unit(s string) (uint, bool) {
	if s == "" {
		return 0, true
	}
	i := strings.IndexByte("kmgt", s[0]|0x20)
	if i < 0 || (len(s) > 1 && !(len(s) == 3 && strings.EqualFold(s[1:], "ib"))) {
		return 0, false
	}
	return uint(i+1) * 10, true
}

// ParseDuration reads a positive duration: Go's form (90s, 1m30s, 1.5h) or a
// plain number of seconds. Zero is refused for the same reason as in
// [ParseSize].
func ParseDuration(s string) (time.Duration, error) {
	const hint = "write it like 90s, 1m30s, 2h or 90 (seconds)"
	text := s
	if s != "" && strings.Trim(s, "0123456789.") == "" {
		text = s + "s"
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, invalid("cannot read "+quote(s)+" as a duration", hint)
	}
	if d <= 0 {
		return 0, invalid("the duration "+quote(s)+" is not positive", hint)
	}
	return d, nil
}

// EnvVar is one entry for [Env]: a name to pass or a variable to set.
type EnvVar struct {
	Name string
	// Value is the value to set, also an empty one; nil passes the caller's.
	Value *string
}

// ParseEnv reads NAME, which passes the caller's variable, or NAME=VALUE,
// which sets one, also to nothing. A name is a letter or an underscore, then
// letters, digits and underscores, ASCII only; a value holds no NUL.
func ParseEnv(s string) (EnvVar, error) {
	name, value, set := strings.Cut(s, "=")
	if !envName(name) {
		return EnvVar{}, invalid("bad variable name "+quote(name), "write NAME or NAME=VALUE, with letters, digits and _ in NAME")
	}
	if !set {
		return EnvVar{Name: name}, nil
	}
	if strings.IndexByte(value, 0) >= 0 {
		return EnvVar{}, invalid("the value of "+name+" holds a NUL byte", "no environment can carry one: encode the value")
	}
	return EnvVar{Name: name, Value: &value}, nil
}

// Add puts v into e: into Pass, or into Set with the last value of a name
// winning. It never writes into a slice or map that a copy of e shares.
func (e *Env) Add(v EnvVar) {
	if v.Value == nil {
		e.Pass = append(e.Pass[:len(e.Pass):len(e.Pass)], v.Name)
		return
	}
	set := make(map[string]string, len(e.Set)+1)
	for name, value := range e.Set {
		set[name] = value
	}
	set[v.Name] = *v.Value
	e.Set = set
}

func envName(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c == '_' || 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}
