package tool

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
)

// schema is the part of JSON Schema that our types need.
type schema struct {
	Type        string             `json:"type"`
	Description string             `json:"description,omitempty"`
	Enum        []string           `json:"enum,omitempty"`
	Items       *schema            `json:"items,omitempty"`
	Properties  map[string]*schema `json:"properties,omitempty"`
	Required    []string           `json:"required,omitempty"`
	// Additional is a schema or false; nil allows whatever comes.
	Additional any `json:"additionalProperties,omitempty"`
}

// inputSchema describes what a tool takes, and nothing more.
func inputSchema(v any) json.RawMessage {
	s := schemaOf(reflect.TypeOf(v))
	s.Additional = false
	return encode(s)
}

// outputSchema describes what a tool returns; fields may be added.
func outputSchema(v any) json.RawMessage { return encode(schemaOf(reflect.TypeOf(v))) }

func encode(s *schema) json.RawMessage {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // a schema holds nothing that cannot be encoded
	}
	return b
}

// schemaOf describes a type as encoding/json writes it. The tag doc describes a
// field, enum lists its values.
func schemaOf(t reflect.Type) *schema {
	if t.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		return &schema{Type: "string"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return schemaOf(t.Elem())
	case reflect.String:
		return &schema{Type: "string"}
	case reflect.Bool:
		return &schema{Type: "boolean"}
	case reflect.Int, reflect.Int64:
		return &schema{Type: "integer"}
	case reflect.Float64:
		return &schema{Type: "number"}
	case reflect.Slice:
		return &schema{Type: "array", Items: schemaOf(t.Elem())}
	case reflect.Map:
		return &schema{Type: "object", Additional: schemaOf(t.Elem())}
	case reflect.Struct:
		return structSchema(t)
	}
	panic("no schema for " + t.String()) // a test describes every type
}

func structSchema(t reflect.Type) *schema {
	s := &schema{Type: "object", Properties: map[string]*schema{}}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || !f.IsExported() {
			continue
		}
		p := schemaOf(f.Type)
		p.Description = f.Tag.Get("doc")
		if enum := f.Tag.Get("enum"); enum != "" {
			p.Enum = strings.Split(enum, ",")
		}
		s.Properties[name] = p
		if !strings.Contains(options, "omitempty") {
			s.Required = append(s.Required, name)
		}
	}
	return s
}
