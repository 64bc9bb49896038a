package guard

import (
	"path"
	"strings"
)

// shape says which words of a command are text and no path, how the options
// are read to find that out, and which options make it run or read something
// that is not in the text. What is not said is a path, so a mistake here by
// omission refuses too much, never too little.
type shape struct {
	all        bool   // every word is text
	text, path string // short options whose value is text, or a path
	longText   string // long options whose value may stand apart and is text
	longPath   string // the same, and is a path
	first      bool   // the first operand is text ...
	unless     string // ... unless one of these short options
	unlessLong string // or these long ones is given
	run        string // options that run a program, or read names from a file
	anyOperand bool   // every operand is text, but option values are paths
}

// shapes are by name; the zero shape fits an unknown command.
func shapes(name string) shape {
	switch name {
	case "echo", "true", "false", ":", "basename", "dirname", "expr", "seq", "sleep", "return", "exit", "break",
		"continue", "shift", "set", "tr", "yes", "whoami", "tput", "factor", "numfmt", "cal", "kill", "ulimit", "umask", "test", "[", "printf":
		return shape{all: true}
	case "grep", "egrep", "fgrep", "ggrep", "zgrep":
		return shape{text: "eABCmdD", path: "f", first: true, unless: "ef", unlessLong: "regexp file",
			longText: "regexp after-context before-context context max-count include exclude exclude-dir label binary-files devices directories",
			longPath: "file exclude-from"}
	case "rg":
		return shape{text: "eABCmgtTrEjMd", path: "f", first: true, unless: "ef",
			unlessLong: "regexp file files type-list",
			longText:   "regexp glob iglob type type-not after-context before-context context max-count replace encoding threads max-columns max-depth sort sortr color colors path-separator context-separator engine max-filesize",
			longPath:   "file ignore-file", run: "--pre --hostname-bin --search-zip -z"}
	case "ag":
		return shape{text: "mG", first: true, run: "--pager", unless: "g"} // -A may do without a value
	case "ack":
		return shape{run: "--pager --ackrc --output"}
	case "cut":
		return shape{text: "dfbc", longText: "delimiter fields bytes characters output-delimiter"}
	case "sort", "gsort":
		return shape{text: "tkS", path: "oT", longText: "field-separator key buffer-size parallel sort",
			run: "--compress-program --files0-from"}
	case "join":
		return shape{text: "taveoj12"}
	case "paste":
		return shape{text: "d", longText: "delimiters"}
	case "column":
		return shape{text: "socNHRTEWO"}
	case "nl":
		return shape{text: "bdfhilnsvw"}
	case "head", "tail":
		return shape{text: "nc", longText: "lines bytes"}
	case "date", "gdate":
		return shape{text: "d", path: "fr", longText: "date", longPath: "file reference", anyOperand: true}
	case "curl":
		return shape{text: "AXHuwe", run: "-K --config --libcurl --netrc-file --proto-redir -: --next", longText: "header user-agent request user referer"}
	case "wget":
		return shape{longText: "header user-agent referer", run: "--use-askpass -i --input-file --config -e --execute"}
	case "gh":
		return shape{text: "btq", longText: "body title jq template"}
	case "tar", "gtar", "bsdtar":
		return shape{longText: "exclude transform xform strip-components",
			run: "--checkpoint-action --to-command --use-compress-program -I --rsh-command --rmt-command --info-script --new-volume-script -F -P --absolute-names -T --files-from"}
	case "rsync":
		return shape{run: "-e --rsh --rsync-path --files-from --daemon --config", longText: "exclude include filter"}
	case "zip":
		return shape{run: "-T -TT --unzip-command --test -@"}
	case "split":
		return shape{run: "--filter"}
	case "wc", "du":
		return shape{run: "--files0-from"}
	case "man":
		return shape{run: "-P --pager -H --html -B -C --config-file -l --local-file"}
	case "less", "more", "most":
		return shape{run: "-k --lesskey-file --lesskey-src --lesskey-content -o -O --log-file --LOG-FILE"}
	case "fd", "fdfind":
		return shape{text: "eEtdSc", first: true, run: "-x -X --exec --exec-batch", longText: "exclude glob extension type max-depth color"}
	case "bat", "batcat":
		return shape{run: "--pager", longText: "language theme style"}
	case "make", "gmake", "ninja":
		return shape{run: "--eval -E"}
	case "go":
		return shape{run: "-exec --exec -toolexec --toolexec -vettool --vettool -overlay --overlay"}
	case "cargo":
		return shape{run: "--config"}
	case "cc", "gcc", "g++", "c++", "clang", "clang++":
		return shape{run: "-wrapper -fplugin -B -specs --specs"}
	case "npx", "npm", "pnpm", "yarn", "bunx":
		return shape{run: "-c --call --script-shell --node-options"}
	case "nc", "netcat":
		return shape{run: "-e -c --exec --sh-exec"}
	case "diff":
		return shape{text: "IFxU", longText: "exclude ignore-matching-lines"}
	case "xxd", "od", "hexdump":
		return shape{}
	}
	return shape{}
}

