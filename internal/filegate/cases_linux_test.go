package filegate

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tether-sandbox/tether/fault"
)

func TestEC137DotDotAndAbsolute(t *testing.T) {
	p := newPlace(t)
	p.write("sub/in", "inside\n")
	p.write(p.top+"/x", secret)
	p.write(p.out+"/f", secret)
	g := p.gate()
	for _, ok := range []string{"sub/in", "./sub/./in", "sub/../sub/in", p.w + "/sub/in", "//" + p.w + "//sub///in", "../w/sub/in", "../../" + filepath.Base(p.top) + "/w/sub/in"} {
		g.shows(ok, "inside")
	}
	g.takes("sub/new")
	out := []string{"../../etc/passwd", "../x", "sub/../../x", "./././../x", p.w + "/../x", "/etc/passwd", "//etc//passwd", "/", "..", "../out/f", "../out/../w/sub/in", "../none/../w/sub/in",
		p.out + "/f", "/proc/self/environ", "/proc/self/root/etc/passwd", "/dev/null", "../../../../../../../../../../etc/passwd"}
	g.noView(out...)
	g.noWrite(out...)
	for _, path := range out {
		_, err := g.List(context.Background(), ListRequest{Path: path})
		g.denied("list", path, err)
		_, err = g.Search(context.Background(), SearchRequest{Path: path, Pattern: "."})
		g.denied("search", path, err)
	}
}

func TestEC138PrefixWithoutSeparator(t *testing.T) {
	p := newPlace(t)
	p.write("x", "inside\n")
	for _, dir := range []string{"w-secrets", "w.bak", "W", "w "} {
		p.write(p.top+"/"+dir+"/x", secret)
	}
	g := p.gate()
	g.shows(p.w+"/x", "inside")
	for _, dir := range []string{"w-secrets", "w.bak", "W", "w "} {
		g.noView(p.top + "/" + dir + "/x")
		g.noWrite(p.top+"/"+dir+"/x", p.top+"/"+dir+"/new")
	}
}

func TestEC139SymlinkLeafAndMiddle(t *testing.T) {
	p := newPlace(t)
	p.write("real/f", "inside\n")
	p.write(p.out+"/f", secret)
	p.link("real/f", "leaf")
	p.link(p.w+"/real", "dir")
	p.link("../w/real/f", "round")
	p.link("/etc/passwd", "leak")
	p.link("/", "slash")
	p.link("../out", "up")
	p.link(p.out+"/f", "abs")
	p.link("loop", "loop")
	p.link("/proc/self/root", "magic")
	p.link("/proc/self/cwd", "cwd")
	p.link("up/f", "second")
	g := p.gate()
	g.Gate.Close()
	pl := p.resolve()
	var err error
	if g.Gate, err = Open(pl, Options{}); err != nil { // without /tmp
		t.Fatal(err)
	}
	defer g.Close()
	for _, ok := range []string{"leaf", "round", "dir/f", "dir/../real/f", "dir/../x/../leaf"} {
		if strings.Contains(ok, "x/..") {
			if _, err := g.view(ok); fault.CodeOf(err) != fault.FileNotFound {
				t.Errorf("view %q: got %v, want FILE_NOT_FOUND as from the kernel", ok, err)
			}
			continue
		}
		g.shows(ok, "inside")
	}
	bad := []string{"leak", "slash/etc/passwd", "slash", "up/f", "abs", "loop", "loop/x", "magic/etc/passwd", "cwd", "second"}
	g.noView(bad...)
	g.noWrite(append(bad, "slash/tmp/p", "up/new", "cwd/p")...)
	if got := p.read(p.out + "/f"); got != secret {
		t.Errorf("the file outside was changed: %q", got)
	}
	g.takes("dir/new")
	if p.read("real/new") != "new\n" {
		t.Error("a write through a link inside went elsewhere")
	}
}

func TestEC140MissingTargetBelowLink(t *testing.T) {
	p := newPlace(t)
	p.sh("mkdir in")
	p.link(p.out, "link")
	p.link(p.out+"/new", "dangling")
	p.link("in/new", "inner")
	g := p.gate()
	g.noWrite("link/newdir/f", "dangling", "link/../x", "dangling/x")
	for _, name := range []string{"newdir", "new"} {
		p.absent(p.out + "/" + name)
	}
	p.absent(p.top + "/x")
	g.takes("inner") // control: a dangling link that stays inside
	if got := p.read("in/new"); got != "new\n" {
		t.Errorf("got %q at the target of the link", got)
	}
	g.takes("a/b/c/f")
	if got := p.read("a/b/c/f"); got != "new\n" {
		t.Errorf("got %q in new folders", got)
	}
}

