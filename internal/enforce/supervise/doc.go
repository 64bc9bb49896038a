// Package supervise is the outer end of the inner stage: it starts a program
// that becomes the inner stage, hands it its order, and speaks with it over one
// socket until everything inside is gone.
package supervise
