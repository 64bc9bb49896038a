package policy

import (
	"cmp"
	"slices"
)

// The sets of this package are sorted slices without repeats; an empty one is
// nil, so that equal sets are deeply equal.

func sorted[T cmp.Ordered](lists ...[]T) []T {
	all := slices.Concat(lists...)
	if len(all) == 0 {
		return nil
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func has[T cmp.Ordered](set []T, e T) bool {
	_, ok := slices.BinarySearch(set, e)
	return ok
}

// coveredBy tells whether a is a subset of b.
func coveredBy[T cmp.Ordered](a, b []T) bool {
	return !slices.ContainsFunc(a, func(e T) bool { return !has(b, e) })
}

func both[T cmp.Ordered](a, b []T) []T {
	return minusFunc(a, func(e T) bool { return !has(b, e) })
}

func minus[T cmp.Ordered](a, b []T) []T {
	return minusFunc(a, func(e T) bool { return has(b, e) })
}

func minusFunc[T any](a []T, drop func(T) bool) []T {
	var out []T
	for _, e := range a {
		if !drop(e) {
			out = append(out, e)
		}
	}
	return out
}
