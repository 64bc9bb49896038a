package enforcetest

// lifecycleAttacks are more than one run each: their test carries them out, by
// name.
func lifecycleAttacks() []Attack {
	all := []Attack{
		{Name: "a daemon that outlives its command"},
		{Name: "a process that ignores every signal and the time limit"},
		{Name: "a process that holds the output open"},
		{Name: "a process that outlives a call that was cancelled"},
		{Name: "processes that make another and exit, faster than one can look"},
		{Name: "a supervisor that is killed"},
		{Name: "process 1 stopped, killed and everybody with it", Beside: []string{"landlock"}},
		{Name: "output without end"},
		{Name: "pipes, endless files and deep folders under names that Tether reads"},
		{Name: "mounts, control groups and temporary files left behind"},
	}
	for i := range all {
		all[i].Guarantee = Lifecycle
	}
	return all
}
