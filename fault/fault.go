// Package fault holds Tether's stable codes and the one error type that
// carries them.
//
// A program branches on [Error.Code] or, shorter, on [CodeOf]; the text is for
// people and may change at any time. Codes are only ever added: see code.go,
// the one list of them, and docs/codes.md, generated from it.
package fault

import (
	"errors"
	"strings"
)

// Error is a failure of Tether's own, as opposed to the failure of a command
// that Tether ran (which is a result, not an error).
type Error struct {
	// Code is the stable code, the only part that a program should read.
	Code Code
	// What says what happened, in one line without a final full stop.
	What string
	// Hint is the exact thing to type or to change, empty when there is no
	// way out. It never suggests to run without a sandbox.
	Hint string
	// Err is the cause; it may be nil.
	Err error
}

// New returns an error with a code and one line that says what happened.
func New(code Code, what string) *Error { return &Error{Code: code, What: what} }

// Wrap returns an error with a code and what happened, caused by err.
func Wrap(code Code, what string, err error) *Error {
	return &Error{Code: code, What: what, Err: err}
}

// WithHint returns a copy of e that carries hint.
func (e *Error) WithHint(hint string) *Error {
	c := *e
	c.Hint = hint
	return &c
}

// Error prints "CODE: what happened: cause". The hint is not part of it.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(string(e.Code))
	if e.What != "" {
		b.WriteString(": ")
		b.WriteString(e.What)
	}
	if e.Err != nil {
		b.WriteString(": ")
		b.WriteString(strings.TrimPrefix(e.Err.Error(), string(e.Code)+": ")) // once is enough
	}
	return b.String()
}

// TextOf returns the text of err without the code that stands before it, for
// those who show [CodeOf] beside it.
func TextOf(err error) string {
	if err == nil {
		return ""
	}
	return strings.TrimPrefix(err.Error(), string(CodeOf(err))+": ")
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// CodeOf returns the code of the first [Error] in err's tree, and [Internal]
// for any other non-nil error. The code of nil is empty.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return Internal
}

// HintOf returns the hint of the first [Error] in err's tree that has one.
func HintOf(err error) string {
	for err != nil {
		e, ok := errors.AsType[*Error](err)
		if !ok {
			return ""
		}
		if e.Hint != "" {
			return e.Hint
		}
		err = e.Err
	}
	return ""
}
