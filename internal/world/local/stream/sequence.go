package stream

import (
	"bytes"
	"strings"
)

// verdict says what becomes of a control sequence. Unset means dropped.
type verdict uint8

const (
	dropOther verdict = iota
	dropClipboard
	dropReport
	keep
)

// judgeEscape judges a complete ESC sequence other than CSI and strings.
func judgeEscape(seq []byte) verdict {
	final := seq[len(seq)-1]
	switch {
	case len(seq) > 5:
		return dropOther // no terminal knows so many intermediates
	case seq[1] == '%' && string(seq) != "\x1b%G":
		return dropOther // leaves UTF-8: letters would turn into controls
	case string(seq) == "\x1b G":
		return dropOther // answers would come as 8-bit controls
	case len(seq) == 2 && final == 'G':
		return dropReport // rxvt answers "ESC G Q" with a line of text
	}
	return keep
}

// judgeControl judges a complete CSI sequence. Requests with an answer of
// fixed form, made of numbers or of the terminal's own name, pass: full-screen
// programs wait for them (DA, DSR 5 and 6, DECRQM, XTVERSION, kitty's "? u",
// sizes). Those whose answer carries text that a command can choose or see on
// the screen do not.
func judgeControl(seq []byte) verdict {
	private, params, inter, final, ok := splitControl(seq)
	if !ok {
		return dropOther // terminals differ on what it means
	}
	if inter == "" && final == 'm' {
		return keep // colours, the most frequent by far
	}
	switch inter + string(final) {
	case "i":
		return dropOther // prints the screen, or all that follows
	case "t":
		for i, n := range numbers(params) {
			if n > 9999 || i == 0 && (n == 20 || n == 21) {
				return dropReport // types the title, which a command may set
			}
		}
	case "n":
		if n := numbers(params); private == 0 && !(len(n) == 1 && (n[0] == 5 || n[0] == 6)) {
			return dropReport // rxvt's 7 types a line of text
		}
	case "*y", "#|":
		return dropReport // checksums and attributes read the screen
	case "$u":
		return dropReport // the terminal's whole state
	case "*z":
		return dropOther // runs a macro
	case "h", "l":
		for _, n := range numbers(params) {
			switch {
			case n > 99999:
				return dropOther // may wrap around to another number
			case private == '?' && n == 5522:
				return dropClipboard // kitty: paste events with the content
			case private == '?' && n == 2 && final == 'l':
				return dropOther // VT52 mode has another grammar
			}
		}
	}
	return keep
}

// splitControl takes a CSI sequence apart: an optional private marker,
// parameters, intermediates and the final byte, in this order or not at all.
func splitControl(seq []byte) (private byte, params []byte, inter string, final byte, ok bool) {
	body := seq[2 : len(seq)-1]
	final = seq[len(seq)-1]
	if len(body) > 0 && body[0] >= '<' && body[0] <= '?' {
		private, body = body[0], body[1:]
	}
	i := 0
	for i < len(body) && body[i] >= '0' && body[i] <= ';' {
		i++
	}
	for _, c := range body[i:] {
		if c < ' ' || c > '/' {
			return 0, nil, "", 0, false
		}
	}
	return private, body[:i], string(body[i:]), final, true
}

// numbers returns the parameters. One that is left out is 0, one that is
// larger than any in use is 1000000, and a sub-parameter counts as its own.
func numbers(params []byte) []int {
	list := []int{0}
	for _, c := range params {
		last := &list[len(list)-1]
		switch {
		case c == ';' || c == ':':
			list = append(list, 0)
		case *last < 100000:
			*last = *last*10 + int(c-'0')
		default:
			*last = 1000000
		}
	}
	return list
}

// judgeString judges the content of a string sequence. Here only what is known
// to be harmless passes: new dangerous strings are invented every year.
func judgeString(intro byte, s []byte) verdict {
	switch intro {
	case ']':
		return judgeOSC(string(s))
	case 'P':
		return judgeDCS(string(s))
	case '_':
		return judgeAPC(string(s))
	case 'k':
		return keep // a window's title in screen and tmux
	}
	return dropOther // SOS, PM: no use
}

