//go:build !linux

package main

import (
	"context"

	"github.com/tether-sandbox/tether"
)

// asker asks nobody: there is no terminal on this system.
type asker struct{}

func terminal() *asker { return nil }

func (*asker) interrupted() int { return 0 }

// Approve is no.
func (*asker) Approve(context.Context, tether.Question) (tether.Answer, error) {
	return tether.Answer{}, nil
}
