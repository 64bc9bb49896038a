package fault_test

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/tether-sandbox/tether/fault"
)

func TestErrorText(t *testing.T) {
	e := fault.Wrap(fault.SandboxBadWorkspace, "cannot use it", fs.ErrNotExist).WithHint("tether run -C DIR")
	if got, want := e.Error(), "SANDBOX_BAD_WORKSPACE: cannot use it: file does not exist"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := fault.TextOf(e), "cannot use it: file does not exist"; got != want {
		t.Errorf("TextOf: got %q, want %q", got, want)
	}
	same := fault.Wrap(fault.SandboxBadWorkspace, "outer", e)
	if got, want := same.Error(), "SANDBOX_BAD_WORKSPACE: outer: cannot use it: file does not exist"; got != want {
		t.Errorf("one code twice: got %q, want %q", got, want)
	}
	other := fault.Wrap(fault.Internal, "outer", e)
	if got, want := other.Error(), "INTERNAL: outer: SANDBOX_BAD_WORKSPACE: cannot use it: file does not exist"; got != want {
		t.Errorf("two codes: got %q, want %q", got, want)
	}
	if fault.TextOf(nil) != "" || fault.TextOf(errors.New("x: y")) != "x: y" {
		t.Error("TextOf of what has no code")
	}
	if !errors.Is(e, fs.ErrNotExist) {
		t.Error("the cause is lost")
	}
}

func TestCodeAndHintThroughWrapping(t *testing.T) {
	inner := fault.New(fault.PolicyInvalid, "bad size").WithHint("use 10M")
	outer := fmt.Errorf("flags: %w", fault.Wrap(fault.UsageInvalid, "flag --max-output", inner))
	if got := fault.CodeOf(outer); got != fault.UsageInvalid {
		t.Errorf("code: got %s, want the outermost, %s", got, fault.UsageInvalid)
	}
	if got := fault.HintOf(outer); got != "use 10M" {
		t.Errorf("hint: got %q", got)
	}
	if got := fault.CodeOf(errors.New("x")); got != fault.Internal {
		t.Errorf("code of a plain error: got %s", got)
	}
	if got := fault.CodeOf(nil); got != "" {
		t.Errorf("code of nil: got %q", got)
	}
}
