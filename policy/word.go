package policy

import (
	"strconv"
	"strings"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/typo"
)

// invalid is a POLICY_INVALID with its way out. What came from outside must be
// quoted by the caller: it may hold terminal sequences.
func invalid(what, hint string) error {
	return fault.New(fault.PolicyInvalid, what).WithHint(hint)
}

// quote makes s safe and short enough for one line of an error.
func quote(s string) string {
	const most = 120
	if len(s) > most {
		return strconv.Quote(s[:most]) + "..."
	}
	return strconv.Quote(s)
}

// word is one spelling of a value. The first word of a value is the one that
// is printed, the others are aliases.
type word[T ~int] struct {
	text  string
	value T
}

// spell returns the spelling of v, or kind(v) for a value without one.
func spell[T ~int](kind string, v T, words []word[T]) string {
	for _, w := range words {
		if w.value == v {
			return w.text
		}
	}
	return kind + "(" + strconv.Itoa(int(v)) + ")"
}

// marshal is spell for machines: a value without a spelling is an error, as
// nothing could read it back.
func marshal[T ~int](kind string, v T, words []word[T]) ([]byte, error) {
	if !known(v, words) {
		return nil, invalid("there is no "+kind+" number "+strconv.Itoa(int(v)), "use "+list(words))
	}
	return []byte(spell(kind, v, words)), nil
}

func known[T ~int](v T, words []word[T]) bool {
	for _, w := range words {
		if w.value == v {
			return true
		}
	}
	return false
}

// parse reads one of words, exactly. On failure it returns the zero value,
// the strictest, and suggests the nearest spelling.
func parse[T ~int](kind, s string, words []word[T]) (T, error) {
	for _, w := range words {
		if w.text == s {
			return w.value, nil
		}
	}
	if s == "" {
		return 0, invalid("empty "+kind, "use "+list(words))
	}
	hint := "use " + list(words)
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = w.text
	}
	if near := typo.Nearest(s, texts); near != "" {
		hint = "did you mean " + near + "? " + hint
	}
	return 0, invalid("unknown "+kind+" "+quote(s), hint)
}

// list names the spellings for a hint: "a, b or c", aliases left out.
func list[T ~int](words []word[T]) string {
	var texts []string
	for i, w := range words {
		if i == 0 || w.value != words[i-1].value {
			texts = append(texts, w.text)
		}
	}
	if len(texts) < 2 {
		return strings.Join(texts, "")
	}
	last := len(texts) - 1
	return strings.Join(texts[:last], ", ") + " or " + texts[last]
}
