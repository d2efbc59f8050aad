package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"example.com/pvcbackup/backup/blockdev"
	"example.com/pvcbackup/backup/contract"
)

// volumeFlags are those of a backup that have a meaning for volumes only.
type volumeFlags struct {
	image           bool
	changed, handle string
}

func (f *volumeFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.image, "image", false, "it is a file, and the image of a volume")
	flags.StringVar(&f.changed, "changed", "", "of a volume: read only what this file lists, in JSON lines")
	flags.StringVar(&f.handle, "handle", "", "of a volume: a name for its state, which later lists are relative to")
}

// isMeant reports whether a device or an image is to be backed up, and refuses flags that do not fit.
func (f *volumeFlags) isMeant(cmd *cobra.Command, source string) (bool, error) {
	info, err := os.Stat(source)
	switch {
	case errors.Is(err, fs.ErrNotExist), err != nil && !f.image:
		return false, nil // the archiver has the words for that
	case err != nil:
		return false, err
	}
	device, err := blockdev.IsBlockDevice(source)
	if err != nil {
		return false, err
	}
	switch {
	case f.image && !info.Mode().IsRegular():
		return false, usage(fmt.Errorf("--image is for files, and %.300q is none", source))
	case info.Mode().IsRegular() && !f.image:
		return false, usage(fmt.Errorf("%.300q is a file: give its folder, or --image if it is one of a volume", source))
	}
	volume := device || f.image
	misplaced := []string{"changed", "handle"}
	if volume {
		misplaced = []string{"exclude", "one-file-system", "allow-unreadable", "chunker"}
	}
	for _, name := range misplaced {
		if cmd.Flags().Changed(name) {
			return false, usage(fmt.Errorf("--%s has no meaning for %.300q", name, source))
		}
	}
	return volume, nil
}

// changes reads the list of changes, which the caller closes.
func (f *volumeFlags) changes() (*os.File, *blockdev.Changes, error) {
	file, err := os.Open(f.changed)
	if err != nil {
		return nil, nil, err
	}
	changes, err := blockdev.ReadChanges(file)
	if err != nil {
		return nil, nil, errors.Join(usage(fmt.Errorf("--changed %.300s: %w", f.changed, err)), file.Close())
	}
	return file, changes, nil
}

func (t *tool) backupVolume(ctx context.Context, source string, f backupFlags) error {
	source, err := filepath.Abs(source)
	if err != nil {
		return err
	}
	if err := f.complete(source); err != nil {
		return err
	}
	o := blockdev.Options{
		Host: f.host, Path: filepath.Clean(f.path), Tags: f.tags, Handle: f.volume.handle,
		ProgramVersion: "pvcbackup " + t.Version, Time: t.Now(), MemoryBudget: t.memory.budget(),
	}
	if o.Compression, err = named(compressions, "compression", f.compression); err != nil {
		return err
	}
	if f.volume.changed != "" {
		file, changes, err := f.volume.changes()
		if err != nil {
			return err
		}
		defer file.Close()
		o.Changes = func(context.Context, string) (*blockdev.Changes, error) { return changes, nil }
	}
	device, err := blockdev.Open(source)
	if err != nil {
		return err
	}
	defer device.Close()
	return t.with(ctx, storing, func(ctx context.Context, s *session) error {
		meter := t.meter("reading")
		o.Progress = meter.volume
		done, err := blockdev.Backup(ctx, s.repository, device, o)
		meter.stop()
		if err != nil {
			return err
		}
		result := volumeResult(done, o)
		result.RepositoryID, result.Seconds = s.repository.ID(), seconds(o.Time, t.Now())
		return t.showVolume(result, done)
	})
}

// volumeResult says what was done.
func volumeResult(done *blockdev.Result, o blockdev.Options) contract.Result {
	r := contract.Result{
		Version: contract.Version, Operation: contract.OperationBackup, Outcome: contract.Succeeded,
		SnapshotID: done.SnapshotID.String(), SnapshotTime: o.Time,
		Files: 1, Bytes: done.Size, Added: int64(done.AddedPacked), Reused: done.ReusedRun,
	}
	if done.Empty {
		r.Outcome = contract.Empty
	}
	if done.SourceChanged {
		r.Notes = append(r.Notes, "the image was changed while it was read")
	}
	if done.Reason != "" && o.Changes != nil {
		r.Notes = append(r.Notes, fmt.Sprintf("%s: %s", done.Reason, done.Detail))
	}
	return r
}

func (t *tool) showVolume(result contract.Result, done *blockdev.Result) error {
	if t.json {
		return t.print(result)
	}
	parent := "everything is new"
	if !done.Parent.IsZero() {
		parent = fmt.Sprintf("%s as in %s", size(done.Bytes.Unmodified), done.Parent.Short())
	}
	t.say("a volume of %s (%s)", size(done.Size), parent)
	t.say("read %s (%s), added %s to the repository in %.1f s",
		size(done.BytesRead+done.BytesSampled), done.Read, size(result.Added), result.Seconds)
	for _, note := range result.Notes {
		t.say("note: %s", printable(note))
	}
	if done.Empty {
		t.say("the volume has only zeros: the snapshot is marked so, and never taken for the latest")
	}
	t.say("snapshot %s", done.SnapshotID.Short())
	return nil
}
