package mcpserver

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// maxProgress is how much output waits to be told; of more, the newest.
	maxProgress = 4 << 10
	// progressPause lies between two notifications.
	progressPause = 100 * time.Millisecond
)

// progress tells a client the output of a command while it runs: whole lines
// where there are some. It never holds the command up. A slow client gets the
// newest lines; the result has all that is kept.
type progress struct {
	tell func(text string, total int64)

	wake, stop, done chan struct{}

	mu      sync.Mutex
	pending []byte
	total   int64 // bytes written so far
}

// follow starts telling of a call, or returns nil if its client did not ask.
func follow(ctx context.Context, req *mcp.CallToolRequest) *progress {
	token := req.Params.GetProgressToken()
	if token == nil {
		return nil
	}
	return newProgress(func(text string, total int64) {
		// Who does not hear it, is gone; the call is cancelled by that.
		_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Message: text, Progress: float64(total)})
	})
}

func newProgress(tell func(string, int64)) *progress {
	p := &progress{tell: tell, wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	go p.run()
	return p
}

// watch is what takes the output.
func (p *progress) watch() func([]byte) {
	if p == nil {
		return nil
	}
	return func(b []byte) {
		p.mu.Lock()
		p.total += int64(len(b))
		if len(b) > maxProgress {
			b = b[len(b)-maxProgress:]
		}
		if over := len(p.pending) + len(b) - maxProgress; over > 0 {
			p.pending = p.pending[:copy(p.pending, p.pending[over:])]
		}
		p.pending = append(p.pending, b...)
		p.mu.Unlock()
		select {
		case p.wake <- struct{}{}:
		default:
		}
	}
}

// end returns when nothing more will be told.
func (p *progress) end() {
	if p != nil {
		close(p.stop)
		<-p.done
	}
}

func (p *progress) run() {
	defer close(p.done)
	pause := time.NewTimer(0)
	defer pause.Stop()
	rounds := 0 // since only a part of a line is there
	for {
		select {
		case <-p.stop:
			return
		case <-pause.C:
		}
		text, total, rest := p.take(rounds >= 10)
		if text != "" {
			rounds = 0
			p.tell(text, total)
		} else if rest {
			rounds++
		}
		if !rest || text != "" {
			select {
			case <-p.stop:
				return
			case <-p.wake:
			}
		}
		pause.Reset(progressPause)
	}
}

// take returns the lines that wait, with part also one that is not finished,
// and says whether something stays.
func (p *progress) take(part bool) (text string, total int64, rest bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	end := bytes.LastIndexByte(p.pending, '\n') + 1
	if end == 0 && part {
		end = len(p.pending)
	}
	text = strings.ToValidUTF8(strings.TrimSuffix(string(p.pending[:end]), "\n"), "\uFFFD")
	p.pending = p.pending[:copy(p.pending, p.pending[end:])]
	return text, p.total, len(p.pending) > 0
}
