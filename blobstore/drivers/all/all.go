// Package all brings every driver, for programs that take any storage URL.
//
// # What it does
//
// It merges the openers of s3, gcs, azure, file and mem, and so links every SDK:
// about 25 MB. Import single drivers where that matters.
//
// # Minimal use
//
//	s, err := blobstore.Open(ctx, url, &blobstore.Options{Openers: all.Openers()})
//
// # Guarantees
//
// Those of the drivers.
//
// # What it never does
//
// It never registers anything on import. Delete a scheme from the map to forbid it.
package all

import (
	"maps"

	"example.com/pvcbackup/blobstore"
	"example.com/pvcbackup/blobstore/drivers/azure"
	"example.com/pvcbackup/blobstore/drivers/file"
	"example.com/pvcbackup/blobstore/drivers/gcs"
	"example.com/pvcbackup/blobstore/drivers/mem"
	"example.com/pvcbackup/blobstore/drivers/s3"
)

// Openers returns the openers of all drivers; the map is the caller's.
func Openers() map[string]blobstore.Opener {
	out := map[string]blobstore.Opener{}
	for _, m := range []map[string]blobstore.Opener{s3.Openers(), gcs.Openers(), azure.Openers(), file.Openers(), mem.Openers()} {
		maps.Copy(out, m)
	}
	return out
}
