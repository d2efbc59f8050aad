package archiver

import (
	"errors"
	"fmt"
	"strings"
)

// ErrEmpty is returned for an empty source where Options.RefuseEmpty is set.
var ErrEmpty = errors.New("the source is empty")

// maxListed is how many paths an error or result lists.
const maxListed = 20

// UnreadableError says that a run could not read everything, and so has no snapshot.
type UnreadableError struct {
	// Paths are the first ones, relative to the source, with the reason.
	Paths []string
	// Count is how many there are.
	Count int
	// Err is the first one's cause.
	Err error
}

// Error lists a few of the paths.
func (e *UnreadableError) Error() string {
	list := e.Paths
	more := ""
	if len(list) > 3 {
		list = list[:3]
	}
	if e.Count > len(list) {
		more = ", …"
	}
	return fmt.Sprintf("%d entries of the source could not be read, and no snapshot was written: %s%s",
		e.Count, strings.Join(list, ", "), more)
}

// Unwrap returns the first cause.
func (e *UnreadableError) Unwrap() error { return e.Err }

// Reason is the condition reason for reconcilers.
func (e *UnreadableError) Reason() string { return "MoverCannotRead" }

// Terminal reports that trying again at once is of no use.
func (e *UnreadableError) Terminal() bool { return true }
