package flagset

import (
	"os"
	"path/filepath"

	"github.com/tether-sandbox/tether/internal/world/local"
)

// Folders returns Tether's own folders of this user, state and
// configuration. One that cannot be named is empty: there is nothing in it.
func Folders() (state, config string, err error) {
	state, config = local.OwnFolders(os.Environ())
	if !filepath.IsAbs(state) {
		state = ""
	}
	if !filepath.IsAbs(config) {
		config = ""
	}
	return state, config, nil
}
