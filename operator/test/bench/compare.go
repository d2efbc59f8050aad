package main

import (
	"errors"
	"fmt"
	"slices"

	"example.com/pvcbackup/backup/restorer/treecmp"
)

// compare returns an error that names how a restored directory differs from its source. What peers restored is only
// compared by name, type and content: that they did the work.
func compare(source, target string, ours bool) error {
	differences, err := treecmp.Compare(source, target, treecmp.Options{SkipRoot: true, Max: 1 << 20})
	if err != nil {
		return err
	}
	var errs []error
	for _, d := range differences {
		if ours || slices.Contains(matters, d.Field) {
			errs = append(errs, errors.New(d.String()))
		}
	}
	if len(errs) > 0 {
		return fmt.Errorf("the restored directory differs: %w", errors.Join(errs[:min(len(errs), 10)]...))
	}
	return nil
}

var matters = []string{"presence", "type", "size", "content"}
