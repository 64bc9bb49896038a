package machine

// mac says what stands on macOS, where there is one provider.
func mac(f Facts) []Advice {
	out := []Advice{{What: "the seatbelt provider is evaluated, not yet run on a Mac: its profiles were held to their plans by tests on Linux"}}
	if f.SandboxExecWhy != "" {
		out = append(out, Advice{What: f.SandboxExecWhy, Blocks: []string{"seatbelt"}})
	} else {
		out = append(out, Advice{What: "sandbox-exec is there; Apple calls it deprecated and ships it with every release", Good: true})
	}
	out = append(out, Advice{What: "there is no process namespace: the guarantee process is Partial, and is accepted by name",
		Then: "tether run --accept process=partial -- CMD"})
	return append(out, repositories(f)...)
}
