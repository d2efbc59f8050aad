// Package gcs stores objects in Google Cloud Storage: "gs://bucket/prefix".
//
// # What it does
//
// It builds its own client. Credentials are Google's application default: the
// file named by GOOGLE_APPLICATION_CREDENTIALS, workload identity, the metadata
// server; Open fails if there are none. STORAGE_EMULATOR_HOST leads to an
// emulator, without credentials. Parameters, all optional; unknown ones are errors:
//
//	anonymous         true: no credentials at all
//	universe_domain   of clouds other than googleapis.com
//	prefix            folder below the path
//
// # Minimal use
//
//	opts := &blobstore.Options{Openers: gcs.Openers()}
//	s, err := blobstore.Open(ctx, "gs://backups/db", opts)
//
// # Guarantees
//
//   - A refused request is ErrPermission, never ErrNotFound.
//   - PutBytes is one request; streams of any size go in chunks of 16 MiB, each
//     of which is sent again after a transient error.
//
// # What it never does
//
// It never creates or configures buckets, and never deletes generations.
package gcs
