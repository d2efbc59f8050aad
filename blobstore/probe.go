package blobstore

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

// Check is one finding of a probe.
type Check struct {
	OK     bool
	Detail string // a sentence in lower case, free of credentials
}

// Report is what [Store.Probe] found out. The zero value means not tried.
type Report struct {
	URL    string // redacted
	Write  Check  // a new object can be stored
	Read   Check  // and read back unchanged, also in part
	List   Check  // and found by listing
	Delete Check  // and deleted; a key that may not is fine for backups, not for pruning

	// ConditionalPut: OnlyIfAbsent is honoured by the store. If it is not, the
	// Store looks before and after writing from now on, which is best effort.
	ConditionalPut Check

	// Digest: content is verified against its SHA-256 before it is stored, by the
	// store or by this program.
	Digest Check

	// Clock is OK when the clocks differ by less than 5 minutes, which S3 demands.
	Clock Check
	// ClockSkew is the store's clock minus ours, to about two seconds.
	ClockSkew time.Duration
}

const (
	probeBudget  = time.Minute
	maxClockSkew = 5 * time.Minute
)

// Probe puts, reads, lists and deletes one object of a few bytes under
// "probe/" and a random name, and tells what works. The error is that of the first step
// without which the store is of no use: write, read or list; the report is as
// complete as possible even then. What it learns about conditional puts and
// digests is used by this Store and its Subs afterwards. It retries for at most
// one minute. A key that may not delete leaves the object behind.
func (s *Store) Probe(ctx context.Context) (Report, error) {
	quick := *s
	quick.opts.RetryBudget = min(s.opts.RetryBudget, probeBudget)
	p := &probe{s: &quick, report: Report{URL: s.url}, data: make([]byte, 64)}
	_, _ = rand.Read(p.data)
	p.key = "probe/" + hex.EncodeToString(p.data[:16])
	return p.run(ctx)
}

type probe struct {
	s      *Store
	key    string
	data   []byte
	report Report
}

func (p *probe) run(ctx context.Context) (Report, error) {
	r := &p.report
	err := p.write(ctx)
	r.Write = check(err, "objects can be stored")
	listed, listErr := p.list(ctx)
	r.List = check(listErr, "objects can be listed")
	if err != nil {
		return *r, err // nothing to read or delete
	}
	readErr := p.read(ctx)
	r.Read = check(readErr, "objects can be read")
	if listErr == nil && listed.Key == "" {
		listErr = &Error{Op: "list", Key: "probe/", Kind: KindCorrupt, Err: errors.New("the object just stored is not listed")}
		r.List = check(listErr, "")
	}
	p.clock(ctx)
	p.condition(ctx)
	p.digest(ctx)
	if err := p.s.Delete(ctx, p.key); err != nil {
		r.Delete = Check{Detail: "objects cannot be deleted: " + err.Error()}
	} else {
		r.Delete = Check{true, "objects can be deleted"}
	}
	return *r, errors.Join(readErr, listErr)
}

func check(err error, good string) Check {
	if err != nil {
		return Check{Detail: err.Error()}
	}
	return Check{true, good}
}

// write stores the object, conditionally so that a policy that demands it is met.
func (p *probe) write(ctx context.Context) error {
	return p.s.PutBytes(ctx, p.key, p.data, &PutOptions{OnlyIfAbsent: true})
}

func (p *probe) read(ctx context.Context) error {
	got, err := p.s.GetBytes(ctx, p.key, int64(len(p.data)))
	if err == nil && !bytes.Equal(got, p.data) {
		err = &Error{Op: "get", Key: p.key, Kind: KindCorrupt, Err: errors.New("it reads differently from what was stored")}
	}
	if err != nil {
		return err
	}
	got, err = p.s.GetRange(ctx, p.key, 10, 20)
	if err == nil && !bytes.Equal(got, p.data[10:30]) {
		err = &Error{Op: "get", Key: p.key, Kind: KindCorrupt, Err: errors.New("a range reads differently from what was stored")}
	}
	return err
}

func (p *probe) list(ctx context.Context) (Object, error) {
	for o, err := range p.s.List(ctx, p.key) {
		return o, err
	}
	return Object{}, nil
}

func (p *probe) clock(ctx context.Context) {
	o, err := p.s.Stat(ctx, p.key)
	if err != nil {
		p.report.Clock = Check{Detail: "the store's clock is unknown: " + err.Error()}
		return
	}
	p.report.ClockSkew, p.report.Clock = judgeClock(o.ModTime, time.Now())
}

// judgeClock compares the time that the store gave an object just written with ours.
func judgeClock(stored, now time.Time) (time.Duration, Check) {
	skew := stored.Sub(now).Round(time.Second)
	if skew.Abs() >= maxClockSkew {
		return skew, Check{Detail: fmt.Sprintf("the store's clock differs from ours by %s: set the clock", skew)}
	}
	return skew, Check{true, fmt.Sprintf("the store's clock differs from ours by %s", skew)}
}

// condition puts other content over the object, which must be refused.
func (p *probe) condition(ctx context.Context) {
	if p.s.facts.conditionIgnored.Load() {
		p.report.ConditionalPut = Check{Detail: "the store refuses conditional puts: looking before and after writing instead, which is best effort"}
		return
	}
	err := p.s.PutBytes(ctx, p.key, append([]byte("second "), p.data...), &PutOptions{OnlyIfAbsent: true})
	switch {
	case errors.Is(err, ErrExists):
		p.report.ConditionalPut = Check{true, "the store honours conditional puts"}
	case err == nil:
		p.s.facts.conditionIgnored.Store(true)
		p.report.ConditionalPut = Check{Detail: "the store ignores conditional puts: looking before and after writing instead, which is best effort"}
	default:
		p.report.ConditionalPut = Check{Detail: "conditional puts fail: " + err.Error()}
	}
}

// digest puts content under a digest that is not its own, which must be refused.
// It is only a question where the store is the one to verify.
func (p *probe) digest(ctx context.Context) {
	p.report.Digest = Check{true, "content is verified before it is stored"}
	if p.s.driver.PutHashed == nil || p.s.facts.digestIgnored.Load() {
		return
	}
	wrong := [32]byte{1}
	err := p.s.PutBytes(ctx, p.key, p.data, &PutOptions{SHA256: &wrong})
	switch {
	case errors.Is(err, ErrCorrupt):
	case err == nil:
		p.s.facts.digestIgnored.Store(true)
		p.report.Digest.Detail = "the store does not verify content: it is verified here instead"
	default:
		p.report.Digest = Check{Detail: "it is not known whether content is verified: " + err.Error()}
	}
}
