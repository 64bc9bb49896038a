package local

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/plan"
	"github.com/tether-sandbox/tether/internal/plan/gitmeta"
	"github.com/tether-sandbox/tether/internal/plan/secrets"
	"github.com/tether-sandbox/tether/policy"
)

// trustIndexes keeps git inside from reading hidden files that it tracks, see
// secrets.TrustIndex. It is done for repositories that the command may write
// in, and only for those that proved to belong to the workspace.
func trustIndexes(ctx context.Context, p *plan.Plan) {
	if p.Policy.Profile != policy.WorkspaceWrite {
		return
	}
	for i := range p.Repos {
		r := &p.Repos[i]
		if !r.Verified || r.Worktree == "" || r.Kind == gitmeta.Parent || r.Kind == gitmeta.Foreign {
			continue
		}
		var hidden []string
		for j := range p.Masks {
			if name, ok := strings.CutPrefix(p.Masks[j].Path, r.Worktree+"/"); ok && p.Masks[j].Kind == secrets.MaskStub {
				hidden = append(hidden, name)
			}
		}
		if len(hidden) == 0 {
			continue
		}
		if err := secrets.TrustIndex(ctx, r.GitDir, r.Worktree, hidden); err != nil && !errors.Is(err, unix.ENOENT) {
			p.Notes = append(p.Notes, plan.Note{
				What: "git inside will show hidden files of " + strconv.Quote(r.Worktree) + " as modified: " + err.Error(),
				Hint: "git -C " + strconv.Quote(r.Worktree) + " status"})
		}
	}
}
