package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// kind is what a record describes, and the name of the directory that holds such things.
type kind string

const (
	volumes   kind = "volumes"
	snapshots kind = "snapshots"
)

// record describes a volume or a snapshot. It is kept beside its data, and moves with it.
type record struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	Source   string    `json:"source,omitempty"` // "volumes/ID", "snapshots/ID", or empty
	Capacity int64     `json:"capacity"`         // bytes; of a snapshot: of the volume it was taken from
	Created  time.Time `json:"created"`
}

var errMissing = errors.New("does not exist")

// store keeps volumes and snapshots below a root directory:
//
//	volumes/ID/{record.json,data}  snapshots/ID/{record.json,data}  making/ (what is not finished)
type store struct {
	root    string
	backend Backend
	lock    *os.File

	mu sync.Mutex // held by whatever changes something, and while copying
}

func openStore(root string, b Backend) (*store, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	s := &store{root: root, backend: b}
	for _, dir := range []string{"", string(volumes), string(snapshots), "making"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			return nil, fmt.Errorf("making --root: %w", err)
		}
	}
	s.lock, err = os.OpenFile(filepath.Join(root, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(s.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		s.close()
		return nil, fmt.Errorf("--root %s is served by another driver: %w", root, err)
	}
	if err := s.removeUnfinished(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *store) close() { _ = s.lock.Close() } // releases the lock

func (s *store) removeUnfinished() error {
	left, err := os.ReadDir(filepath.Join(s.root, "making"))
	if err != nil {
		return err
	}
	for _, e := range left {
		if err := s.backend.Remove(filepath.Join(s.root, "making", e.Name())); err != nil {
			return fmt.Errorf("removing what an earlier driver did not finish: %w", err)
		}
	}
	return nil
}

// idFor is the same for the same name, which makes calls idempotent by name.
func idFor(k kind, name string) string {
	sum := sha256.Sum256([]byte(name))
	return map[kind]string{volumes: "vol-", snapshots: "snap-"}[k] + hex.EncodeToString(sum[:12])
}

var validID = regexp.MustCompile(`^[a-z0-9-]{1,64}$`)

// get returns a record, or an error that is errMissing. An ID that is none of ours is missing, never a path.
func (s *store) get(k kind, id string) (record, error) {
	var r record
	if !validID.MatchString(id) {
		return r, fmt.Errorf("%s/%s %w", k, id, errMissing)
	}
	data, err := os.ReadFile(filepath.Join(s.dir(k, id), "record.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return r, fmt.Errorf("%s/%s %w", k, id, errMissing)
	}
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(data, &r)
}

// list returns all records of a kind, oldest first.
func (s *store) list(k kind) ([]record, error) {
	entries, err := os.ReadDir(filepath.Join(s.root, string(k)))
	if err != nil {
		return nil, err
	}
	var all []record
	for _, e := range entries {
		r, err := s.get(k, e.Name())
		if errors.Is(err, errMissing) {
			continue // removed meanwhile
		}
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b record) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	})
	return all, nil
}

// add makes what r describes; fill makes its data directory. The caller holds the lock.
func (s *store) add(k kind, r record, fill func(data string) error) error {
	aside := filepath.Join(s.root, "making", r.ID)
	if err := os.Mkdir(aside, 0o755); err != nil {
		return err
	}
	err := fill(filepath.Join(aside, "data"))
	if err == nil {
		err = writeRecord(aside, r)
	}
	if err == nil {
		err = os.Rename(aside, s.dir(k, r.ID))
	}
	if err != nil {
		return errors.Join(err, s.backend.Remove(aside))
	}
	return syncDir(filepath.Join(s.root, string(k)))
}

// remove removes a volume or snapshot; one that does not exist is no error. The caller holds the lock.
func (s *store) remove(k kind, id string) error {
	if _, err := s.get(k, id); errors.Is(err, errMissing) {
		return nil
	}
	aside := filepath.Join(s.root, "making", id)
	if err := os.Rename(s.dir(k, id), aside); err != nil {
		return err
	}
	return s.backend.Remove(aside)
}

func (s *store) dir(k kind, id string) string  { return filepath.Join(s.root, string(k), id) }
func (s *store) data(k kind, id string) string { return filepath.Join(s.dir(k, id), "data") }

func writeRecord(dir string, r record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(dir, "record.json"))
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close(), syncDir(dir))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
