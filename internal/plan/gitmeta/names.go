package gitmeta

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// DotGit says whether some file system takes name for ".git": in any case
// (macOS, Windows), with code points that HFS+ ignores, with the trailing
// dots, spaces and streams that NTFS drops, or as its short name git~1.
//
// A gate that edits files refuses all of them; a shell's writes matter only
// where the file system folds names.
func DotGit(name string) bool { return folded(name) == ".git" || shortName(name) }

func shortName(name string) bool { return ntfs(strings.ToLower(name)) == "git~1" }

func folded(name string) string { return ntfs(strings.ToLower(strings.Map(visible, name))) }

// ntfs cuts a stream (name:stream) and trailing dots and spaces.
func ntfs(name string) string {
	name, _, _ = strings.Cut(name, ":")
	return strings.TrimRight(name, ". ")
}

// visible drops what HFS+ ignores in names.
func visible(r rune) rune {
	switch {
	case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff,
		r == utf8.RuneError:
		return -1
	}
	return r
}

// BareLooking says whether git would take a directory for a git directory,
// given a function that tells which names it has. A walk that looks for
// repositories hands [Discover] every directory for which this holds.
func BareLooking(has func(name string) bool) bool {
	return has("HEAD") && (has("commondir") || has("objects") && has("refs"))
}

// hookName says whether git itself runs a file of this name.
func hookName(name string) bool {
	return slices.Contains(hookNames[:], name) || strings.HasPrefix(name, "p4-")
}

var hookNames = [...]string{
	"applypatch-msg", "pre-applypatch", "post-applypatch", "pre-commit", "pre-merge-commit",
	"prepare-commit-msg", "commit-msg", "post-commit", "pre-rebase", "post-checkout", "post-merge", "pre-push",
	"pre-receive", "update", "proc-receive", "post-receive", "post-update", "reference-transaction",
	"push-to-checkout", "pre-auto-gc", "post-rewrite", "sendemail-validate", "fsmonitor-watchman",
	"post-index-change",
}
