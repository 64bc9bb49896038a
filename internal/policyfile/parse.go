package policyfile

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/tether-sandbox/tether/fault"
)

const (
	// maxFile is the size up to which a policy file is read.
	maxFile = 256 << 10
	// maxValues is how many values one key may have. Patterns are matched
	// against every file of a workspace, so that a foreign file must not bring
	// any number of them.
	maxValues = 1000
	// maxErrors is how many errors of one file are told.
	maxErrors = 20
)

// Parse reads a policy file. name is only for messages and for [Layer.Name].
// The layer is neither trusted nor a workspace's. An error is a *fault.Error
// with POLICY_INVALID that begins with name:line:column, and the layer is empty
// then: nothing of a file that is wrong in one place holds.
//
// Besides what TOML asks for it refuses more than 256 KiB, NUL, text that is
// not UTF-8, keys that it does not know, and more than 1000 values of one key.
// A byte order mark is skipped.
func Parse(name string, content []byte) (Layer, error) {
	changes, errs := parse(name, content)
	if len(errs) > 0 {
		return Layer{}, errs[0]
	}
	return Layer{Name: name, Changes: changes, Content: content}, nil
}

// reader reads one file. The parser of the library gives the positions of keys
// and values, and leaves to us what they mean and which of them repeat.
type reader struct {
	name    string
	data    []byte
	changes []Change
	errs    []error
	seen    map[string]int // the line of a key or of a variable
	values  map[string]int // how many a key has

	// How far lines have been counted: positions come in order.
	at, line, start int
}

func parse(name string, content []byte) ([]Change, []error) {
	r := &reader{name: name, data: bytes.TrimPrefix(content, []byte("\xef\xbb\xbf")), line: 1,
		seen: map[string]int{}, values: map[string]int{}}
	if err := r.checkBytes(); err != nil {
		return nil, []error{err}
	}
	r.read()
	if len(r.errs) > 0 {
		return nil, r.errs
	}
	return r.changes, nil
}

// checkBytes refuses what no text is.
func (r *reader) checkBytes() error {
	if len(r.data) > maxFile {
		return invalid(r.name+": the file is larger than 256 KiB", "keep what the policy needs")
	}
	if i := bytes.IndexByte(r.data, 0); i >= 0 {
		return r.fail(i, "there is a NUL byte", "write plain text, in UTF-8")
	}
	for i := 0; i < len(r.data); {
		c, n := utf8.DecodeRune(r.data[i:])
		if c == utf8.RuneError && n == 1 {
			return r.fail(i, "the text is not UTF-8", "save the file as UTF-8")
		}
		i += n
	}
	return nil
}

// position returns the line and the column, in bytes, of an offset.
func (r *reader) position(offset int) (line, column int) {
	if offset < r.at {
		r.at, r.line, r.start = 0, 1, 0
	}
	for {
		i := bytes.IndexByte(r.data[r.at:offset], '\n')
		if i < 0 {
			break
		}
		r.at += i + 1
		r.line, r.start = r.line+1, r.at
	}
	r.at = offset
	return r.line, offset - r.start + 1
}

func (r *reader) fail(offset int, what, hint string) error {
	line, column := r.position(offset)
	return invalid(fmt.Sprintf("%s:%d:%d: %s", r.name, line, column, what), hint)
}

func (r *reader) report(offset int, what, hint string) {
	r.errs = append(r.errs, r.fail(offset, what, hint))
}

func (r *reader) read() {
	var p unstable.Parser
	p.Reset(r.data)
	const top = ""
	place := top
	skip := false // the keys of a table that is wrong itself
	for len(r.errs) < maxErrors && p.NextExpression() {
		e := p.Expression()
		keys, offset := path(e)
		if e.Kind != unstable.KeyValue {
			skip = e.Kind == unstable.ArrayTable || len(keys) != 1 || keys[0] != "set-env"
			if skip {
				r.wrongTable(offset, keys)
				continue
			}
			place = keys[0]
			r.once(offset, "["+place+"]", place+" as a table")
			continue
		}
		switch {
		case skip:
		case place == "set-env" && len(keys) == 1:
			r.variable(offset, keys[0], e.Value(), true)
		case place == top && len(keys) == 2 && keys[0] == "set-env":
			r.variable(offset, keys[1], e.Value(), false)
		case len(keys) > 1 || place != top:
			r.report(offset, "the key "+quote(strings.Join(keys, "."))+" is not known", "write a key without dots; variables are set by set-env.NAME")
		default:
			r.value(offset, keys[0], e.Value())
		}
	}
	if err := p.Error(); err != nil && len(r.errs) < maxErrors {
		r.syntax(err)
	}
}

