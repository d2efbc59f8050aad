// Package file stores objects as files of a local or mounted folder:
// "file:///folder/prefix".
//
// # What it does
//
// Each object is one plain file whose path below the folder is its key, without
// sidecars: a repository looks exactly like one that restic made itself.
//
// # Minimal use
//
//	opts := &blobstore.Options{Openers: file.Openers()}
//	s, err := blobstore.Open(ctx, "file:///backup/db?create_dir=true", opts)
//
// The only parameters are create_dir, which creates the folder, and prefix.
//
// # Guarantees
//
//   - A file appears under its key only when it is complete and on disk: file and
//     folder are synced before Put returns.
//   - OnlyIfAbsent is a hard link, so exactly one writer wins, also across
//     processes and on NFS.
//   - Nothing outside the folder is ever read or written, whatever keys or
//     symbolic links say. With Options.FileRoot the same holds for the folder.
//   - List reads one folder at a time, and returns every error it meets.
//
// # What it never does
//
// It never stores an object and a folder under one name: a key that continues
// another object's key with a slash is ErrInvalid. It never follows a symbolic
// link to a folder in listings: that is an error. Unfinished files of crashed
// programs lie in ".blobstore-tmp" below the folder, are not listed, and are
// removed by the first Open a day later.
package file
