package gitmeta

import (
	"bytes"
	"encoding/json"
	"slices"
)

// wire is a Snapshot as JSON has it: names of files are bytes, which its
// strings cannot hold.
type wire struct {
	Workspace []byte     `json:"workspace"`
	Items     []wireItem `json:"items"`
	Hooks     []wireHook `json:"hooks,omitempty"`
	Includes  [][]byte   `json:"includes,omitempty"`
	Commons   [][]byte   `json:"commons,omitempty"`
	Closed    []string   `json:"closed,omitempty"`
}

type wireItem struct {
	Path []byte `json:"path"`
	Item
}

type wireHook struct {
	Path      []byte `json:"path"`
	NamesOnly bool   `json:"names_only,omitempty"`
}

// MarshalJSON writes a snapshot, paths in base64.
func (s Snapshot) MarshalJSON() ([]byte, error) {
	w := wire{Workspace: []byte(s.Workspace), Items: make([]wireItem, 0, len(s.Items)),
		Includes: toBytes(s.Includes), Commons: toBytes(s.Commons), Closed: s.Closed}
	for path, item := range s.Items {
		w.Items = append(w.Items, wireItem{[]byte(path), item})
	}
	slices.SortFunc(w.Items, func(a, b wireItem) int { return bytes.Compare(a.Path, b.Path) })
	for _, h := range s.Hooks {
		w.Hooks = append(w.Hooks, wireHook{[]byte(h.Path), h.NamesOnly})
	}
	return json.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (s *Snapshot) UnmarshalJSON(raw []byte) error {
	var w wire
	if err := json.Unmarshal(raw, &w); err != nil {
		return err
	}
	*s = Snapshot{Workspace: string(w.Workspace), Items: make(map[string]Item, len(w.Items)),
		Includes: toStrings(w.Includes), Commons: toStrings(w.Commons), Closed: w.Closed}
	for _, i := range w.Items {
		s.Items[string(i.Path)] = i.Item
	}
	for _, h := range w.Hooks {
		s.Hooks = append(s.Hooks, HookDir{string(h.Path), h.NamesOnly})
	}
	return nil
}

func toBytes(list []string) [][]byte {
	var out [][]byte
	for _, s := range list {
		out = append(out, []byte(s))
	}
	return out
}

func toStrings(list [][]byte) []string {
	var out []string
	for _, b := range list {
		out = append(out, string(b))
	}
	return out
}