// syntax reports what the parser could not read.
func (r *reader) syntax(err error) {
	offset := len(r.data)
	if e, ok := errors.AsType[*unstable.ParserError](err); ok {
		// The highlight is a part of data, whose offset its capacity tells.
		if o := cap(r.data) - cap(e.Highlight); e.Highlight != nil && o >= 0 && o <= len(r.data) {
			offset = o
		}
	}
	if key, word := unquoted(r.data, offset); word != "" {
		r.report(offset, "the text "+word+" stands without quotation marks", key+` = "`+word+`"`)
		return
	}
	r.report(offset, err.Error(), `write lines like key = "value" or key = ["a", "b"]`)
}

// unquoted returns the key and the value of the line around offset if the value
// is one plain word, as texts are typed by who does not know TOML.
func unquoted(data []byte, offset int) (key, word string) {
	line := data[bytes.LastIndexByte(data[:offset], '\n')+1:]
	if end := bytes.IndexByte(line, '\n'); end >= 0 {
		line = line[:end]
	}
	k, v, _ := strings.Cut(string(line), "=")
	k, v = strings.TrimSpace(k), strings.TrimSpace(v)
	plain := func(s string) bool {
		return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:*") == ""
	}
	if !plain(k) || !plain(v) {
		return "", ""
	}
	return k, v
}

// path returns the parts of a key and where it begins.
func path(e *unstable.Node) (parts []string, offset int) {
	for it := e.Key(); it.Next(); {
		n := it.Node()
		if parts == nil {
			offset = int(n.Raw.Offset)
		}
		parts = append(parts, string(n.Data))
	}
	return parts, offset
}

func (r *reader) wrongTable(offset int, keys []string) {
	name := strings.Join(keys, ".")
	if _, ok := keyNamed(name); ok {
		k, _ := keyNamed(name)
		r.report(offset, name+" is not a table", name+" = "+k.example+", above every [table]")
		return
	}
	r.report(offset, "there is no table "+quote(name), "write the keys at the top without a table; the one table is [set-env]")
}

// once reports what stands in a file a second time.
func (r *reader) once(offset int, id, what string) bool {
	if line, twice := r.seen[id]; twice {
		r.report(offset, what+" is set twice, first in line "+strconv.Itoa(line), "keep one of the two")
		return false
	}
	line, _ := r.position(offset)
	r.seen[id] = line
	return true
}

func (r *reader) value(offset int, name string, v *unstable.Node) {
	k, ok := keyNamed(name)
	if !ok {
		e := unknownKey(name)
		r.report(offset, e.What, e.Hint)
		return
	}
	if !r.once(offset, name, name) {
		return
	}
	wrong := func() {
		r.report(place(v, offset), name+" cannot be "+kindOf(v), "write it like "+name+" = "+k.example)
	}
	switch k.form {
	case table:
		if v.Kind != unstable.InlineTable {
			wrong()
			return
		}
		r.seen["["+name+"]"] = r.seen[name]
		for it := v.Children(); len(r.errs) < maxErrors && it.Next(); {
			keys, at := path(it.Node())
			if len(keys) != 1 {
				r.report(at, "the variable "+quote(strings.Join(keys, "."))+" has a dot in it", "use letters, digits and _")
				continue
			}
			r.variable(at, keys[0], it.Node().Value(), false)
		}
	case list, ports, reads:
		if k.form == reads && v.Kind == unstable.String {
			if string(v.Data) != "system" {
				r.report(place(v, offset), "reads cannot be "+quote(string(v.Data)), `write reads = "system", or a list like reads = ["/usr", "/etc/ssl"]`)
				return
			}
			r.change(offset, offset, Change{Key: name, Value: "system"})
			return
		}
		if v.Kind != unstable.Array {
			wrong()
			return
		}
		r.elements(offset, k, v)
	default:
		if text, ok := scalar(k.form, v); !ok {
			wrong()
		} else {
			r.change(place(v, offset), offset, Change{Key: name, Value: text})
		}
	}
}

