package filegate

import (
	"strconv"
	"strings"

	"github.com/tether-sandbox/tether/fault"
)

const (
	hintInside = "name a path relative to the workspace, or absolute inside one of the roots; --allow-read DIR and --allow-write DIR add one"
	hintHidden = "it is closed to commands as well; ask the user for what is needed of it"
	hintGit    = "let git do it: run a git command, or change it outside of Tether"
	hintOwn    = "change it outside of Tether"
	hintWrite  = "tether run --profile workspace-write, or have the session's mode changed by the user"
)

func refuse(path, why, hint string) error {
	return fault.New(fault.SandboxViolation, quote(path)+" "+why).WithHint(hint)
}

func outside(path string) error {
	return refuse(path, "lies outside of the workspace and the added roots", hintInside)
}

// hidden takes the reason as the search tells it, which says "hidden" once more.
func hidden(path, why string) error {
	why = strings.TrimPrefix(strings.TrimPrefix(why, "hidden"), ": ")
	return refuse(path, "is hidden: "+strings.TrimSpace(why), hintHidden)
}

func invalid(what, hint string) error { return fault.New(fault.UsageInvalid, what).WithHint(hint) }

func notFound(path string) error {
	return fault.New(fault.FileNotFound, "there is no "+quote(path)).
		WithHint("list the folder; names are taken literally, ~ and variables too")
}

func unfit(path, why, hint string) error {
	return fault.New(fault.FileUnfit, quote(path)+" "+why).WithHint(hint)
}

func mismatch(path, why, hint string) error {
	return fault.New(fault.FileMismatch, quote(path)+" "+why).WithHint(hint)
}

func failed(path, what string, err error) error {
	return fault.Wrap(fault.FileFailed, "cannot "+what+" "+quote(path), err)
}

// quote returns a path as it can be printed, cut where it is absurdly long.
func quote(path string) string {
	const most = 300
	if len(path) > most {
		path = path[:most] + "..."
	}
	q := strconv.Quote(path)
	if q == `"`+path+`"` && path != "" {
		return path
	}
	return q
}
