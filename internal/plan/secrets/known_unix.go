//go:build linux || darwin

package secrets

import (
	"context"
	"maps"
	"slices"
	"time"
)

// memory is what is known of a root; nil under rules that have no key.
func (k *Known) memory(root string, rules Rules) *memory {
	if k == nil || rules.Key == "" || rules.Files {
		return nil
	}
	if k.key != rules.Key {
		k.Forget()
		k.key = rules.Key
	}
	top := k.roots[root]
	if top == nil {
		top = &folder{}
		k.roots[root] = top
	}
	top.settle()
	return &memory{top: top, since: time.Now().Add(-settled).UnixNano(), known: k}
}

// Find is [Find] with what is known: for a tree that nobody changes meanwhile it
// returns the same, but for the numbers of what it took.
func (k *Known) Find(ctx context.Context, roots []Root, rules Rules, cache *Cache) (Result, error) {
	found, err := (&finder{rules: rules, cache: cache, known: k}).find(ctx, roots)
	if err != nil {
		k.Forget() // some of what the watch told of may not have been looked at
	} else if k != nil {
		maps.DeleteFunc(k.roots, func(root string, _ *folder) bool { return !slices.Contains(roots, Root{root}) })
	}
	return found, err
}

// Walk is [Walk] with what is known. Rules with Files set have every file looked
// at, which is done by a walk.
func (k *Known) Walk(ctx context.Context, root string, rules Rules) (Found, error) {
	found, err := walkWith(ctx, root, rules, k.memory(root, rules))
	if err != nil {
		k.Forget()
	}
	return found, err
}
