package local

import "github.com/tether-sandbox/tether/internal/watch"

// sight is what a vigil watches with. How many of them a user may have is bounded,
// and a command could use them up before its vigil begins: so it is opened before
// the command starts.
type sight struct {
	tree *watch.Tree
	err  error
}

func openEyes() (e sight) {
	e.tree, e.err = watch.New()
	if watch.Partly(e.err) {
		// Others have used them up: all is looked at now and then instead.
		e.tree, e.err = watch.Blind()
	}
	return e
}

func (e sight) close() {
	if e.tree != nil {
		e.tree.Close()
	}
}
