package tree

import (
	"errors"
	"fmt"
	"strconv"
)

// ErrMalformed is what errors.Is finds in every error about the content of a tree.
var ErrMalformed = errors.New("malformed tree")

// ErrTooLarge is what errors.Is finds when a tree exceeds a Limit; such a tree is also ErrMalformed.
var ErrTooLarge = errors.New("tree exceeds the limit")

// FormatError says what is wrong with a tree, and where.
type FormatError struct {
	// Index counts the nodes before the faulty one.
	Index int
	// Name is the raw name of the faulty node, as far as it is known.
	Name string
	// Problem is a clause in lower case.
	Problem string
	// Err is the cause, or nil.
	Err error
}

// Error names the node by number and quoted name.
func (e *FormatError) Error() string {
	text := fmt.Sprintf("malformed tree: node %d", e.Index)
	if e.Name != "" {
		text += " (" + quoteShort(e.Name) + ")"
	}
	text += ": " + e.Problem
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap makes the error match ErrMalformed and its cause.
func (e *FormatError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrMalformed}
	}
	return []error{ErrMalformed, e.Err}
}

// quoteShort keeps hostile input from filling a message.
func quoteShort(s string) string {
	const most = 80
	if len(s) > most {
		return strconv.Quote(s[:most]) + "…"
	}
	return strconv.Quote(s)
}