func TestEC143HardLinks(t *testing.T) {
	p := newPlace(t)
	p.write(p.out+"/f", "outside\n")
	p.write(".env", secret)
	p.write("plain", "plain\n")
	p.hardlink(p.out+"/f", "f2")
	p.hardlink(p.out+"/f", "f3")
	p.hardlink(".env", "notes.txt")
	p.hardlink("plain", "plain2")
	p.write(".mcp.json", "{}")
	p.hardlink(".mcp.json", "servers")
	g := p.gate()
	g.shows("f2", "outside")
	g.takes("f2")
	if _, err := g.Replace(ReplaceRequest{Path: "f3", Old: "outside", New: "x"}); err != nil {
		t.Error(err)
	}
	if got := p.read(p.out + "/f"); got != "outside\n" {
		t.Errorf("the file outside was changed: %q", got)
	}
	if got := p.read("f2") + p.read("f3"); got != "new\nx\n" {
		t.Errorf("got %q, want the new contents", got)
	}
	g.takes("plain2")
	if p.read("plain") != "plain\n" {
		t.Error("the other name of a file was changed")
	}
	g.noView("notes.txt")
	g.noWrite("notes.txt")
	g.shows("servers", "{}")
	g.noWrite("servers")
	if p.read(".env") != secret || p.read(".mcp.json") != "{}" {
		t.Error("a protected file was changed through its other name")
	}
}

func TestEC144ProtectedNames(t *testing.T) {
	p := newPlace(t)
	p.sh(`git init -q . && mkdir -p SUB foo.pem .ssh .vscode && printf '[remote "o"]\n\turl = https://u:` + secret + `@h/x\n' >> .git/config`)
	for _, f := range []string{".env", "SUB/.ENV", "x.pem", "y.KEY", "id_rsa", ".ssh/config", "SUB/.env.local"} {
		p.write(f, secret)
	}
	p.write("foo.pem/readme", "open\n")
	p.write(".env.example", "open\n")
	p.write("id_rsa.pub", "open\n")
	p.write("empty.pem", "")
	p.write(".vscode/tasks.json", "open\n")
	p.link(".env", "tolink")
	p.link("SUB", "sublink")
	p.write("named", secret)
	p.link("named", ".env.named")
	g := p.gate()
	bad := []string{".env", "SUB/.ENV", "x.pem", "y.KEY", "id_rsa", ".ssh/config", ".ssh/new", "SUB/.env.local", "tolink", "sublink/.ENV", ".env.named", "named"}
	for _, f := range bad[:6] { // control: the host opens them
		if p.read(f) != secret {
			t.Fatal("control")
		}
	}
	g.noView(bad...)
	g.noWrite(bad...)
	g.noWrite("new/.env", "k.pem", ".envrc", "id_ed25519", ".ssh/x", "new/.ssh/y")
	for _, ok := range []string{"foo.pem/readme", ".env.example", "id_rsa.pub", ".vscode/tasks.json"} {
		g.shows(ok, "open")
	}
	for _, ok := range []string{"foo.pem/readme", ".env.example", "id_rsa.pub", "foo.pem/new", "new.pem/x", ".env.d/x"} {
		g.takes(ok)
	}
	if _, err := g.view("empty.pem"); err != nil {
		t.Error(err)
	}
	g.noWrite(".git/config", ".git/hooks/x", ".tether/p", ".vscode/tasks.json", ".vscode/new", ".mcp.json", ".claude/settings.json")
	r, err := g.View(ViewRequest{Path: ".git/config"})
	if err != nil || !r.Filtered || !r.Locked || strings.Contains(r.Text, secret) || !strings.Contains(r.Text, "h/x") || r.SHA256 != "" {
		t.Errorf("git's configuration: got %+v (%v), want it without credentials", r, err)
	}
	found, err := g.Search(context.Background(), SearchRequest{Pattern: "S3NTINEL"})
	if err != nil || len(found.Matches) > 0 {
		t.Errorf("search: got %v (%v), want nothing", found.Matches, err)
	}
	found, err = g.Search(context.Background(), SearchRequest{Path: ".git", Pattern: "S3NTINEL|url ="})
	if err != nil || len(found.Matches) != 1 {
		t.Errorf("search in .git: got %v (%v), want the filtered line", found.Matches, err)
	}
	for _, name := range []string{".git/config", ".vscode/tasks.json"} {
		_, err := g.Search(context.Background(), SearchRequest{Path: name, Pattern: "."})
		if err != nil {
			t.Errorf("search in %s: %v", name, err)
		}
	}
}