// operands checks the arguments of an ordinary command.
func (l *look) operands(name string, args []token, in dirs) {
	s := shapes(name)
	if s.all {
		return
	}
	if s.run != "" {
		for _, t := range args {
			if t.text == "--" && t.exact() {
				break
			}
			if t.option {
				l.opaque("a word of "+name+" may become an option that runs a program", "put -- before it, or write ./* for *")
				break
			}
			for _, f := range strings.Fields(s.run) {
				if flagHit(t.text, f) {
					l.unsure(name + " " + f + " runs or reads what is not in the text")
					return
				}
			}
		}
	}
	switch name {
	case "less", "more", "most", "man":
		for _, t := range args {
			if strings.HasPrefix(t.text, "+") {
				l.unsure(name + " + runs commands")
			}
		}
	case "make", "gmake":
		for i, t := range args {
			if strings.Contains(t.text, "$(") || strings.Contains(t.text, "${") || strings.HasPrefix(t.text, "SHELL") ||
				strings.Contains(t.text, "!=") || strings.Contains(t.text, "/dev/") || t.text == "-f-" || t.text == "-" && i > 0 {
				l.unsure("make runs text from the command line")
			}
		}
	case "curl":
		l.curl(args, in)
		return
	}
	if !s.first {
		for i, t := range args[:max(len(args)-1, 0)] {
			// uv run python -c ..., poetry run sh -c ...: runners that are
			// not written here, too.
			next := args[i+1].text
			if !t.exact() || len(next) < 2 || next[0] != '-' {
				continue
			}
			base := path.Base(t.text)
			if it, ok := interpreter(base); ok && strings.ContainsAny(next, it.inline) {
				l.interpret(base, it, args[i+1:], in)
				break
			}
			if isShell(base) && strings.IndexByte(next, 'c') > 0 {
				l.runShell(base, args[i+1:], in)
				break
			}
		}
	}
	l.byShape(s, args, in)
}

// byShape checks every word but those that the shape calls text. A word that
// may vanish, multiply or become an option makes the places of others unsure,
// and then they are all paths.
func (l *look) byShape(s shape, args []token, in dirs) {
	first := -1
	if s.first && !l.given(s, args) {
		first = s.firstOperand(args)
	}
	shifted := false
	for i := 0; i < len(args) && !l.done; i++ {
		t := args[i]
		if shifted {
			l.path(t, in)
			continue
		}
		if t.text == "--" && t.exact() {
			for j, t := range args[i+1:] {
				if i+1+j != first && !(s.anyOperand && strings.HasPrefix(t.text, "+")) {
					l.path(t, in)
				}
			}
			return
		}
		if i == first || s.anyOperand && strings.HasPrefix(t.text, "+") {
			if t.option || optionAfter(args[i+1:]) {
				l.path(t, in)
			}
			continue
		}
		shifted = t.shift
		if len(t.text) < 2 || t.text[0] != '-' || !t.known() {
			l.path(t, in)
			continue
		}
		kind, glued := s.option(t)
		switch {
		case kind == 0:
			l.path(t, in)
		case glued == 0: // the value is the next word
			if i++; i < len(args) && (kind == 'p' || args[i].shift) {
				l.path(args[i], in)
				shifted = args[i].shift
			}
		case kind == 'p':
			l.path(t.from(glued), in)
		}
	}
}

