package secrets

// Known is what searches found, kept from one to the next for as long as a watch
// says nothing else: they list only the directories that it told of, and those
// of which it cannot tell. What an entry with a hidden mark is by now is looked at
// each time, and under [Rules].Since so is every link and marked entry: a file
// changes by its other names as well, through descriptors, and by being mapped
// into memory.
//
// It is true for a tree that only this kernel changes and for the mounts that
// stood when it was begun: where anything else may have happened, [Known.Forget]
// is called. File systems that others can change (network, FUSE, overlays) are
// never known but listed each time, or compared by their times.
//
// A nil Known knows nothing, and remembers nothing. It is not safe for
// concurrent use.
type Known struct {
	watch func(dir int, path string) (int32, error)
	key   string
	roots map[string]*folder
}

// NewKnown knows nothing yet. watch begins to watch the directory at path that is
// open as dir, if nobody does, and returns the number by which [Known.Touch] is
// told of it. It is called by several workers at once.
func NewKnown(watch func(dir int, path string) (int32, error)) *Known {
	return &Known{watch: watch, roots: map[string]*folder{}}
}

// Forget forgets everything.
func (k *Known) Forget() {
	if k != nil {
		clear(k.roots)
	}
}

// Touch says in which watched directories something happened.
func (k *Known) Touch(watches map[int32]bool) {
	if k == nil || len(watches) == 0 {
		return
	}
	for _, f := range k.roots {
		f.touch(watches)
	}
}

func (f *folder) touch(watches map[int32]bool) {
	if watches[f.watch] {
		f.watch, f.ctime = 0, 0
	}
	for _, k := range f.kids {
		k.touch(watches)
	}
}

// arm watches a directory that is about to be listed.
func (k *Known) arm(dir int, path string) int32 {
	n, err := k.watch(dir, path)
	if err != nil {
		return 0
	}
	return n
}

// settle finds out where nothing has to be looked at.
func (f *folder) settle() {
	f.dirs, f.all, f.quiet = 1, f.files, f.watch != 0 && !f.bare && len(f.entries) == 0
	for _, k := range f.kids {
		k.settle()
		f.dirs += k.dirs
		f.all += k.all
		f.quiet = f.quiet && k.quiet
	}
}
