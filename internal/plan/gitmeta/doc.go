// Package gitmeta knows what Tether must know of git without ever running git
// or anything that a repository's configuration names.
//
// It has four parts, in the order in which a run uses them:
//
//   - [Parse] reads git's configuration syntax exactly; [Executable] says
//     whether a key can make git run a program, read another configuration or
//     find hooks elsewhere (an allowlist of harmless keys: what is unknown
//     counts as executable); [Filtered] and [GlobalCopy] make the copies that
//     are shown inside, without credentials.
//   - [Discover] turns the .git entries of a workspace into [Repo] values and
//     shows nothing of a git directory outside that does not prove by a
//     back-pointer that it belongs here.
//   - [Locks] lists every path of a repository through which git finds its
//     configuration, its hooks or a program to run.
//   - [Take] and [Settle] find what could not be prevented: configuration and
//     hooks that are new or changed once the command's tree is dead are moved
//     into quarantine and reported.
//
// Not promised: programs that run later because a file of the tree says so
// (Makefiles, package scripts); what a host process does between the change
// and Settle; configuration outside the workspace and its verified common
// directories (the user's own). Parsing follows git 2.39 to 2.5x; files that
// git itself would reject are errors here and must be treated as hostile.
package gitmeta
