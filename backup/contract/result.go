package contract

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// MaxResult is the most bytes that an encoded Result has. The kubelet cuts a termination message at 4,096 bytes.
const MaxResult = 3072

// Outcome is how an operation ended.
type Outcome string

// The outcomes.
const (
	// Succeeded: everything asked for was done and verified.
	Succeeded Outcome = "Succeeded"
	// Empty: the volume held nothing; a snapshot marked empty was recorded.
	Empty Outcome = "Empty"
	// Partial: some files could not be read and the request allowed that; a snapshot marked partial was recorded.
	Partial Outcome = "Partial"
	// Failed: nothing was recorded; Reason says why.
	Failed Outcome = "Failed"
)

// RepositoryState is what a lookup found.
type RepositoryState string

// The states. There is none for "unknown": a lookup that cannot tell fails.
const (
	RepositoryPresent RepositoryState = "Present"
	// RepositoryBroken: keys or snapshots without a config: half initialised, or damaged.
	RepositoryBroken RepositoryState = "Broken"
	RepositoryAbsent RepositoryState = "Absent"
)

// Result is what a mover reports. Zero fields are left out.
type Result struct {
	Version   int       `json:"version"`
	Operation Operation `json:"operation"`
	Outcome   Outcome   `json:"outcome"`
	// Reason is a CamelCase word for people and programs; empty on success.
	Reason string `json:"reason,omitempty"`
	// Message is a sentence that says what happened and what to do; empty on success.
	Message string `json:"message,omitempty"`
	// Retry says that the same request may succeed later without anybody's help.
	Retry bool `json:"retry,omitempty"`

	Repository     RepositoryState `json:"repository,omitempty"`
	RepositoryID   string          `json:"repositoryID,omitempty"`
	KeyFingerprint string          `json:"keyFingerprint,omitempty"`
	// Initialized says that this mover created the repository.
	Initialized bool `json:"initialized,omitempty"`

	SnapshotID   string    `json:"snapshotID,omitempty"`
	SnapshotTime time.Time `json:"snapshotTime,omitzero"`
	// Bytes and Files are the size of what was backed up or restored; Added is what it took in the store, in bytes.
	Bytes int64 `json:"bytes,omitempty"`
	Files int64 `json:"files,omitempty"`
	Added int64 `json:"added,omitempty"`
	// Seconds is how long the operation took.
	Seconds float64 `json:"seconds,omitempty"`
	// Reused says that an earlier attempt of the same run had already committed its snapshot.
	Reused bool `json:"reused,omitempty"`
	// Kept and Removed count snapshots after OperationMaintain and OperationDelete; Freed is in bytes.
	Kept    int   `json:"kept,omitempty"`
	Removed int   `json:"removed,omitempty"`
	Freed   int64 `json:"freed,omitempty"`

	// Paths are the first of the files concerned, PathCount is how many there are.
	Paths     []string `json:"paths,omitempty"`
	PathCount int      `json:"pathCount,omitempty"`
	// Notes are sentences about what was not as it should be, on success too.
	Notes []string `json:"notes,omitempty"`
}

// Good reports whether the operation did everything that was asked.
func (r Result) Good() bool { return r.Outcome == Succeeded }

// Encode returns the result as JSON of at most MaxResult bytes: paths go first, then notes, then the message's end.
func (r Result) Encode() []byte {
	r.Version = Version
	r.PathCount = max(r.PathCount, len(r.Paths))
	r.Paths, r.Notes = bounded(r.Paths), bounded(r.Notes)
	r.Message = cut(strings.ToValidUTF8(r.Message, "\uFFFD"), MaxResult)
	for {
		text, err := json.Marshal(r)
		if err == nil && len(text) <= MaxResult {
			return text
		}
		if !r.shrink() {
			return mustFit(r)
		}
	}
}

func (r *Result) shrink() bool {
	switch {
	case len(r.Paths) > 0:
		r.Paths = r.Paths[:len(r.Paths)-1]
	case len(r.Notes) > 0:
		r.Notes = r.Notes[:len(r.Notes)-1]
	case len(r.Message) > 64:
		r.Message = cut(r.Message, len(r.Message)/2)
	default:
		return false
	}
	return true
}

// mustFit is for results whose short fields are too long, which only a faulty mover makes: it keeps the outcome's
// meaning and turns anything but a failure into one, since what cannot be reported is not a success.
func mustFit(r Result) []byte {
	text, _ := json.Marshal(Result{
		Version: Version, Operation: Operation(cut(string(r.Operation), 40)), Outcome: Failed, Reason: "ResultTooLarge",
		Message: "the mover's result does not fit its limit: " + cut(r.Message, 64),
	})
	return text
}

// maxListed is how many paths or notes a result lists at the most.
const maxListed = 20

func bounded(texts []string) []string {
	out := make([]string, 0, maxListed)
	for _, text := range texts[:min(len(texts), maxListed)] {
		out = append(out, cut(strings.ToValidUTF8(text, "\uFFFD"), MaxResult/4))
	}
	return out
}

func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "…"
}

// ErrNoResult says that a mover ended without saying how. Unknown is not success.
var ErrNoResult = errors.New("the mover ended without a result")

// DecodeResult reads a termination message. An empty one is ErrNoResult; anything that is not a result is an error.
func DecodeResult(message string) (Result, error) {
	if strings.TrimSpace(message) == "" {
		return Result{}, ErrNoResult
	}
	var r Result
	if err := json.Unmarshal([]byte(message), &r); err != nil {
		return Result{}, fmt.Errorf("%w: its message is not one: %.80q", ErrNoResult, message)
	}
	switch {
	case r.Version != Version:
		return Result{}, fmt.Errorf("%w: its message has version %d and this operator knows %d", ErrNoResult, r.Version, Version)
	case r.Outcome != Succeeded && r.Outcome != Empty && r.Outcome != Partial && r.Outcome != Failed:
		return Result{}, fmt.Errorf("%w: its outcome %.40q is not known", ErrNoResult, r.Outcome)
	}
	return r, nil
}
