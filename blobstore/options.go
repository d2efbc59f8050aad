package blobstore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
	"unicode"
)

// Options configure [Open] and [New]. The zero value, and a nil pointer, mean
// the defaults named below.
type Options struct {
	// Openers maps URL schemes to drivers; see the packages under drivers. A
	// scheme without an opener cannot be opened.
	Openers map[string]Opener

	// FileRoot restricts file URLs to this folder and what is below it. Empty
	// means no restriction. Symbolic links cannot lead out of it.
	FileRoot string

	// RetryBudget is how long one operation may go on retrying transient errors.
	// 0 means 15 minutes; negative means to try once.
	RetryBudget time.Duration

	// RetryDelay is the wait before the first retry; it doubles with each, up to
	// 30 seconds, and is spread by up to a half either way. 0 means 500 milliseconds.
	RetryDelay time.Duration

	// StallTimeout ends an attempt that has moved no byte for so long; it is then
	// retried within the budget. 0 means 2 minutes; negative means never.
	StallTimeout time.Duration

	// OnRetry, if set, is told of every retry before its wait: operation, key,
	// the attempt that failed (from 1), the wait, and the redacted error. It is
	// called from many goroutines and must not block.
	OnRetry func(op, key string, attempt int, wait time.Duration, err error)
}

const maxRetryDelay = 30 * time.Second

func (o *Options) orDefault() Options {
	var out Options
	if o != nil {
		out = *o
	}
	if out.RetryBudget == 0 {
		out.RetryBudget = 15 * time.Minute
	}
	if out.RetryDelay <= 0 {
		out.RetryDelay = 500 * time.Millisecond
	}
	if out.StallTimeout == 0 {
		out.StallTimeout = 2 * time.Minute
	}
	return out
}

// PutOptions change one Put. The zero value, and a nil pointer, mean: replace
// what is there, unknown size, unknown digest.
type PutOptions struct {
	// OnlyIfAbsent stores only if the key has no object, else returns ErrExists.
	OnlyIfAbsent bool

	// SHA256 of the whole content, if known. Content that differs is not stored
	// and returns ErrCorrupt.
	SHA256 *[32]byte

	// SHA256Computed says that the caller has just computed SHA256 of the very bytes that are given to PutBytes, so that
	// they are not hashed again here. A store that verifies the digest itself still does.
	SHA256Computed bool

	// Size of the content in bytes for Put, if known; 0 or less means unknown. A
	// reader that yields more or less is refused with ErrCorrupt and nothing is
	// stored.
	Size int64

	// ContentType of the object; empty means application/octet-stream. One with
	// control characters is ErrInvalid.
	ContentType string
}

func (o *PutOptions) orDefault() PutOptions {
	var out PutOptions
	if o != nil {
		out = *o
	}
	if out.ContentType == "" {
		out.ContentType = "application/octet-stream"
	}
	out.Size = max(out.Size, 0)
	return out
}

// check refuses what no store could be sent.
func (o *PutOptions) check(key string, noReader bool) error {
	switch {
	case noReader:
		return &Error{Op: "put", Key: key, Kind: KindInvalid, Err: errors.New("there is no reader")}
	case strings.ContainsFunc(o.ContentType, unicode.IsControl):
		return &Error{Op: "put", Key: key, Kind: KindInvalid, Err: fmt.Errorf("content type %.40q has a control character", o.ContentType)}
	}
	return nil
}

// nextDelay decides whether and when to try again. spread is in [0, 1).
func nextDelay(first, budget, elapsed time.Duration, attempt int, spread float64) (time.Duration, bool) {
	d := maxRetryDelay
	if shift := attempt - 1; shift < 16 {
		d = min(d, first<<shift)
	}
	d = time.Duration(float64(d) * (0.5 + spread))
	return d, elapsed+d <= budget
}

func spread() float64 { return rand.Float64() }
