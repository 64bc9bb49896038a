package main

// gitCases says of each acceptance case about git, about what runs later on the
// host, and about git's everyday use, whether it holds: empty, it does; else
// the text says how far.
var gitCases = map[string]string{
	"EC-022": "",
	"EC-023": "",
	"EC-024": "",
	"EC-027": "",
	"EC-028": "",
	"EC-029": "",
	"EC-034": "",
	"EC-035": "",
	"EC-037": "limit: a config.worktree that is absent at the start can be written during the run; it has lost its executable keys when the run has ended",
	"EC-038": "",
	"EC-039": "",
	"EC-040": "",
	"EC-041": "limit: a .tether that is absent at the start can be made during the run; it is moved to quarantine when the run has ended, or at the next start; the edit tool makes none",
	"EC-042": "limit: by shell the names are harmless where the file system tells them apart; .git is locked in any case, so also where it folds case; the edit tool refuses them all, but for .tether with a dot behind",

	"EC-044": "",
	"EC-045": "",
	"EC-046": "",
	"EC-049": "",

	"EC-180": "",
	"EC-181": "",
	"EC-182": "",
	"EC-183": "limit: a tracked hidden file that differs from what is committed is shown as modified, and git add -A fails on it; so it is where a filter such as autocrlf changes bytes and the index is as young as the file",
	"EC-184": "",
	"EC-185": "limit: public certificates and keys are readable; a private key among test data is hidden like any other",
	"EC-186": "",
	"EC-189": "",
	"EC-190": "",
	"EC-201": "",
}
