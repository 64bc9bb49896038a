package tool_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/tether-sandbox/tether/policy"
	"github.com/tether-sandbox/tether/tool"
)

// fits says where v is not what a schema describes. It knows as much of JSON
// Schema as the schemas here use.
func fits(schema map[string]any, v any, at string) error {
	kinds := map[string]func(any) bool{
		"string":  func(v any) bool { _, ok := v.(string); return ok },
		"boolean": func(v any) bool { _, ok := v.(bool); return ok },
		"number":  func(v any) bool { _, ok := v.(float64); return ok },
		"integer": func(v any) bool { n, ok := v.(float64); return ok && n == float64(int64(n)) },
		"array":   func(v any) bool { _, ok := v.([]any); return ok },
		"object":  func(v any) bool { _, ok := v.(map[string]any); return ok },
	}
	kind, known := kinds[fmt.Sprint(schema["type"])]
	if !known || !kind(v) {
		return fmt.Errorf("%s: %v is no %v", at, v, schema["type"])
	}
	if enum, ok := schema["enum"].([]any); ok && !slices.Contains(enum, v) {
		return fmt.Errorf("%s: %v is none of %v", at, v, enum)
	}
	switch v := v.(type) {
	case []any:
		for i, x := range v {
			if err := fits(schema["items"].(map[string]any), x, fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
	case map[string]any:
		required, _ := schema["required"].([]any)
		for _, name := range required {
			if _, ok := v[name.(string)]; !ok {
				return fmt.Errorf("%s: %v is missing", at, name)
			}
		}
		properties, _ := schema["properties"].(map[string]any)
		for name, x := range v {
			p, ok := properties[name].(map[string]any)
			if !ok {
				if p, ok = schema["additionalProperties"].(map[string]any); !ok {
					return fmt.Errorf("%s: nothing describes %s", at, name)
				}
			}
			if err := fits(p, x, at+"."+name); err != nil {
				return err
			}
		}
	}
	return nil
}

// describes fails unless the output is what the tool's schema says.
func describes(t testing.TB, name string, output any) {
	t.Helper()
	for _, s := range tool.Specs(policy.Default("/w")) {
		if s.Name != name {
			continue
		}
		var schema map[string]any
		if err := json.Unmarshal(s.Output, &schema); err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(output)
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := json.Unmarshal(b, &v); err != nil {
			t.Fatal(err)
		}
		if err := fits(schema, v, name); err != nil {
			t.Errorf("%v\nin %s", err, b)
		}
		return
	}
	t.Fatalf("no tool %s", name)
}

func TestSpecs(t *testing.T) {
	for _, c := range []struct {
		profile             policy.Profile
		mode                policy.NetworkMode
		reads, destroys, up bool
	}{
		{policy.ReadOnly, policy.Offline, true, false, false},
		{policy.WorkspaceWrite, policy.Offline, false, true, false},
		{policy.WorkspaceWrite, policy.Gated, false, true, true},
		{policy.ReadOnly, policy.Open, true, false, true},
		{policy.FullAccess, policy.Open, false, true, true},
	} {
		for i, s := range tool.Specs(policy.Policy{Profile: c.profile, Network: policy.Network{Mode: c.mode}}) {
			up := c.up && s.Name == tool.BashName
			if s.Name == tool.FetchName { // whatever the policy is
				c.reads, c.destroys, up = true, false, true
			}
			if s.ReadOnly != c.reads || s.Destructive != c.destroys || s.OpenWorld != up {
				t.Errorf("%v, %v: tool %d: got %v, %v, %v", c.profile, c.mode, i, s.ReadOnly, s.Destructive, s.OpenWorld)
			}
			var in struct {
				Type       string
				Properties map[string]struct{ Type, Description string }
				Required   []string
				Additional *bool `json:"additionalProperties"`
			}
			if err := json.Unmarshal(s.Input, &in); err != nil {
				t.Fatal(err)
			}
			if in.Type != "object" || in.Additional == nil || *in.Additional || len(in.Required) != 1 {
				t.Errorf("%s: got %+v, want a closed object with one required property", s.Name, in)
			}
			for name, p := range in.Properties {
				if p.Type == "" || p.Description == "" {
					t.Errorf("%s.%s: got %+v, want a type and a description", s.Name, name, p)
				}
			}
		}
	}
}
