package tool

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tether-sandbox/tether"
	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/fetch"
)

const fetchText = "Get one document from the web by http or https: a page comes as Markdown, other text as it is. Every address, also of redirects, is checked against the policy; at most 10 MiB and 30 s." + refusedText

// The forms of a document that are not raw.
const (
	FormText     = fetch.Text
	FormMarkdown = fetch.Markdown
	FormBinary   = fetch.Binary
)

// FetchInput asks for one document.
type FetchInput struct {
	URL    string `json:"url" doc:"absolute http or https address"`
	Method string `json:"method,omitempty" enum:"GET,HEAD,POST" doc:"default: GET, or POST with body"`
	// Headers go to the host of URL only, not to another that it redirects to.
	Headers map[string]string `json:"headers,omitempty" doc:"request headers; no secrets: they are found and refused"`
	Body    string            `json:"body,omitempty" doc:"what to send, with POST"`
	Raw     bool              `json:"raw,omitempty" doc:"the text of a page as it is, not as Markdown"`
	Offset  int               `json:"offset,omitempty" doc:"leave out so many bytes of the text, to read on where an earlier answer was cut"`
	Max     int               `json:"max_bytes,omitempty" doc:"at most so many bytes of text (default 65536)"`
}

// FetchOutput is what came. An error status of the server is no Error.
type FetchOutput struct {
	URL       string   `json:"url,omitempty" doc:"the final address"`
	Redirects []string `json:"redirects,omitempty" doc:"the addresses before it"`
	// Status is HTTP's.
	Status  int        `json:"status,omitempty"`
	Type    string     `json:"type,omitempty" doc:"media type"`
	Charset string     `json:"charset,omitempty" doc:"what the text was converted from"`
	Size    int64      `json:"size" doc:"bytes that came, decoded"`
	Form    fetch.Form `json:"form,omitempty" enum:"text,markdown,raw,binary" doc:"what text is; binary: no text, and none is given"`
	// Text is what came, as Form says.
	Text string `json:"text"`
	// Truncated: there is more than Text; NextOffset reads on, unless it is
	// zero and the rest was never converted.
	Truncated  bool               `json:"truncated" doc:"there is more than text"`
	NextOffset int                `json:"next_offset,omitempty" doc:"offset to read on with"`
	Redacted   []tether.Redaction `json:"redacted,omitempty" doc:"secrets that were replaced by [REDACTED:NAME]"`
	Denials    []tether.Denial    `json:"denials,omitempty" doc:"what the policy refused, and the one thing that allows each"`
	Widened    []string           `json:"widened,omitempty" doc:"what the environment opens beyond the policy"`
	Error      *Error             `json:"error,omitempty" doc:"why nothing came"`
}

// Fetch gets one document.
func (t *Tools) Fetch(ctx context.Context, in FetchInput) FetchOutput {
	if in.Max < 0 || in.Offset < 0 {
		return FetchOutput{Error: asError(invalid("offset and max_bytes cannot be negative"))}
	}
	out, body, err := t.fetch(ctx, in)
	if err != nil {
		out.Error = asError(err)
		return out
	}
	if out.Form == fetch.Binary {
		return out
	}
	text := strings.ToValidUTF8(string(body), "\uFFFD")
	if in.Offset > 0 {
		text = fromRune(text, in.Offset)
	}
	most := in.Max
	if most == 0 {
		most = defaultView
	}
	if len(text) > most {
		for most > 0 && !utf8.RuneStart(text[most]) {
			most--
		}
		text, out.Truncated, out.NextOffset = text[:most], true, in.Offset+most
	}
	out.Text = text
	return out
}

// FetchBytes is Fetch with all of the body, redacted, in place of Text: for
// programs that pass it on. Offset and Max are not looked at.
func (t *Tools) FetchBytes(ctx context.Context, in FetchInput) (FetchOutput, []byte) {
	out, body, err := t.fetch(ctx, in)
	if err != nil {
		out.Error = asError(err)
	}
	return out, body
}

func (t *Tools) fetch(ctx context.Context, in FetchInput) (FetchOutput, []byte, error) {
	web, err := t.session.Web(ctx, in.URL)
	if err != nil {
		return FetchOutput{}, nil, err
	}
	c := fetch.Client{Dial: web.DialContext, Secret: web.Secret, Agent: "tether-fetch", Time: fetch.DefaultTime}
	if limit := t.session.Policy().Limits.Time; limit > 0 {
		c.Time = min(c.Time, limit)
	}
	r, err := c.Do(ctx, fetch.Request{URL: in.URL, Method: in.Method, Header: in.Headers, Body: in.Body, Raw: in.Raw})
	web.Done(err)
	out := FetchOutput{Denials: web.Denials(), Widened: web.Widened()}
	if err != nil {
		return out, nil, err
	}
	out.URL, out.Status, out.Type, out.Charset, out.Size, out.Form = web.Redact(r.URL), r.Status, web.Redact(r.Type), r.Charset, r.Size, r.Form
	for _, u := range r.Redirects {
		out.Redirects = append(out.Redirects, web.Redact(u))
	}
	out.Truncated = r.Truncated
	body := web.Redact(string(r.Body))
	out.Redacted = web.Redacted()
	return out, []byte(body), nil
}

// fromRune returns text from an offset on, or from the next character's begin.
func fromRune(text string, offset int) string {
	if offset >= len(text) {
		return ""
	}
	for offset < len(text) && !utf8.RuneStart(text[offset]) {
		offset++
	}
	return text[offset:]
}

func fetchResult(out FetchOutput) Result {
	return Result{Output: out, Text: out.String(), Failed: out.Error != nil}
}

// String is the output for people and models: first what Tether says, then what
// came, so that nothing in a page passes for a word of Tether's.
func (o FetchOutput) String() string {
	var b strings.Builder
	if o.Error != nil {
		b.WriteString(o.Error.String())
	} else {
		fmt.Fprintf(&b, "status %d, %s, %d bytes, %s, from %s", o.Status, line(o.Type), o.Size, o.Form, line(o.URL))
	}
	for _, d := range o.Denials {
		if o.Error == nil || o.Error.Code != fault.EgressDenied {
			fmt.Fprintf(&b, "\ndenied: %s: %s: %s", d.Code, line(d.What), line(d.Rule))
		}
	}
	for _, w := range o.Widened {
		b.WriteString("\nnote: " + line(w))
	}
	if len(o.Redacted) > 0 {
		b.WriteString("\nnote: [REDACTED:NAME] stands for a secret")
	}
	switch {
	case o.NextOffset > 0:
		fmt.Fprintf(&b, "\nnote: the text was cut; offset %d reads on", o.NextOffset)
	case o.Truncated:
		b.WriteString("\nnote: only the beginning of the page was converted; raw gives all of it")
	case o.Form == fetch.Binary:
		b.WriteString("\nnote: it is no text and is not shown")
	}
	if o.Text != "" {
		b.WriteString("\n\n" + o.Text)
	}
	return b.String()
}
