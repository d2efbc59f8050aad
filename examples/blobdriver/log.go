package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

// bucket is a log of records: the length of a header in 4 bytes, the header as JSON, the content. Of a key's records the
// newest counts.
type bucket struct {
	file *os.File

	mu      sync.RWMutex
	objects map[string]object
	end     int64 // of the last record
}

type object struct {
	header
	offset int64 // of the content
}

type header struct {
	Key     string
	Size    int64
	Time    time.Time
	Deleted bool
}

var errExists = errors.New("the object exists")

// add appends a record. Its header, which makes it one, is written when all else is on disk.
func (b *bucket) add(h header, content io.Reader, onlyIfAbsent bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, found := b.objects[h.Key]; found && onlyIfAbsent {
		return errExists
	}
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	text = append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)
	begin := b.end + int64(len(text))
	if _, err := io.Copy(io.NewOffsetWriter(b.file, begin), content); err != nil {
		return err
	}
	if err := b.file.Sync(); err != nil {
		return err
	}
	if _, err := b.file.WriteAt(text, b.end); err != nil {
		return err
	}
	if err := b.file.Sync(); err != nil {
		return err
	}
	b.accept(h, begin)
	return nil
}

func (b *bucket) accept(h header, begin int64) {
	b.end = begin + h.Size
	if h.Deleted {
		delete(b.objects, h.Key)
		return
	}
	b.objects[h.Key] = object{h, begin}
}

const maxHeader = 64 << 10

// load reads the headers, and cuts off what a crash left of a last record.
func (b *bucket) load() error {
	info, err := b.file.Stat()
	if err != nil {
		return err
	}
	for {
		h, n, err := b.header()
		if err != nil {
			return err
		}
		if n == 0 || b.end+n+h.Size > info.Size() {
			return b.file.Truncate(b.end)
		}
		b.accept(h, b.end+n)
	}
}

// header reads the header at the end of what is known, and returns its length; 0 for none.
func (b *bucket) header() (h header, n int64, err error) {
	var length [4]byte
	if _, err := b.file.ReadAt(length[:], b.end); err != nil {
		return h, 0, ignoreEOF(err)
	}
	size := binary.BigEndian.Uint32(length[:])
	if size == 0 || size > maxHeader {
		return h, 0, nil
	}
	text := make([]byte, size)
	if _, err := b.file.ReadAt(text, b.end+4); err != nil {
		return h, 0, ignoreEOF(err)
	}
	if json.Unmarshal(text, &h) != nil || h.Size < 0 {
		return h, 0, nil //nolint:nilerr // what is no header is the rest of a crash
	}
	return h, int64(size) + 4, nil
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
