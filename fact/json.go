package fact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// MaxText is the longest text, in bytes, that a field of a fact may hold when
// it is recorded. See [Clip].
const MaxText = 16 << 10

// plain is a Fact without methods: what encoding/json sees.
type plain Fact

// Parse reads one fact. It is made for facts of later versions: a field that
// it does not know, or whose value it cannot read, is kept and written again.
// Only what is no JSON object is an error.
func Parse(b []byte) (Fact, error) {
	if !utf8.Valid(b) {
		b = bytes.ToValidUTF8(b, []byte("\ufffd"))
	}
	var f plain
	if strict(b, &f) == nil {
		return Fact(f), nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(b, &fields); err != nil {
		return Fact{}, fmt.Errorf("fact: %w", err)
	}
	if fields == nil {
		return Fact{}, fmt.Errorf("fact: null is none")
	}
	f = plain{extra: map[string]json.RawMessage{}}
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		folded := strings.ToLower(strings.ToUpper(name)) // encoding/json matches names without case
		if seen[folded] {
			return Fact{}, fmt.Errorf("fact: the field %q stands twice", name)
		}
		seen[folded] = true
		one, err := json.Marshal(map[string]json.RawMessage{name: fields[name]})
		if err != nil {
			return Fact{}, fmt.Errorf("fact: %w", err)
		}
		with := f
		if strict(one, &with) != nil {
			var kept bytes.Buffer
			if err := json.Compact(&kept, fields[name]); err != nil {
				return Fact{}, fmt.Errorf("fact: %w", err)
			}
			f.extra[name] = kept.Bytes()
			continue
		}
		f = with
	}
	return Fact(f), nil
}

// strict decodes exactly one object whose fields are all known.
func strict(b []byte, f *plain) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(f); err != nil {
		return err
	}
	if len(bytes.TrimSpace(b[d.InputOffset():])) > 0 {
		return fmt.Errorf("fact: more than one value")
	}
	if t := bytes.TrimSpace(b); len(t) == 0 || t[0] != '{' {
		return fmt.Errorf("fact: not an object")
	}
	return nil
}

// UnmarshalJSON is [Parse].
func (f *Fact) UnmarshalJSON(b []byte) (err error) {
	*f, err = Parse(b)
	return err
}

// MarshalJSON writes f on one line: the known fields in the order of [Fact],
// then the unknown ones by name. Bytes that are not UTF-8 become \xNN, four
// ASCII characters, because JSON cannot hold them.
func (f Fact) MarshalJSON() ([]byte, error) {
	f.escape()
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(plain(f)); err != nil {
		return nil, fmt.Errorf("fact: %w", err)
	}
	b := bytes.TrimSuffix(out.Bytes(), []byte("\n"))
	if len(f.extra) == 0 {
		return b, nil
	}
	b = b[:len(b)-1]
	for _, name := range slices.Sorted(maps.Keys(f.extra)) {
		key, err := json.Marshal(name)
		if err != nil {
			return nil, fmt.Errorf("fact: %w", err)
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(append(b, key...), ':'), f.extra[name]...)
	}
	return append(b, '}'), nil
}

// texts returns every text of f that comes from outside. Lists and the grant
// are copied first, so that the fact that f was copied from stays as it is.
func (f *Fact) texts() []*string {
	list := []*string{
		(*string)(&f.Kind), &f.ID, &f.Turn, &f.What, (*string)(&f.By), &f.Why, &f.World, &f.Workspace, &f.Parent, &f.Policy,
		&f.Mode, (*string)(&f.Preset), (*string)(&f.Origin), &f.Approval, (*string)(&f.Code),
		&f.Path, &f.Host, &f.Rule, &f.Remedy,
	}
	f.Uses = slices.Clone(f.Uses)
	for i := range f.Uses {
		list = append(list, &f.Uses[i])
	}
	if f.Grant != nil {
		g := *f.Grant
		g.Command = slices.Clone(g.Command)
		list = append(list, &g.Path, &g.Host, &g.Mode, (*string)(&g.Scope))
		for i := range g.Command {
			list = append(list, &g.Command[i])
		}
		f.Grant = &g
	}
	return list
}

func (f *Fact) escape() {
	for _, s := range f.texts() {
		if !utf8.ValidString(*s) {
			*s = escaped(*s)
		}
	}
}

func escaped(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && n == 1 {
			fmt.Fprintf(&b, `\x%02x`, s[0])
		} else {
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

// Longest returns the length of the longest text in f, for the limit [MaxText].
func (f Fact) Longest() int {
	longest := 0
	for _, s := range f.texts() {
		longest = max(longest, len(*s))
	}
	for _, raw := range f.extra {
		longest = max(longest, len(raw))
	}
	return longest
}

// Clip shortens s to at most n bytes, which must be 64 or more: its beginning,
// and how much is gone. No text of a fact may be longer than [MaxText].
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	const room = 64
	end := n - room
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return fmt.Sprintf("%s [%d bytes more]", s[:end], len(s)-end)
}
