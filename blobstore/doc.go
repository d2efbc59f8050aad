// Package blobstore stores immutable objects in a bucket, chosen by URL, so that an object is either there in full or not at all.
//
// # What it does
//
// A [Store] puts, gets, lists and deletes objects under keys such as
// "data/3f/3fa8…" in Amazon S3 and its clones, Google Cloud Storage, Azure Blob
// Storage, a local folder, or memory. It adds to gocloud.dev/blob what a backup
// needs: uploads that never leave half an object behind, reads that are exactly
// as long as asked, retries within a time budget, a watchdog for stores that
// accept and never answer, and errors that tell a missing object from a missing
// permission.
//
// The drivers are passed in by the caller, so a program links only the cloud
// SDKs that it uses. Nothing registers itself on import.
//
// # Minimal use
//
//	s, err := blobstore.Open(ctx, "s3://bucket/prefix?region=eu-central-1",
//		&blobstore.Options{Openers: s3.Openers()})
//	if err != nil {
//		return err
//	}
//	defer s.Close()
//	err = s.PutBytes(ctx, "greeting", []byte("hello"), nil)
//
// # Guarantees
//
//   - A failing reader, a wrong digest or a cancelled context stores nothing and
//     leaves an older object as it was.
//   - With PutOptions.OnlyIfAbsent exactly one of several writers wins, on every
//     store that honours conditional writes; [Store.Probe] tells whether it does.
//   - GetRange returns exactly the bytes asked for, or an error.
//   - List is sorted, complete, or ends in an error; never silently short.
//   - ErrNotFound means that the store answered and has no such object: never
//     that the bucket, the permission or the network is missing.
//   - A silent store ends in ErrUnavailable; the context always wins.
//   - Errors and URL never show credentials.
//
// Store is safe for concurrent use.
//
// # What it never does
//
// It never creates buckets, never changes their settings, never keeps
// credentials, and never lists or touches anything outside its prefix.
package blobstore
