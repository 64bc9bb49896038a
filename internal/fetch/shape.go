package fetch

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"golang.org/x/net/html/charset"

	"github.com/tether-sandbox/tether/fault"
)

// maxPage is how much of a page is converted: a tree takes many times the
// memory of its text.
const maxPage = 1 << 20

// shape turns a body into readable text where it is a text.
func shape(ctx context.Context, res *Response, declared string) error {
	if !textual(res.Type) {
		res.Form = Binary
		return nil
	}
	raw := res.Body
	page := res.Type == "text/html" || res.Type == "application/xhtml+xml"
	if page && len(raw) > maxPage {
		raw, res.Truncated = raw[:maxPage], true
	}
	text, name := toUTF8(raw, declared)
	res.Form, res.Body, res.Charset = Text, text, name
	if !page {
		return nil
	}
	converted, err := markdown(ctx, res.URL, text)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil { // what cannot be converted stays as it is
		res.Form, res.Body = Markdown, converted
	}
	return nil
}

func textual(t string) bool {
	if strings.HasPrefix(t, "text/") || strings.HasSuffix(t, "+json") || strings.HasSuffix(t, "+xml") {
		return true
	}
	switch t {
	case "application/json", "application/xml", "application/javascript", "application/ecmascript", "application/x-javascript",
		"application/yaml", "application/x-yaml", "application/toml", "application/x-sh", "application/x-ndjson", "application/jsonl",
		"application/x-www-form-urlencoded", "application/sql", "application/graphql", "application/rtf", "application/x-tex":
		return true
	}
	return false
}

// toUTF8 converts a text from its character set, as declared, marked in the
// text itself or guessed. What is not valid in it becomes U+FFFD.
func toUTF8(raw []byte, declared string) (text []byte, name string) {
	e, name, certain := charset.DetermineEncoding(raw[:min(len(raw), 1024)], declared)
	if !certain && utf8.Valid(raw) {
		name = "utf-8" // the guess saw the beginning only
	}
	if name != "utf-8" {
		if out, err := e.NewDecoder().Bytes(raw); err == nil {
			raw = out
		}
	}
	raw = bytes.TrimPrefix(raw, []byte("\ufeff"))
	return bytes.ToValidUTF8(raw, []byte("\ufffd")), name
}

// markdown converts a page that lies at address, to which its links are
// relative. It is done in a goroutine of its own, which a page
// that is hard to convert keeps busy for longer than anybody waits.
func markdown(ctx context.Context, address string, page []byte) ([]byte, error) {
	type result struct {
		b   []byte
		err error
	}
	done := make(chan result, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil { // the parser's way to refuse depth
				done <- result{nil, fault.New(fault.FetchFailed, "the page cannot be converted")}
			}
		}()
		doc, err := html.Parse(bytes.NewReader(page))
		if err != nil {
			done <- result{nil, err}
			return
		}
		tame(doc, 0)
		c := converter.NewConverter(converter.WithEscapeMode(converter.EscapeModeDisabled), converter.WithPlugins(base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(), table.NewTablePlugin()))
		b, err := c.ConvertNode(doc, converter.WithContext(ctx), converter.WithDomain(address))
		done <- result{b, err}
	}()
	select {
	case r := <-done:
		return r.b, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// tame takes out of a page what costs far more than it says: images that stand
// in the page itself, cells that span others, lists and quotes that are nested
// deeper than anybody follows (each level is written before each line), and the
// form of tables so large that nobody reads them as such.
func tame(n *html.Node, depth int) (rows, columns int) {
	switch n.DataAtom {
	case atom.Blockquote, atom.Ul, atom.Ol, atom.Li, atom.Dl, atom.Dd:
		if depth++; depth > maxDepth {
			n.DataAtom, n.Data = atom.Div, "div"
		}
	}
	for child := n.FirstChild; child != nil; child = child.NextSibling {
		r, c := tame(child, depth)
		rows, columns = rows+r, max(columns, c)
	}
	if n.Type != html.ElementNode {
		return rows, columns
	}
	n.Attr = slices.DeleteFunc(n.Attr, func(a html.Attribute) bool {
		inline := (a.Key == "src" || a.Key == "href" || a.Key == "srcset") && len(a.Val) > 5 && strings.EqualFold(a.Val[:5], "data:")
		return inline || a.Key == "colspan" || a.Key == "rowspan"
	})
	switch n.DataAtom {
	case atom.Tr:
		cells := 0
		for child := n.FirstChild; child != nil; child = child.NextSibling {
			cells++
		}
		return rows + 1, max(columns, cells)
	case atom.Table:
		if rows*columns > maxCells {
			plain(n)
		}
		return 0, 0
	}
	return rows, columns
}

const (
	maxCells = 20000
	maxDepth = 20
)

// plain makes paragraphs of a table's rows.
func plain(n *html.Node) {
	for child := n.FirstChild; child != nil; child = child.NextSibling {
		plain(child)
	}
	switch n.DataAtom {
	case atom.Table, atom.Thead, atom.Tbody, atom.Tfoot, atom.Tr:
		n.DataAtom, n.Data = atom.Div, "div"
	case atom.Td, atom.Th:
		n.DataAtom, n.Data = atom.Span, "span"
		n.AppendChild(&html.Node{Type: html.TextNode, Data: " "})
	}
}
