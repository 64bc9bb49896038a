package gitmeta

import (
	"slices"
	"strings"
)

// Executable says whether e can make git, or anything that git starts, run a
// program, read another configuration or find hooks elsewhere.
//
// It is the complement of a list of harmless keys, so a key that this version
// does not know counts as executable. core.worktree always does here; whether
// one stays inside the workspace needs the place and is judged by [Settle].
// The value matters where it can name a program: a remote's URL, a boolean
// that may also be a path.
func Executable(e Entry) bool {
	for i := range harmless {
		g := &harmless[i]
		if g.section != e.Section || !g.sub.admits(e) {
			continue
		}
		if g.keys[0] != "*" && !slices.Contains(g.keys, e.Key) {
			continue
		}
		if g.value == nil || g.value(e) {
			return false
		}
	}
	return true
}

// sub says whether a group's keys stand in a plain section or in a subsection.
type sub uint8

const (
	plain  sub = iota // [core]
	named             // [remote "origin"]
	either            // both
)

func (s sub) admits(e Entry) bool { return s == either || e.hasSubsection() == (s == named) }

type group struct {
	why     string
	section string
	sub     sub
	keys    []string
	value   func(Entry) bool // nil: any value
}

// harmless is the whole allowlist. "*" stands for every key of the section.
var harmless = [...]group{
	{"how files and objects are stored and compared", "core", plain, []string{
		"repositoryformatversion", "filemode", "bare", "logallrefupdates", "ignorecase", "precomposeunicode",
		"symlinks", "autocrlf", "eol", "safecrlf", "checkroundtripencoding", "sparsecheckout",
		"sparsecheckoutcone", "abbrev", "quotepath", "hidedotfiles", "protecthfs", "protectntfs", "trustctime",
		"checkstat", "ignorestat", "splitindex", "untrackedcache", "prefersymlinkrefs", "sharedrepository",
		"warnambiguousrefs", "compression", "loosecompression", "packedgitwindowsize", "packedgitlimit",
		"deltabasecachelimit", "bigfilethreshold", "commentchar", "commentstring", "filesreflocktimeout",
		"packedrefstimeout", "whitespace", "fsync", "fsyncmethod", "fsyncobjectfiles", "preloadindex",
		"createobject", "notesref", "maxtreedepth", "multipackindex", "commitgraph", "usereplacerefs",
		"longpaths", "fscache", "excludesfile",
	}, nil},
	{"a boolean starts git's own watcher, anything else is a program", "core", plain,
		[]string{"fsmonitor"}, isBool},
	{"who commits", "user", plain, []string{"name", "email", "useconfigonly", "signingkey"}, nil},
	{"who commits", "author", plain, []string{"name", "email"}, nil},
	{"who commits", "committer", plain, []string{"name", "email"}, nil},
	{"names for new repositories; templatedir would bring hooks", "init", plain,
		[]string{"defaultbranch", "defaultobjectformat", "defaultrefformat"}, nil},
	{"where to fetch from, when the transport is not a program", "remote", named,
		[]string{"url", "pushurl"}, isPlainURL},
	{"what to fetch and push; vcs, uploadpack and receivepack would be programs", "remote", named, []string{
		"fetch", "push", "mirror", "skipdefaultupdate", "skipfetchall", "prune", "prunetags", "promisor",
		"partialclonefilter", "tagopt", "followremotehead", "gh-resolved", "proxyauthmethod",
	}, nil},
	{"a remote, by name or by URL", "remote", plain, []string{"pushdefault"}, isPlainURL},
	{"groups of remotes", "remotes", plain, []string{"*"}, arePlainURLs},
	{"a remote, by name or by URL", "branch", named, []string{"remote", "pushremote"}, isPlainURL},
	{"tracking and notes of other tools; mergeoptions could name a strategy", "branch", named,
		[]string{"*"}, isBranchNote},
	{"how new branches track and how they are listed", "branch", plain,
		[]string{"autosetupmerge", "autosetuprebase", "sort"}, nil},
	{"how to combine; twohead and octopus could name a strategy", "pull", plain, []string{"rebase", "ff"}, nil},
	{"what to push", "push", plain, []string{
		"default", "followtags", "autosetupremote", "recursesubmodules", "usebitmaps", "negotiate",
		"useforceifincludes", "pushoption", "gpgsign",
	}, nil},
	{"what to fetch", "fetch", plain, []string{
		"prune", "prunetags", "recursesubmodules", "fsckobjects", "unpacklimit", "parallel", "output", "all",
		"writecommitgraph", "showforcedupdates", "negotiationalgorithm",
	}, nil},
	{"how merges look; drivers and tools are named by other keys", "merge", plain, []string{
		"conflictstyle", "ff", "renamelimit", "renames", "directoryrenames", "renormalize", "stat", "log",
		"verbosity", "autostash", "branchdesc", "suppressdest", "autoedit", "defaulttoupstream",
	}, nil},
	{"how differences look", "diff", plain, []string{
		"algorithm", "renames", "renamelimit", "colormoved", "colormovedws", "context", "interhunkcontext",
		"mnemonicprefix", "noprefix", "srcprefix", "dstprefix", "relative", "indentheuristic",
		"ignoresubmodules", "submodule", "suppressblankempty", "wserrorhighlight", "statgraphwidth",
		"statnamewidth", "autorefreshindex", "dirstat", "wordregex",
	}, nil},
	{"patterns of a driver; command and textconv would be programs", "diff", named,
		[]string{"xfuncname", "funcname", "wordregex", "binary", "algorithm"}, nil},
	{"git's large file extension under the names it installs itself", "filter", named,
		[]string{"clean", "smudge", "process", "required"}, isLFS},
	{"state of the large file extension", "lfs", either,
		[]string{"repositoryformatversion", "access", "locksverify"}, nil},
	{"colours", "color", either, []string{"*"}, nil},
	{"columns", "column", plain, []string{"*"}, nil},
	{"hints", "advice", plain, []string{"*"}, nil},
	{"how history looks", "log", plain, []string{
		"date", "decorate", "follow", "abbrevcommit", "showroot", "mailmap", "graphcolors", "diffmerges",
		"excludedecoration", "initialdecorationset",
	}, nil},
	{"how history looks", "format", plain, []string{"pretty"}, nil},
	{"how history looks", "pretty", plain, []string{"*"}, nil},
	{"how status looks", "status", plain, []string{
		"short", "branch", "aheadbehind", "showstash", "showuntrackedfiles", "submodulesummary", "relativepaths",
		"renames", "renamelimit", "displaycommentprefix",
	}, nil},
	{"format of the repository", "extensions", plain, []string{
		"objectformat", "compatobjectformat", "noop", "noop-v1", "preciousobjects", "worktreeconfig",
		"refstorage", "relativeworktrees", "submodulepathconfig",
	}, nil},
	{"a remote, by name", "extensions", plain, []string{"partialclone"}, isPlainURL},
	{"where a submodule comes from", "submodule", named, []string{"url"}, isPlainURL},
	{"how a submodule is updated; a command starts with !", "submodule", named, []string{"update"}, isNoCommand},
	{"which submodules, how many at once", "submodule", named,
		[]string{"active", "branch", "ignore", "fetchrecursesubmodules", "shallow"}, nil},
	{"which submodules, how many at once", "submodule", plain, []string{
		"active", "recurse", "fetchjobs", "propagatebranches", "alternatelocation", "alternateerrorstrategy",
		"stickyrecursiveclone",
	}, nil},
	{"when to collect; recentobjectshook would be a program", "gc", either, []string{
		"auto", "autodetach", "autopacklimit", "bigpackthreshold", "cruftpacks", "maxcruftsize",
		"aggressivewindow", "aggressivedepth", "logexpiry", "packrefs", "writecommitgraph", "pruneexpire",
		"worktreepruneexpire", "reflogexpire", "reflogexpireunreachable", "rerereresolved", "rerereunresolved",
	}, nil},
	{"when to collect", "maintenance", either,
		[]string{"auto", "autodetach", "strategy", "enabled", "schedule"}, nil},
	{"how packs are written", "pack", plain, []string{
		"window", "depth", "windowmemory", "compression", "deltacachesize", "deltacachelimit", "threads",
		"indexversion", "packsizelimit", "island", "islandcore", "usesparse", "usebitmaps", "writereverseindex",
		"writebitmaphashcache", "writebitmaplookuptable", "preferbitmaptips", "readreverseindex",
		"allowpackreuse", "usepathwalk",
	}, nil},
	{"how packs are written", "repack", plain, []string{
		"usedeltabaseoffset", "packkeptobjects", "usedeltaislands", "writebitmaps", "updateserverinfo",
		"cruftwindow", "cruftwindowmemory", "cruftdepth", "cruftthreads",
	}, nil},
	{"how the index is written", "index", plain, []string{
		"version", "threads", "sparse", "recordendofindexentries", "recordoffsettable", "skiphash",
	}, nil},
	{"sets of the above", "feature", plain, []string{"manyfiles", "experimental"}, nil},
	{"checks while objects travel", "transfer", plain, []string{
		"fsckobjects", "unpacklimit", "hiderefs", "credentialsinurl", "advertisesid", "advertiseobjectinfo",
	}, nil},
	{"checks while objects arrive", "receive", plain, []string{
		"denycurrentbranch", "denydeletes", "denydeletecurrent", "denynonfastforwards", "fsckobjects", "autogc",
		"unpacklimit", "updateserverinfo", "hiderefs", "shallowupdate", "advertiseatomic", "maxinputsize",
		"keepalive",
	}, nil},
	{"what may be fetched from here; packobjectshook would be a program", "uploadpack", plain, []string{
		"allowfilter", "allowanysha1inwant", "allowreachablesha1inwant", "allowtipsha1inwant", "allowrefinwant",
		"hiderefs", "keepalive",
	}, nil},
	{"version of the wire protocol; allow would let programs be transports", "protocol", plain,
		[]string{"version"}, nil},
	{"what rerere remembers", "rerere", plain, []string{"enabled", "autoupdate"}, nil},
	{"how rebase works; instructionformat could add a line to run", "rebase", plain, []string{
		"autosquash", "autostash", "updaterefs", "stat", "backend", "abbreviatecommands", "missingcommitscheck",
		"reschedulefailedexec", "forkpoint", "rebasemerges", "maxlabellength",
	}, nil},
	{"how commits are written; the signing program is named by other keys", "commit", plain,
		[]string{"cleanup", "verbose", "status", "gpgsign", "template"}, nil},
	{"how tags are written", "tag", plain, []string{"sort", "gpgsign", "forcesignannotated"}, nil},
	{"how to check out", "checkout", plain,
		[]string{"defaultremote", "guess", "workers", "thresholdforparallelism"}, nil},
	{"how to clone", "clone", plain, []string{"defaultremotename", "rejectshallow", "filtersubmodules"}, nil},
	{"how to stash", "stash", plain, []string{
		"showpatch", "showstat", "showincludeuntracked", "usebuiltin",
	}, nil},
	{"how to search", "grep", plain, []string{
		"linenumber", "column", "patterntype", "extendedregexp", "fullname", "threads", "fallbacktonoindex",
	}, nil},
	{"how blame looks", "blame", plain, []string{
		"coloring", "date", "showemail", "showroot", "blankboundary", "markunblamablelines", "markignoredlines",
		"ignorerevsfile",
	}, nil},
	{"one key at a time; difffilter would be a program", "interactive", plain, []string{"singlekey"}, nil},
	{"encodings", "i18n", plain, []string{"commitencoding", "logoutputencoding"}, nil},
	{"how worktrees are made", "worktree", plain, []string{"guessremote", "userelativepaths"}, nil},
	{"how patches are applied", "apply", plain, []string{"whitespace", "ignorewhitespace"}, nil},
	{"order of versions", "versionsort", plain, []string{"suffix", "prereleasesuffix"}, nil},
	{"which notes are shown", "notes", plain,
		[]string{"displayref", "mergestrategy", "rewriteref", "rewritemode"}, nil},
	{"names of branches of a workflow tool", "gitflow", named,
		[]string{"master", "develop", "feature", "bugfix", "release", "hotfix", "support", "versiontag"}, nil},
}