func TestEC145SpecialFiles(t *testing.T) {
	p := newPlace(t)
	if err := syscall.Mkfifo(p.path("fifo"), 0o666); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", p.path("sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p.link("/dev/zero", "zero")
	p.link("/dev/tty", "tty")
	f, err := os.Create(p.path("huge"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(10 << 30); err != nil {
		t.Skip(err)
	}
	f.Close()
	p.write("long", strings.Repeat("x", MaxFile+5))
	p.write("text", "open\n")
	if os.Geteuid() == 0 {
		_ = syscall.Mknod(p.path("null"), syscall.S_IFCHR|0o666, 1<<8|5)
	}
	g := p.gate()
	begin := time.Now()
	g.noView("fifo", "sock", "zero", "tty", "/dev/zero", "/dev/tty", "/proc/kmsg")
	g.noWrite("fifo", "sock", "zero", "tty", "/dev/zero")
	if os.Geteuid() == 0 {
		g.noView("null")
		g.noWrite("null")
	}
	_, err = g.view("huge")
	g.code(err, fault.FileUnfit)
	_, err = g.Replace(ReplaceRequest{Path: "huge", Old: "a", New: "b"})
	g.code(err, fault.FileUnfit)
	found, err := g.Search(context.Background(), SearchRequest{Pattern: "op[e]n"})
	if err != nil || len(found.Matches) != 1 || found.Large != 2 {
		t.Errorf("search: got %+v (%v)", found, err)
	}
	if took := time.Since(begin); took > time.Second {
		t.Errorf("it took %v, want less than 1 s", took)
	}
	r, err := g.View(ViewRequest{Path: "long"})
	if err != nil || !r.Partial || !r.Truncated || len(r.Text) != MaxText || r.SHA256 != "" {
		t.Errorf("long: got %d bytes, %+v (%v)", len(r.Text), r.Partial, err)
	}
	g.shows("text", "open")
}

func TestEC146StrangePaths(t *testing.T) {
	p := newPlace(t)
	strange := []string{"new\nline", "\xff\xfe", "~", "$HOME", "back\\slash", "..x", "...", " ", "-rf", "*", "file:"}
	for _, name := range strange {
		p.write(name, "literal "+name)
	}
	p.write("~root/x", "literal")
	p.write("%2e%2e/x", "literal")
	g := p.gate()
	for _, name := range strange {
		if got, err := g.view(name); err != nil || !strings.HasPrefix(got, "literal") {
			t.Errorf("view %q: got %q (%v), want its literal meaning", name, got, err)
		}
	}
	g.shows("~root/x", "literal")
	g.shows("%2e%2e/x", "literal")
	deep := strings.Repeat("d/", 300) + "f"
	g.noView("", "a\x00b", "\x00", strings.Repeat("x", 5000), strings.Repeat("x", 300), strings.Repeat("a/", 2500))
	g.noWrite("", "a\x00b", strings.Repeat("x", 5000))
	for _, path := range []string{deep, "$HOME/x", "file:///etc/passwd", "..\\..\\etc\\passwd", "missing/", "~root/y"} {
		_, err := g.view(path)
		g.code(err, fault.FileNotFound)
	}
	g.takes(deep)
	g.shows(deep, "new")
	_, err := g.view("back\\slash/")
	g.code(err, fault.FileUnfit)
	if _, err := g.view("~root/"); err != nil {
		t.Errorf("a folder with a slash: %v", err)
	}
	p.absent(p.top + "/home/x")
}

func TestEC150Replace(t *testing.T) {
	p := newPlace(t)
	p.write("many", strings.Repeat("needle hay\n", 10_000))
	p.write("crlf", "one\r\ntwo\r\nthree")
	p.write("bare", "last line")
	p.write("bin", "a\x00b")
	g := p.gate()
	replace := func(path, old, new string, all bool) (ReplaceResult, error) {
		return g.Replace(ReplaceRequest{Path: path, Old: old, New: new, All: all})
	}
	_, err := replace("many", "", "x", false)
	g.code(err, fault.UsageInvalid)
	_, err = replace("many", "needle", "x", false)
	g.code(err, fault.FileMismatch)
	if !strings.Contains(fmt.Sprint(err), "10000 times, at lines 1, 2, 3") {
		t.Errorf("got %v, want how often and where", err)
	}
	_, err = replace("many", "absent", "x", false)
	g.code(err, fault.FileMismatch)
	_, err = replace("bin", "a", "x", false)
	g.code(err, fault.FileUnfit)
	r, err := replace("many", "needle", "pin", true)
	if err != nil || r.Count != 10_000 || len(r.Lines) != 10 || p.read("many") != strings.Repeat("pin hay\n", 10_000) {
		t.Errorf("all: got %+v (%v)", r, err)
	}
	if _, err := replace("crlf", "one\ntwo", "1\n2\n2b", false); err != nil || p.read("crlf") != "1\r\n2\r\n2b\r\nthree" {
		t.Errorf("CRLF: got %q (%v)", p.read("crlf"), err)
	}
	if _, err := replace("bare", "last", "first", false); err != nil || p.read("bare") != "first line" {
		t.Errorf("no final newline: got %q (%v)", p.read("bare"), err)
	}
}

func TestEC004EC009NamesByEdit(t *testing.T) {
	p := newPlace(t)
	names := []string{".ENV", "Server.PEM", "ID_RSA", ".env~", ".env.swp", ".#.env", "#.env#", "tls.pem.bak", "id_rsa.old", ".Env.Local"}
	for _, name := range names {
		p.write(name, secret)
	}
	p.write("env", "open")
	g := p.gate()
	g.shows("env", "open")
	g.noView(names...)
	g.noWrite(names...)
	list, err := g.List(context.Background(), ListRequest{})
	if err != nil || len(list.Entries) != len(names)+1 {
		t.Fatalf("list: got %+v (%v)", list, err)
	}
	for _, e := range list.Entries {
		if e.Hidden != (e.Path != "env") {
			t.Errorf("list says of %s: hidden %v", e.Path, e.Hidden)
		}
	}
}

func TestEC022EC041EC042GitAndTether(t *testing.T) {
	p := newPlace(t)
	p.sh("git init -q . && git init -q --separate-git-dir=store sep && git init -q --bare bare && mkdir -p deep/x && git init -q deep/x && git config core.hooksPath myhooks")
	g := p.gate()
	bad := []string{".git/hooks/pre-commit", ".git/hooks/new/x", ".git/config.worktree", ".git/info/attributes", ".git/commondir", ".git/modules/x/config",
		".git/HEAD", "sep/.git", "store/config", "store/hooks/x", "bare/hooks/x", "bare/config", "deep/x/.git/hooks/x", "new/.git", "new/.git/config", "myhooks/pre-commit", "myhooks",
		".tether/policy.toml", ".tether", "sub/.tether/x", ".GIT/hooks/pre-commit", ".git./config", ".git /config", "git~1/config", "GIT~1/x", ".g\u200cit/config",
		".Tether/policy", ".tether./policy", ".te\u200cther/p", ".TETHER", ".tether /x", "tether~1/policy", ".tether:x", ".git::$INDEX_ALLOCATION/config"}
	g.noWrite(bad...)
	for _, name := range []string{"new", ".tether", ".GIT", "git~1", "tether~1", "sub", "myhooks"} {
		p.absent(name)
	}
	for _, ok := range []string{".github/x", ".gitignore", ".gitattributes", "git/config", "hooks/pre-commit", "tether/x", ".tetherrc", "a.git/x", "x/config"} {
		g.takes(ok)
	}
	// A repository that was not there when the gate was opened, and one that
	// the gate is to complete.
	p.sh("git init -q late && git init -q --bare latebare && mkdir -p build/objects build/refs half/objects && echo x >half/HEAD")
	g.noWrite("late/.git/hooks/x", "latebare/hooks/post-update", "latebare/config", "build/HEAD", "half/refs/x")
	g.takes("build/config")
	g.takes("late/file")
	// A link in place of the folder leads nowhere else.
	p.sh("mkdir evil && ln -s evil .tether")
	g.noWrite(".tether/policy.toml", ".tether")
	p.absent("evil/policy.toml")
}

func TestEC064FoldersOfACall(t *testing.T) {
	p := newPlace(t)
	p.link(p.out, "link-to-out")
	p.write("sub/f", "inside\n")
	g := p.gate()
	for _, dir := range []string{p.out, p.w + "/../out", p.w + "/link-to-out", "link-to-out", p.top + "/home", "/"} {
		g.noWrite(dir + "/p")
		_, err := g.List(context.Background(), ListRequest{Path: dir})
		g.denied("list", dir, err)
	}
	p.absent(p.out + "/p")
	if _, err := g.List(context.Background(), ListRequest{Path: "sub"}); err != nil {
		t.Error(err)
	}
}
