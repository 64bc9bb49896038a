package seccomp

// CompileRulesForTest compiles rules that are not the table's.
func CompileRulesForTest(arch string, rules []Rule) ([]Insn, error) { return compile(arch, rules) }
