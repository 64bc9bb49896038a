package main

import (
	"os"
	"os/user"
	"path/filepath"
	"strconv"

	"github.com/tether-sandbox/tether/internal/world/local"
)

// ownFolders returns Tether's own folders of this user, state and
// configuration. One that cannot be named is empty: there is nothing in it.
func ownFolders() (state, config string, err error) {
	environ := os.Environ()
	state, config = local.Folders("", environ)
	if filepath.IsAbs(state) && filepath.IsAbs(config) {
		return state, config, nil
	}
	// As everywhere, the home is that of the account and not $HOME.
	if u, err := user.LookupId(strconv.Itoa(os.Geteuid())); err == nil {
		state, config = local.Folders(u.HomeDir, environ)
	}
	if !filepath.IsAbs(state) {
		state = ""
	}
	if !filepath.IsAbs(config) {
		config = ""
	}
	return state, config, nil
}
