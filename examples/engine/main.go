// Command engine backs a folder up to any URL, lists what is there, and restores it: the engine without Kubernetes.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"example.com/pvcbackup/backup/archiver"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/restorer"
	"example.com/pvcbackup/blobstore"
	"example.com/pvcbackup/blobstore/drivers/all"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Getenv("PASSWORD"), os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "engine:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("usage: engine backup URL FOLDER | list URL | restore URL FOLDER; PASSWORD holds the password")

func run(ctx context.Context, args []string, password string, out io.Writer) (err error) {
	args = append(args, "", "", "")
	command, url, folder := args[0], args[1], args[2]
	if url == "" || password == "" {
		return errUsage
	}
	store, err := blobstore.Open(ctx, url, &blobstore.Options{Openers: all.Openers()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	r, err := repo.Open(ctx, store, password, nil)
	if errors.Is(err, repo.ErrAbsent) && command == "backup" {
		r, err = repo.Init(ctx, store, password, nil) // refuses unless it is proven that nothing is there
	}
	if err != nil {
		return err
	}
	lock, err := r.Lock(ctx, repo.LockOptions{Host: fmt.Sprintf("engine-%d-%d", os.Getpid(), time.Now().UnixNano())})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock(ctx)) }()
	ctx = lock.Context() // ends when the lock is lost
	switch command {
	case "backup":
		return backup(ctx, r, folder, out)
	case "list":
		return list(ctx, r, out)
	case "restore":
		return restore(ctx, r, folder, out)
	}
	return errUsage
}

func backup(ctx context.Context, r *repo.Repository, folder string, out io.Writer) error {
	path, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	done, err := archiver.Backup(ctx, r, path, archiver.Options{Host: "example", Path: path})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "snapshot %s: %d files, of which %d are new or changed\n",
		done.SnapshotID.Short(), done.Files.Total(), done.Files.New+done.Files.Changed)
	return err
}

func list(ctx context.Context, r *repo.Repository, out io.Writer) error {
	snapshots, err := r.Snapshots(ctx)
	for _, s := range snapshots {
		fmt.Fprintln(out, s.ID.Short(), s.Time.UTC().Format(time.RFC3339), s.Paths)
	}
	return err
}

// restore restores the newest snapshot.
func restore(ctx context.Context, r *repo.Repository, folder string, out io.Writer) error {
	snapshots, err := r.Snapshots(ctx)
	if err != nil {
		return err
	}
	if len(snapshots) == 0 {
		return errors.New("the repository has no snapshot")
	}
	newest := snapshots[len(snapshots)-1] // they come oldest first
	done, err := restorer.Restore(ctx, r, newest.ID, folder, restorer.Options{})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "restored and verified %d files, %d bytes\n", done.Files, done.Bytes)
	return err
}