// isBool accepts what git reads as a boolean, not numbers beyond 0 and 1.
func isBool(e Entry) bool {
	if e.NoValue {
		return true
	}
	switch strings.ToLower(e.Value) {
	case "true", "false", "yes", "no", "on", "off", "1", "0", "":
		return true
	}
	return false
}

func isNoCommand(e Entry) bool { return !strings.HasPrefix(strings.TrimSpace(e.Value), "!") }

func isBranchNote(e Entry) bool {
	return e.Key != "remote" && e.Key != "pushremote" && e.Key != "mergeoptions"
}

// isLFS accepts exactly what `git lfs install` writes: a program found through
// the host's PATH, which no workspace can replace.
func isLFS(e Entry) bool {
	if e.Subsection != "lfs" {
		return false
	}
	switch e.Key {
	case "clean":
		return e.Value == "git-lfs clean -- %f"
	case "smudge":
		return e.Value == "git-lfs smudge -- %f" || e.Value == "git-lfs smudge --skip -- %f"
	case "process":
		return e.Value == "git-lfs filter-process" || e.Value == "git-lfs filter-process --skip"
	}
	return isBool(e)
}

func isPlainURL(e Entry) bool { return plainURL(e.Value) }

func arePlainURLs(e Entry) bool {
	for u := range strings.FieldsSeq(e.Value) {
		if !plainURL(u) {
			return false
		}
	}
	return true
}

// plainURL says whether git reaches u by itself: by a path, by ssh's
// host:path, or by a scheme that needs no helper program of another name.
// "helper::address" and "unknown://" start git-remote-helper, and what starts
// with '-' could be taken for an option by git or ssh.
func plainURL(u string) bool {
	if strings.HasPrefix(u, "-") {
		return false
	}
	if before, _, ok := strings.Cut(u, "::"); ok && !strings.ContainsAny(before, "/[") {
		return false
	}
	scheme, rest, ok := strings.Cut(u, "://")
	if !ok {
		_, path, scp := strings.Cut(u, ":")
		return !scp || !strings.HasPrefix(path, "-")
	}
	switch strings.ToLower(scheme) {
	case "file":
		return true
	case "http", "https", "ftp", "ftps", "ssh", "git", "git+ssh", "ssh+git":
		host := rest
		if i := strings.IndexAny(host, "/?#"); i >= 0 {
			host = host[:i]
		}
		host = host[strings.LastIndexByte(host, '@')+1:]
		return !strings.HasPrefix(host, "-") && !strings.HasPrefix(rest, "-")
	}
	// A path such as ./a://b has a slash before the colon.
	return strings.Contains(scheme, "/")
}
