package policy_test

import (
	"fmt"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/policy"
)

func Example() {
	p := policy.Default("/home/ann/project")
	p.Read = []string{"/srv/models"}
	p.Protect.Hidden = []string{"creds.json", "deploy/**/*.token"}
	fmt.Println(p.Profile, p.Validate())
	// Output: workspace-write <nil>
}

func ExampleParseProfile() {
	_, err := policy.ParseProfile("readonly")
	fmt.Println(err)
	fmt.Println(fault.HintOf(err))
	// Output:
	// POLICY_INVALID: unknown profile "readonly"
	// did you mean read-only? use read-only, workspace-write or full-access
}

func ExampleParseAccept() {
	p := policy.Default("/w")
	g, grade, err := policy.ParseAccept("secrets=partial")
	if err != nil {
		panic(err)
	}
	p.Accept = map[policy.Guarantee]policy.Grade{g: grade}
	for _, g := range policy.Guarantees {
		fmt.Println(g, p.Required(g))
	}
	// Output:
	// read Complete
	// write Complete
	// secrets Partial
	// network Complete
	// process Complete
	// ipc None
	// limits None
}

func ExampleParseSize() {
	fmt.Println(policy.ParseSize("512k"))
	fmt.Println(policy.ParseSize("10MB"))
	// Output:
	// 524288 <nil>
	// 0 POLICY_INVALID: cannot read "10MB" as a size
}

func ExampleParseDuration() {
	fmt.Println(policy.ParseDuration("90"))
	fmt.Println(policy.ParseDuration("1m30s"))
	// Output:
	// 1m30s <nil>
	// 1m30s <nil>
}

func ExampleParseEnv() {
	var env policy.Env
	for _, s := range []string{"GOFLAGS", "CI=1"} {
		v, err := policy.ParseEnv(s)
		if err != nil {
			panic(err)
		}
		env.Add(v)
	}
	fmt.Println(env.Pass, env.Set)
	// Output: [GOFLAGS] map[CI:1]
}

func ExamplePolicy_WithProfile() {
	p := policy.Default("/w")
	p.Write = []string{"/srv/out"}
	err := p.WithProfile(policy.ReadOnly).Validate()
	fmt.Println(err)
	fmt.Println(fault.HintOf(err))
	// Output:
	// POLICY_INVALID: a read-only policy has the write root "/srv/out"
	// use --allow-read, or --profile workspace-write
}

func ExamplePolicy_Within() {
	parent := policy.Default("/w")
	child := parent.WithProfile(policy.ReadOnly)
	child.Workspace = "/w/docs"
	fmt.Println(child.Within(parent), parent.Within(child))

	child.Read = []string{"/w-secret"} // begins like /w, lies elsewhere
	fmt.Println(child.Within(parent))
	// Output:
	// true false
	// false
}

func ExampleMeet() {
	parent := policy.Default("/w")
	child := policy.Default("/w/docs")
	child.Read = []string{"/srv/models", "/w/src"}
	child.Protect.Hidden = []string{"*.token"}
	m := policy.Meet(child, parent)
	fmt.Println(m.Workspace, m.Read, m.Protect.Hidden)
	fmt.Println(m.Within(child), m.Within(parent))
	// Output:
	// /w/docs [/w/src] [*.token]
	// true true
}

func ExamplePolicy_Canonical() {
	p := policy.Default("/w")
	p.Write = []string{"/w/out", "/b/", "/a"}
	c := p.Canonical()
	fmt.Println(c.Write, c.Limits.Time)
	// Output: [/a /b /w] 2m0s
}

func ExampleHiddenName() {
	for _, name := range []string{".env", ".env.example", "ID_RSA", "ca.pem", ".ssh"} {
		fmt.Println(name, policy.HiddenName([]byte(name)))
	}
	// Output:
	// .env hidden file
	// .env.example not hidden
	// ID_RSA hidden file
	// ca.pem hidden unless public
	// .ssh hidden
}

func ExampleLockedName() {
	fmt.Println(policy.LockedName([]byte(".vscode")), policy.LockedName([]byte("src")))
	// Output: true false
}

func ExampleRunsLater() {
	fmt.Println(policy.RunsLater("node_modules/.bin/git"), policy.RunsLater("docs/intro.md"))
	// Output: true false
}

func ExampleCompilePatterns() {
	ps, err := policy.CompilePatterns([]string{"*.token", "deploy/**"})
	if err != nil {
		panic(err)
	}
	fmt.Println(ps.MatchName([]byte("CI.Token")))
	fmt.Println(ps.MatchPath([]byte("deploy/a/b.yml")), ps.MatchPath([]byte("src/deploy/a")))
	// Output:
	// true
	// true false
}
