package blockdev

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// ReadChanges reads a list of changes from JSON lines: first {"kind": "delta", "base": "…", "size": n}, then
// {"offset": n, "length": n} for each range. The error is a ChangesError about the first line; what is wrong with a
// later one ends the ranges. They are read from in as they are used.
func ReadChanges(in io.Reader) (*Changes, error) {
	lines := bufio.NewScanner(in)
	var head struct {
		Kind Kind   `json:"kind"`
		Base string `json:"base"`
		Size int64  `json:"size"`
	}
	if more, err := nextLine(lines, &head); err != nil || !more {
		if err == nil {
			err = io.ErrUnexpectedEOF
		}
		return nil, &ChangesError{Index: -1, Problem: "its first line cannot be read", Err: err}
	}
	return &Changes{Kind: head.Kind, Base: head.Base, VolumeSize: head.Size, Ranges: func(yield func(Range, error) bool) {
		for {
			var line struct {
				Offset *int64 `json:"offset"`
				Length *int64 `json:"length"`
			}
			more, err := nextLine(lines, &line)
			if err == nil && more && (line.Offset == nil || line.Length == nil) {
				err = fmt.Errorf("a range without an offset or a length")
			}
			if err != nil {
				yield(Range{}, err)
				return
			}
			if !more || !yield(Range{Offset: *line.Offset, Length: *line.Length}, nil) {
				return
			}
		}
	}}, nil
}

// nextLine decodes the next line that is not empty, and reports whether there was one.
func nextLine(lines *bufio.Scanner, into any) (bool, error) {
	for lines.Scan() {
		text := bytes.TrimSpace(lines.Bytes())
		if len(text) == 0 {
			continue
		}
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(into); err != nil {
			return false, fmt.Errorf("%.80q: %w", text, err)
		}
		if _, err := decoder.Token(); err != io.EOF {
			return false, fmt.Errorf("%.80q: something follows", text)
		}
		return true, nil
	}
	return false, lines.Err()
}
