package mcpserver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tether-sandbox/tether"
	"github.com/tether-sandbox/tether/fact"
)

// maxQuestion is the longest question, in bytes, that is put: nobody reads a
// longer one.
const maxQuestion = 3000

// asker puts questions to the person behind the client, by elicitation. Whoever
// writes the arguments of a call has no part in that: answers come beside them,
// from the client itself.
type asker struct{}

// asking is what a call needs to ask. A client of the new protocol answers by
// calling again, so that its question ends the call.
type asking struct {
	req *mcp.CallToolRequest
	put mcp.InputRequestMap
}

type askingKey struct{}

// canAsk says whether a client can put questions to a person.
func canAsk(req *mcp.CallToolRequest) bool {
	caps := req.ClientCapabilities()
	return caps != nil && caps.Elicitation != nil && (caps.Elicitation.Form != nil || caps.Elicitation.URL == nil)
}

var errLater = errors.New("the client puts the question, and calls again")

// Approve implements [tether.Approver].
func (asker) Approve(ctx context.Context, q tether.Question) (tether.Answer, error) {
	call, ok := ctx.Value(askingKey{}).(*asking)
	if !ok {
		return tether.Answer{}, errors.New("nobody can be asked outside of a call")
	}
	text := question(q)
	if len(text) > maxQuestion {
		return tether.Answer{}, errors.New("the question is too long to be read")
	}
	params := &mcp.ElicitParams{Mode: "form", Message: text, RequestedSchema: form(q)}
	if call.req.ProtocolVersion() < newProtocol {
		r, err := call.req.Session.Elicit(ctx, params)
		if err != nil {
			return tether.Answer{}, err
		}
		return reply(r), nil
	}
	if q.Grant.Host != "" { // the command has run, and would run again
		return tether.Answer{}, errors.New("this client cannot be asked about a host without running the command again")
	}
	// The name is the question's, so that no answer passes for that to another.
	sum := sha256.Sum256([]byte(text))
	name := "ask-" + hex.EncodeToString(sum[:12])
	if r, ok := call.req.Params.InputResponses[name].(*mcp.ElicitResult); ok {
		return reply(r), nil
	}
	call.put = mcp.InputRequestMap{name: params}
	return tether.Answer{}, errLater
}

// WhileRunning implements [tether.LiveApprover]. A client of the new protocol is
// asked by ending the call.
func (asker) WhileRunning(ctx context.Context) bool {
	call, ok := ctx.Value(askingKey{}).(*asking)
	return ok && call.req.ProtocolVersion() < newProtocol
}

// scopes are the answers, from narrow to wide.
func scopes(q tether.Question) []string {
	list := []string{"no", string(fact.Once), string(fact.Session)}
	if q.Session != "" {
		list = append(list, string(fact.Project))
	}
	return list
}

func form(q tether.Question) json.RawMessage {
	raw, err := json.Marshal(map[string]any{"type": "object", "required": []string{"allow"},
		"properties": map[string]any{"allow": map[string]any{"type": "string", "title": "Allow it",
			"description": "once, for this session, or for this project", "enum": scopes(q), "default": "no"}}})
	if err != nil {
		panic(err) // there is nothing in it that cannot be encoded
	}
	return raw
}

// reply reads an answer. What is not exactly a yes is no.
func reply(r *mcp.ElicitResult) tether.Answer {
	if r.Action != "accept" {
		return tether.Answer{By: fact.Person}
	}
	allow, _ := r.Content["allow"].(string)
	switch scope := fact.Scope(allow); scope {
	case fact.Once, fact.Session, fact.Project:
		return tether.Answer{Scope: scope, By: fact.Person}
	}
	return tether.Answer{By: fact.Person}
}

// question is a question as a client shows it: foreign text on lines of its own.
func question(q tether.Question) string {
	var b strings.Builder
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(&b, "%s: %s\n", name, plain(text))
		}
	}
	b.WriteString("Tether refused something that you can allow.\n")
	line("session", q.Session)
	line("workspace", q.Workspace)
	line("refused", q.Denied)
	line("wanted", q.Why)
	g := q.Grant
	switch {
	case g.Path != "" && g.Write:
		b.WriteString("allow: to read and write " + plain(g.Path))
	case g.Path != "":
		b.WriteString("allow: to read " + plain(g.Path))
	case g.Host != "":
		b.WriteString("allow: to reach " + plain(g.Host))
	case g.Mode != "":
		b.WriteString("allow: the mode " + plain(g.Mode))
	default:
		b.WriteString("allow: the command " + plain(tether.CommandLine(g.Command)) + "\nWhat the sandbox closes stays closed.")
	}
	return b.String()
}

// plain keeps foreign text on its line.
func plain(s string) string {
	if q := strconv.Quote(s); strings.ContainsAny(s, "\"\\") || q != `"`+s+`"` {
		return q
	}
	return s
}
