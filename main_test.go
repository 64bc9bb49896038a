package tether_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/tether-sandbox/tether"
	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/policy"
)

// forgetful makes this program, started again, one that does not lend itself
// to the inner stage.
const forgetful = "TETHER_TEST_FORGETS_INNER"

// scripted makes this program one that works through a session in a folder, to
// be killed on the way.
const scripted = "TETHER_TEST_SCRIPTED"

func TestMain(m *testing.M) {
	if os.Getenv(forgetful) != "" {
		_, err := tether.Open(context.Background(), tether.Options{Policy: policy.Default("/tmp/x")})
		fmt.Println(fault.CodeOf(err), fault.HintOf(err))
		os.Exit(0)
	}
	tether.Inner()
	if dir := os.Getenv(scripted); dir != "" {
		scriptedSession(dir)
		os.Exit(0)
	}
	// Nothing of the tests touches the real home.
	dir, err := os.MkdirTemp("", "tether-api-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for name, value := range map[string]string{"XDG_STATE_HOME": filepath.Join(dir, "state"), "XDG_CONFIG_HOME": filepath.Join(dir, "config")} {
		if err := os.Setenv(name, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}
