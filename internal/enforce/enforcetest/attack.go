package enforcetest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tether-sandbox/tether/policy"
)

// Attack is one thing that a hostile command does to get past a guarantee.
type Attack struct {
	// Name says what it does, in a few words. It is unique.
	Name string
	// Guarantee is what it tries to break; Lifecycle is one of them here.
	Guarantee string
	// Under is how the sandbox is set up; the zero value is --no-network.
	Under Setup
	// Root says that the door is open to real root alone. To an ordinary user
	// it is closed with and without a sandbox, so that there is no control.
	Root bool
	// Alone gives the attack a process of its own that leads a session.
	Alone bool
	// Nested starts it in new namespaces, user and mount, of its own making.
	Nested bool
	// Masked makes the control with masks and locks as a sandbox has them, in
	// a mount namespace where nothing keeps them from being taken off.
	Masked bool
	// Optional says that machines exist without such a door: kernels that were
	// built without it, or where a setting closes it.
	Optional bool
	// Limits says for which providers it succeeds, at least for ordinary users,
	// and why that is so; for the others it must not.
	Limits map[string]string
	// Beside names providers that it does not concern.
	Beside []string
	// Grade, when a report has its guarantee at no more than it, allows the
	// attack to succeed. Zero: it never may.
	Grade policy.Grade
	// Try carries it out. Nil means that the door opened; an error says what
	// closed it. Attacks of the lifecycle have none: they are more than one run.
	Try func(*Scene) error
}

// Lifecycle stands beside the guarantees: what is left of a run.
const Lifecycle = "lifecycle"

// Setup is one way to set up the sandbox.
type Setup string

// The setups.
const (
	Offline Setup = ""
	Gated   Setup = "gated"
	Open    Setup = "open"
	Limited Setup = "limited"
)

// Setups returns all setups.
func Setups() []Setup { return []Setup{Offline, Gated, Open, Limited} }

// Provider is one column of the matrix.
type Provider struct {
	Name string
	// Accept is what has to be accepted of it.
	Accept map[policy.Guarantee]policy.Grade
	// OwnsNothing says that root's workspace must be an ordinary user's.
	OwnsNothing bool
	// None lists guarantees that it does not give: their attacks are not
	// counted.
	None []string
	// ABI is the version of Landlock without which nothing that is accepted
	// would do, so that it must refuse.
	ABI int
	// Refuses lists setups that it refuses to build: their attacks are not
	// counted, either.
	Refuses []Setup
}

// Providers are the columns. A provider that is added here meets every attack.
func Providers() []Provider {
	return []Provider{
		{Name: "native"},
		{Name: "bwrap", OwnsNothing: true},
		{Name: "landlock", OwnsNothing: true, None: []string{"secrets"}, ABI: 6,
			Accept: map[policy.Guarantee]policy.Grade{policy.Read: policy.Partial, policy.Write: policy.Partial, policy.Secrets: policy.None,
				policy.NetworkGuarantee: policy.None, policy.Process: policy.Partial, policy.LimitsGuarantee: policy.None}},
	}
}

// Rows are the guarantees, in the order of the matrix.
func Rows() []string {
	rows := make([]string, 0, len(policy.Guarantees)+1)
	for _, g := range policy.Guarantees {
		rows = append(rows, g.String())
	}
	return append(rows, Lifecycle)
}

// Verdict is the result of an attack on a provider that the matrix claims: held,
// limit, or a dash where the provider does not give the guarantee, or refuses the
// setup.
func (a Attack) Verdict(p Provider) string {
	if slices.Contains(p.None, a.Guarantee) || slices.Contains(p.Refuses, a.Under) || slices.Contains(a.Beside, p.Name) {
		return "-"
	}
	if a.Limits[p.Name] != "" {
		return "limit"
	}
	return "held"
}

// Matrix is the table provider x guarantee x result, as Markdown. It claims
// what a test of every attack compares with what really happened.
func Matrix(attacks []Attack, providers []Provider) string {
	var b strings.Builder
	b.WriteString("| |")
	for _, p := range providers {
		b.WriteString(" " + p.Name + " |")
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(providers)) + "\n")
	for _, row := range Rows() {
		b.WriteString("| " + row + " |")
		for _, p := range providers {
			count := map[string]int{}
			for _, a := range attacks {
				if a.Guarantee == row {
					count[a.Verdict(p)]++
				}
			}
			var words []string
			for _, v := range []string{"held", "limit"} {
				if n := count[v]; n > 0 {
					words = append(words, fmt.Sprintf("%d %s", n, v))
				}
			}
			if len(words) == 0 {
				words = []string{"-"}
			}
			b.WriteString(" " + strings.Join(words, ", ") + " |")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// List names every attack, with its verdicts and limits, as Markdown.
func List(attacks []Attack, providers []Provider) string {
	var b strings.Builder
	b.WriteString("| Guarantee | Attack | Door without Tether |")
	for _, p := range providers {
		b.WriteString(" " + p.Name + " |")
	}
	b.WriteString("\n|---|---|---|" + strings.Repeat("---|", len(providers)) + "\n")
	for _, row := range Rows() {
		for _, a := range attacks {
			if a.Guarantee != row {
				continue
			}
			door := "open"
			if a.Root {
				door = "open to root"
			}
			if a.Optional {
				door += ", on most machines"
			}
			fmt.Fprintf(&b, "| %s | %s | %s |", row, a.Name, door)
			for _, p := range providers {
				v := a.Verdict(p)
				if why := a.Limits[p.Name]; why != "" && v != "-" {
					v += ": " + why
				} else if a.Grade > policy.None {
					v += " where the grade is above " + a.Grade.String()
				}
				b.WriteString(" " + v + " |")
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}