// optionAfter says that a word after a pattern may turn out to be an option
// such as -e or -f, which makes the pattern a file.
func optionAfter(args []token) bool {
	for _, t := range args {
		if t.text == "--" && t.exact() {
			return false
		}
		if t.hidesOption() {
			return true
		}
	}
	return false
}

// option returns 't' or 'p' when t gives an option with a value of text or a
// path, and where the value begins in t, or 0 when it is the next word.
func (s shape) option(t token) (kind byte, at int) {
	if long, ok := strings.CutPrefix(t.text, "--"); ok {
		name, _, eq := strings.Cut(long, "=")
		switch {
		case listed(s.longText, name):
			kind = 't'
		case listed(s.longPath, name):
			kind = 'p'
		}
		if eq {
			at = len(name) + 3
		} else if kind == 0 && name != "" {
			for _, w := range strings.Fields(s.longPath) { // abbreviated
				if strings.HasPrefix(w, name) {
					kind = 'p'
				}
			}
		}
		return kind, at
	}
	for j := 1; j < len(t.text); j++ {
		c := t.text[j]
		switch {
		case strings.IndexByte(s.text, c) >= 0:
			kind = 't'
		case strings.IndexByte(s.path, c) >= 0:
			kind = 'p'
		default:
			if !isLetter(c) && (c < '0' || c > '9') {
				return 0, 0
			}
			continue
		}
		if j+1 < len(t.text) {
			at = j + 1
		}
		return kind, at
	}
	return 0, 0
}

// given says that an option replaces the first operand as the pattern.
func (l *look) given(s shape, args []token) bool {
	for i := 0; i < len(args); i++ {
		t := args[i]
		if t.text == "--" && t.exact() {
			return false
		}
		if len(t.text) < 2 || t.text[0] != '-' {
			continue
		}
		if long, ok := strings.CutPrefix(t.text, "--"); ok {
			name, _, _ := strings.Cut(long, "=")
			for _, u := range strings.Fields(s.unlessLong) {
				if strings.HasPrefix(u, name) {
					return true
				}
			}
		} else {
			for j := 1; j < len(t.text); j++ {
				if strings.IndexByte(s.unless, t.text[j]) >= 0 {
					return true
				}
				if strings.IndexByte(s.text, t.text[j]) >= 0 || strings.IndexByte(s.path, t.text[j]) >= 0 {
					break
				}
			}
		}
		if kind, at := s.option(t); kind != 0 && at == 0 {
			i++
		}
	}
	return false
}

// firstOperand is the index of the first word that is no option and no value
// of one.
func (s shape) firstOperand(args []token) int {
	for i := 0; i < len(args); i++ {
		t := args[i]
		if t.text == "--" && t.exact() {
			if i+1 < len(args) {
				return i + 1
			}
			return -1
		}
		if len(t.text) < 2 || t.text[0] != '-' {
			return i
		}
		if kind, at := s.option(t); kind != 0 && at == 0 {
			i++
		}
	}
	return -1
}

// curl: data is text unless it names a file with @ or <.
func (l *look) curl(args []token, in dirs) {
	s := shapes("curl")
	for i := 0; i < len(args) && !l.done; i++ {
		t := args[i]
		kind, at := byte(0), 0
		if strings.HasPrefix(t.text, "-") && t.known() {
			kind, at = s.option(t)
		}
		data := kind != 0
		if !data {
			switch t.text {
			case "-d", "--data", "--data-raw", "--data-binary", "--data-ascii", "--json", "--data-urlencode":
				data, at = true, 0
			}
		}
		if !data {
			l.path(t, in)
			continue
		}
		v := token{}
		if at > 0 {
			v = t.from(at)
		} else if i++; i < len(args) {
			v = args[i]
		}
		switch {
		case strings.HasPrefix(v.text, "@"):
			l.path(v.from(1), in)
		case v.option || v.shift || strings.Contains(v.text, "%output") || t.text == "--data-urlencode":
			l.path(v, in)
		}
	}
}
