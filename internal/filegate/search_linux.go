package filegate

import (
	"bytes"
	"context"
	"errors"
	"regexp"
	"strings"

	"github.com/tether-sandbox/tether/internal/plan/secrets"
	"golang.org/x/sys/unix"
)

// Bounds of one search.
const (
	maxPattern  = 1 << 10
	maxSearched = 100_000   // files
	maxRead     = 256 << 20 // bytes
	maxLineText = 400
)

var errEnough = errors.New("enough was found")

// Search looks for lines that match, in files as they are decoded for
// [Gate.View]. The cost of a regular expression is linear in what is searched.
// It ends early, Truncated, when ctx does or a bound is reached.
func (g *Gate) Search(ctx context.Context, r SearchRequest) (SearchResult, error) {
	re, err := compileSearch(&r)
	if err != nil {
		return SearchResult{}, err
	}
	glob, err := compileGlob(r.Glob)
	if err != nil {
		return SearchResult{}, err
	}
	if r.Path == "" {
		r.Path = "."
	}
	if r.Max <= 0 || r.Max > MaxMatches {
		r.Max = MaxMatches
	}
	s := searcher{g: g, re: re, most: r.Max, out: SearchResult{Matches: []Match{}}}
	err = g.enter(func() error {
		w, err := g.walk(r.Path)
		if err != nil {
			return err
		}
		defer w.close()
		if len(w.missing) > 0 {
			return w.gone()
		}
		n := w.end()
		if !n.is(unix.S_IFDIR) {
			if err := w.ordinaryFile(); err != nil {
				return err
			}
			return s.file(n, "")
		}
		l := lister{ctx: ctx, g: g, depth: maxDown, glob: glob, found: s.file}
		err = l.list(n, "")
		s.out.Truncated = s.out.Truncated || l.cut
		if err != nil && !errors.Is(err, errEnough) {
			return w.failed(err)
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	if err != nil {
		return SearchResult{}, err
	}
	return s.out, nil
}

// compileSearch makes the regular expression of a request.
func compileSearch(r *SearchRequest) (*regexp.Regexp, error) {
	pattern := r.Pattern
	switch {
	case pattern == "":
		return nil, invalid("there is nothing to search for", "")
	case len(pattern) > maxPattern:
		return nil, invalid("the pattern is longer than 1024 bytes", "search for a part of it")
	case r.Literal:
		pattern = regexp.QuoteMeta(pattern)
	}
	flags := "(?m)"
	if r.IgnoreCase {
		flags = "(?mi)"
	}
	re, err := regexp.Compile(flags + pattern)
	if err != nil {
		return nil, invalid("the pattern is no regular expression: "+err.Error(), "escape special characters, or search for it literally")
	}
	return re, nil
}

type searcher struct {
	g    *Gate
	re   *regexp.Regexp
	most int
	read int64
	out  SearchResult
}

// file searches one file that was judged.
func (s *searcher) file(n *node, _ string) error {
	if n.st.Size > MaxFile {
		s.out.Large++
		return nil
	}
	if s.read += n.st.Size; s.read > maxRead || s.out.Files == maxSearched {
		s.out.Truncated = true
		return errEnough
	}
	raw, st, err := readFile(n, MaxFile)
	if err != nil || st.Size > int64(len(raw)) || n.v.byContent && !secrets.PublicOnly(raw) {
		return nil
	}
	if gitConfig(n.name) && !s.g.full() && !n.root.tmp && (n.v.lock.filter || looksBare(n.dir, "")) || n.v.lock.filter {
		if raw, _, err = withoutSecrets(raw, false); err != nil {
			return nil
		}
	}
	enc := detect(raw, false)
	if enc == Binary {
		s.out.Binary++
		return nil
	}
	s.out.Files++
	if (enc == UTF8 || enc == UTF8BOM) && bytes.IndexByte(raw, '\r') < 0 && !s.re.Match(raw) {
		return nil // most files: nothing is copied
	}
	return s.text(s.g.layout.show(n.path), withLF(decode(raw, enc, false)))
}

// text finds the lines of a text that match.
func (s *searcher) text(path, text string) error {
	line, counted := 1, 0
	for at := 0; at <= len(text); {
		m := s.re.FindStringIndex(text[at:])
		if m == nil {
			return nil
		}
		hit := at + m[0]
		if hit == len(text) && hit > 0 && text[hit-1] == '\n' {
			return nil // behind the last line
		}
		line += strings.Count(text[counted:hit], "\n")
		begin := strings.LastIndexByte(text[:hit], '\n') + 1
		end := len(text)
		if i := strings.IndexByte(text[hit:], '\n'); i >= 0 {
			end = hit + i
		}
		if len(s.out.Matches) == s.most {
			s.out.Truncated = true
			return errEnough
		}
		s.out.Matches = append(s.out.Matches, Match{Path: path, Line: line, Text: strings.Clone(shorten(text[begin:end]))})
		counted, at = hit, end+1
	}
	return nil
}

func shorten(line string) string {
	if len(line) <= maxLineText {
		return line
	}
	return string(wholeRunes([]byte(line[:maxLineText])))
}