func judgeOSC(s string) verdict {
	number, data, _ := strings.Cut(s, ";")
	code := 0
	for _, c := range []byte(number) {
		if c < '0' || c > '9' || code > 99999 {
			return dropOther // another system's letters, or made to confuse
		}
		code = code*10 + int(c-'0')
	}
	if number == "" {
		return dropOther
	}
	switch {
	case code <= 2: // titles
		return keep
	case code == 4, code >= 10 && code <= 19, code == 22: // colours, pointer
		if strings.Contains(data, "?") {
			return dropReport
		}
		return keep
	case code == 104, code >= 110 && code <= 119: // colours back
		return keep
	case code == 7: // working directory, as a title
		return keep
	case code == 8:
		return judgeLink(data)
	case code == 9:
		return judgeNotice(data)
	case code == 50: // the font; "?" types its name, which can be set
		return dropReport
	case code == 52, code == 5522:
		return dropClipboard
	case code == 133: // marks of a prompt
		return keep
	case code == 777:
		if strings.HasPrefix(data, "notify;") { // other words call extensions
			return keep
		}
	case code == 1337:
		return judgeITerm(data)
	}
	return dropOther
}

// judgeLink lets through links that a click opens in a browser, a mail program
// or a file manager. Other schemes start programs.
func judgeLink(data string) verdict {
	_, uri, ok := strings.Cut(data, ";")
	if !ok {
		return dropOther
	}
	if uri == "" {
		return keep // the end of a link
	}
	scheme, _, _ := strings.Cut(uri, ":")
	switch strings.ToLower(scheme) {
	case "http", "https", "mailto", "file", "ftp":
		return keep
	}
	return dropOther
}

// judgeNotice judges OSC 9: a note to the user, progress ("4;..."), or one of
// ConEmu's numbered functions, which run macros and programs.
func judgeNotice(data string) verdict {
	first, _, _ := strings.Cut(data, ";")
	if first == "4" || strings.Trim(first, "0123456789") != "" {
		return keep
	}
	return dropOther
}

// judgeITerm judges OSC 1337. Pictures are let through by flows.
func judgeITerm(data string) verdict {
	key, _, _ := strings.Cut(data, "=")
	switch key {
	case "SetMark", "CurrentDir", "ReportCellSize":
		return keep
	case "Copy", "CopyToClipboard", "EndCopy":
		return dropClipboard
	case "ReportVariable":
		return dropReport
	}
	return dropOther
}

// judgeDCS: what is not a picture (see flows) or a mark of synchronized output
// asks for reports, defines keys and macros, or goes through a multiplexer.
func judgeDCS(s string) verdict {
	switch head := strings.TrimLeft(s, "0123456789;"); {
	case s == "=1s", s == "=2s":
		return keep
	case strings.HasPrefix(head, "$q"), strings.HasPrefix(head, "+q"):
		return dropReport // DECRQSS, XTGETTCAP: the answer repeats the question
	}
	return dropOther
}

// judgeAPC lets kitty's pictures through if the data come along. By the other
// ways the terminal would open, and may delete, files of the host.
func judgeAPC(s string) verdict {
	keys, isPicture := strings.CutPrefix(s, "G")
	if !isPicture {
		return dropOther
	}
	keys, _, _ = strings.Cut(keys, ";")
	for pair := range strings.SplitSeq(keys, ",") {
		if strings.HasPrefix(pair, "t") && pair != "t=d" || strings.ContainsAny(pair, " ") {
			return dropOther
		}
	}
	return keep
}

// endsHead tells whether c is where a picture's data may begin.
func endsHead(intro, c byte) bool {
	return intro == 'P' && c != ';' && (c < '0' || c > '9') || intro == ']' && c == ':'
}

// flows tells whether a string that has come to the end of its head is a
// picture: sixels, or an iTerm2 file to be shown. Pictures have megabytes, so
// what follows passes as it comes.
func flows(intro byte, held []byte) bool {
	if intro == 'P' {
		// Letters of other scripts do not end a head, and stand in none.
		return held[len(held)-1] == 'q' && len(bytes.TrimLeft(held[2:len(held)-1], "0123456789;")) == 0
	}
	args, isFile := bytes.CutPrefix(held[2:len(held)-1], []byte("1337;File="))
	shown := 0
	for arg := range bytes.SplitSeq(args, []byte(";")) {
		if !bytes.HasPrefix(bytes.ToLower(bytes.TrimSpace(arg)), []byte("inline")) {
			continue
		}
		if string(arg) != "inline=1" {
			return false // saved to the downloads instead
		}
		shown++
	}
	return isFile && shown == 1
}
