package kittest

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ErrInjected is the error of a broken call that was given no other.
var ErrInjected = errors.New("injected failure")

// AnyWrite as the verb of a [Rule] matches every call that can change anything.
const AnyWrite = "write"

// Rule breaks some calls of a [FaultClient]. Empty fields match anything.
type Rule struct {
	// Verb is that of [Call], or [AnyWrite].
	Verb string
	// Kind is the kind of the object, such as "PersistentVolumeClaim".
	Kind string
	// Subresource is as in "status"; "-" matches calls for the object itself only.
	Subresource string
	// Nth is which of the matching calls is broken, from 1; 0: each one.
	Nth int
	// Fault breaks the call.
	Fault Fault
	// Lag, when positive, hides the last so many writes from reads instead; the
	// other fields then mean nothing.
	Lag int
}

// String describes the rule.
func (r Rule) String() string {
	return fmt.Sprintf("rule{verb %q, kind %q, subresource %q, nth %d}", r.Verb, r.Kind, r.Subresource, r.Nth)
}

func (r Rule) matches(c Call) bool {
	return (r.Verb == "" || r.Verb == c.Verb || r.Verb == AnyWrite && c.IsWrite()) &&
		(r.Kind == "" || r.Kind == c.Kind) &&
		(r.Subresource == "" || r.Subresource == c.Subresource || r.Subresource == "-" && c.Subresource == "")
}

// Fault stands between a caller and the call. It returns what the caller gets.
type Fault func(ctx context.Context, a Attempt) error

// Attempt is a call about to happen.
type Attempt struct {
	Call Call
	// Perform makes the call.
	Perform func() error
	// Unseen makes the call so that the caller's object shows nothing of it.
	Unseen func() error
}

// Fail does not make the call and returns err, or [ErrInjected] when it is nil.
func Fail(err error) Fault {
	return func(context.Context, Attempt) error { return orInjected(err) }
}

// Lose makes the call and returns err, or [ErrInjected] when it is nil, in place
// of a success.
func Lose(err error) Fault {
	return func(_ context.Context, a Attempt) error {
		if failed := a.Unseen(); failed != nil {
			return failed
		}
		return orInjected(err)
	}
}

// Before runs something just before the call: another writer, for example.
func Before(run func(ctx context.Context) error) Fault {
	return func(ctx context.Context, a Attempt) error {
		if err := run(ctx); err != nil {
			return fmt.Errorf("running before %s: %w", a.Call, err)
		}
		return a.Perform()
	}
}

// Conflict does not make the call and returns the API server's 409.
func Conflict() Fault {
	return func(_ context.Context, a Attempt) error {
		resource := schema.GroupResource{Group: a.Call.Group, Resource: a.Call.Resource}
		return apierrors.NewConflict(resource, a.Call.Name, errors.New("the object has been modified (injected)"))
	}
}

// FailNth fails the n-th call of a verb on a kind; both may be empty, n 0 is each.
func FailNth(n int, verb, kind string, err error) Rule {
	return Rule{Verb: verb, Kind: kind, Nth: n, Fault: Fail(err)}
}

// LoseResponse makes the n-th call of a verb on a kind and loses its response.
func LoseResponse(n int, verb, kind string, err error) Rule {
	return Rule{Verb: verb, Kind: kind, Nth: n, Fault: Lose(err)}
}

// ConflictOnce answers the first call of a verb on a kind with a conflict.
func ConflictOnce(verb, kind string) Rule {
	return Rule{Verb: verb, Kind: kind, Nth: 1, Fault: Conflict()}
}

// LagReads lets get and list see the world as it was before the last writes
// made through the client, as a cache does. [FaultClient.CatchUp] ends it.
func LagReads(writes int) Rule { return Rule{Lag: writes} }

func orInjected(err error) error {
	if err == nil {
		return ErrInjected
	}
	return err
}
