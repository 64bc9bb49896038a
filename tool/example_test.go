//go:build linux

package tool_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"

	"github.com/tether-sandbox/tether"
	"github.com/tether-sandbox/tether/policy"
	"github.com/tether-sandbox/tether/tool"
)

// model stands for the model: it is told what the tools are and what came of
// its last call, and answers with the next call.
type model struct{ calls []struct{ name, args string } }

func (m *model) next(_ []tool.Spec, said string) (name string, args json.RawMessage, more bool) {
	if said != "" {
		fmt.Println(said)
	}
	if len(m.calls) == 0 {
		return "", nil, false
	}
	c := m.calls[0]
	m.calls = m.calls[1:]
	return c.name, json.RawMessage(c.args), true
}

// A harness gives the model the descriptions of the tools, carries out what it
// asks for, and gives the text back. Refusals are results, too: the model reads
// them and goes on.
func Example() {
	dir, err := os.MkdirTemp("", "project-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	pol := policy.Default(dir)
	pol.Network.Mode = policy.Offline
	s, err := tether.Open(context.Background(), tether.Options{Policy: pol})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()

	tools, specs := tool.New(s), tool.Specs(pol)
	m := &model{calls: []struct{ name, args string }{
		{"edit", `{"action":"write","path":"greet.sh","text":"echo hello, $1\n"}`},
		{"bash", `{"command":"sh greet.sh world"}`},
		{"edit", `{"action":"view","path":"../../etc/passwd"}`},
	}}
	said := ""
	for {
		name, args, more := m.next(specs, said)
		if !more {
			break
		}
		r, err := tools.Call(context.Background(), name, args, nil)
		if err != nil {
			said = err.Error() // no tool has that name
			continue
		}
		said = r.Text
	}
	// Output:
	// created greet.sh, 15 bytes, sha256 2f95c5a61835e7dc857d9967af7e04e49ce20cc3fae943eb43072ee5de5dbc53
	// exit 0
	//
	// hello, world
	//
	// SANDBOX_VIOLATION: ../../etc/passwd lies outside of the workspace and the added roots
	// hint: name a path relative to the workspace, or absolute inside one of the roots; --allow-read DIR and --allow-write DIR add one
}