func (r *reader) elements(offset int, k key, v *unstable.Node) {
	empty := true
	for it := v.Children(); len(r.errs) < maxErrors && it.Next(); {
		empty = false
		r.add(offset, k, it.Node())
	}
	// Only these two say something by naming nothing.
	if empty && (k.name == "only-host" || k.name == "reads") {
		r.change(offset, offset, Change{Key: k.name, Empty: true})
	}
}

// add adds one element of a list.
func (r *reader) add(offset int, k key, v *unstable.Node) {
	f := word
	if k.form == ports {
		f = count
	}
	text, ok := scalar(f, v)
	switch {
	case !ok:
		r.report(place(v, offset), k.name+" cannot hold "+kindOf(v), "write it like "+k.name+" = "+k.example)
	case k.form == reads && text == "system":
		r.report(place(v, offset), `"system" is no root`, `write reads = "system" without a list, or roots alone`)
	case strings.Contains(text, "=") && k.name == "env":
		name, _, _ := strings.Cut(text, "=")
		if r.once(place(v, offset), "$"+name, "the variable "+quote(name)) {
			r.change(place(v, offset), place(v, offset), Change{Key: k.name, Value: text})
		}
	default:
		r.change(place(v, offset), place(v, offset), Change{Key: k.name, Value: text})
	}
}

// variable adds one variable to set. Behind the header [set-env] every key is
// one, also a key of ours that somebody put there by mistake.
func (r *reader) variable(offset int, name string, v *unstable.Node, header bool) {
	if k, ok := keyNamed(name); ok && header {
		r.report(offset, name+" stands in the table [set-env], so that it would be a variable",
			"move it above [set-env], or set the variable by env = ["+strconv.Quote(name+"=VALUE")+"]: "+name+" = "+k.example)
		return
	}
	if v.Kind != unstable.String {
		r.report(place(v, offset), "the variable "+quote(name)+" cannot be "+kindOf(v), "write its value in quotes, like "+name+` = "1"`)
		return
	}
	if strings.Contains(name, "=") {
		r.report(offset, "bad variable name "+quote(name), "use letters, digits and _, and no digit first")
		return
	}
	if r.once(offset, "$"+name, "the variable "+quote(name)) {
		r.change(offset, offset, Change{Key: "set-env", Value: name + "=" + string(v.Data)})
	}
}

// change checks one value and keeps it. What is wrong is told at the value,
// what is right is remembered at its line.
func (r *reader) change(wrong, offset int, c Change) {
	r.values[c.Key]++
	if n := r.values[c.Key]; n > maxValues {
		if n == maxValues+1 {
			r.report(offset, fmt.Sprintf("%s has more than %d values", c.Key, maxValues), "say the same with patterns or with a folder above")
		}
		return
	}
	if err := check(c); err != nil {
		what := err.Error()
		if e, ok := errors.AsType[*fault.Error](err); ok {
			what = e.What
		}
		r.report(wrong, what, fault.HintOf(err))
		return
	}
	c.Line, c.Column = r.position(offset)
	r.changes = append(r.changes, c)
}

// place returns where a value stands; for an array, which the parser gives no
// place, its key's.
func place(v *unstable.Node, offset int) int {
	if v.Raw.Length == 0 {
		return offset
	}
	return int(v.Raw.Offset)
}

// scalar returns the text of a value of the form.
func scalar(f form, v *unstable.Node) (string, bool) {
	switch {
	case v.Kind == unstable.String && (f == word || f == size):
		return string(v.Data), true
	case v.Kind == unstable.Bool && f == truth:
		return string(v.Data), true
	case v.Kind == unstable.Integer && (f == count || f == size):
		return integer(string(v.Data))
	}
	return "", false
}

// integer returns TOML's integer in decimal; the parser has refused what is
// none, such as a leading zero.
func integer(s string) (string, bool) {
	n, err := strconv.ParseInt(strings.ReplaceAll(s, "_", ""), 0, 64)
	if err != nil {
		return "", false
	}
	return strconv.FormatInt(n, 10), true
}

// kindOf names a value for a message.
func kindOf(v *unstable.Node) string {
	switch v.Kind {
	case unstable.String:
		return "a text"
	case unstable.Bool:
		return "true or false"
	case unstable.Integer:
		return "the number " + quote(string(v.Data))
	case unstable.Float:
		return "a fraction"
	case unstable.Array:
		return "a list"
	case unstable.InlineTable:
		return "a table"
	}
	return "a date or a time"
}
