package cli

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"example.com/pvcbackup/backup/archiver"
	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/backup/repo"
)

var (
	compressions = map[string]repo.Compression{
		"fastest": repo.CompressFastest, "default": repo.CompressDefault, "better": repo.CompressBetter, "off": repo.CompressOff,
	}
	chunkers = map[string]archiver.Chunker{
		"": "", "gear": archiver.Gear, "rabin": archiver.Rabin, "fixed": archiver.Fixed,
	}
)

type backupFlags struct {
	host, path, chunker, compression string
	tags, excludes                   []string
	oneFileSystem, allowUnreadable   bool
	volume                           volumeFlags
}

func (t *tool) backupCommand() *cobra.Command {
	var f backupFlags
	cmd := &cobra.Command{
		Use: "backup FOLDER|DEVICE", Short: "Back up a folder, a block device or an image", Args: exactly(1, "what to back up"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if volume, err := f.volume.isMeant(cmd, args[0]); err != nil {
				return err
			} else if volume {
				return t.backupVolume(cmd.Context(), args[0], f)
			}
			return t.backup(cmd.Context(), args[0], f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.host, "host", "", "whose backup it is (default: this machine's name)")
	flags.StringVar(&f.path, "path", "", "what it is a backup of, as an absolute path (default: the folder)")
	flags.StringSliceVar(&f.tags, "tag", nil, "a tag for the snapshot; may be repeated")
	flags.StringArrayVar(&f.excludes, "exclude", nil, "a pattern of names, or of paths below the folder, to leave out; may be repeated")
	flags.BoolVar(&f.oneFileSystem, "one-file-system", false, "leave out what is on other file systems")
	flags.BoolVar(&f.allowUnreadable, "allow-unreadable", false, "keep a partial snapshot if files cannot be read (exit code 3)")
	flags.StringVar(&f.chunker, "chunker", "", "how files are cut: gear, rabin or fixed (default: as before, else gear)")
	flags.StringVar(&f.compression, "compression", "fastest", "fastest, default, better or off")
	f.volume.register(cmd)
	return cmd
}

// complete fills in whose backup it is.
func (f *backupFlags) complete(source string) (err error) {
	if f.host == "" {
		if f.host, err = os.Hostname(); err != nil {
			return fmt.Errorf("this machine has no name, so give --host: %w", err)
		}
	}
	if f.path == "" {
		f.path = source
	}
	return nil
}

func (f backupFlags) options(folder string) (o archiver.Options, err error) {
	if err := f.complete(folder); err != nil {
		return o, err
	}
	o = archiver.Options{
		Host: f.host, Path: filepath.Clean(f.path), Tags: f.tags, Excludes: f.excludes, OneFileSystem: f.oneFileSystem, CountTotals: true,
	}
	if f.allowUnreadable {
		o.Unreadable = archiver.KeepPartial
	}
	if o.Compression, err = named(compressions, "compression", f.compression); err != nil {
		return o, err
	}
	o.Chunker, err = named(chunkers, "chunker", f.chunker)
	return o, err
}

// named looks a flag's value up.
func named[V any](values map[string]V, flag, name string) (V, error) {
	value, ok := values[name]
	if !ok {
		known := slices.DeleteFunc(slices.Sorted(maps.Keys(values)), func(s string) bool { return s == "" })
		return value, usage(fmt.Errorf("--%s is %q, which is none of %s", flag, name, strings.Join(known, ", ")))
	}
	return value, nil
}

func (t *tool) backup(ctx context.Context, folder string, f backupFlags) error {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	o, err := f.options(folder)
	if err != nil {
		return err
	}
	o.ProgramVersion, o.Time, o.MemoryBudget = "pvcbackup "+t.Version, t.Now(), t.memory.budget()
	start := t.Now()
	return t.with(ctx, storing, func(ctx context.Context, s *session) error {
		meter := t.meter("reading")
		o.Progress = meter.archiver
		done, err := archiver.Backup(ctx, s.repository, folder, o)
		meter.stop()
		if err != nil {
			return err
		}
		result := backupResult(done, o.Time)
		result.RepositoryID, result.Seconds = s.repository.ID(), seconds(start, t.Now())
		t.code = result.ExitCode()
		return t.showBackup(result, done)
	})
}

func (t *tool) showBackup(result contract.Result, done *archiver.Result) error {
	if t.json {
		return t.print(result)
	}
	parent := "everything is new"
	if !done.Parent.IsZero() {
		parent = fmt.Sprintf("%d new, %d changed, %d as in %s", done.Files.New, done.Files.Changed, done.Files.Unmodified, done.Parent.Short())
	}
	t.say("%s, %s (%s)", count(result.Files, "file"), size(result.Bytes), parent)
	t.say("added %s to the repository in %.1f s", size(result.Added), result.Seconds)
	for _, note := range result.Notes {
		t.say("note: %s", note)
	}
	switch result.Outcome {
	case contract.Empty:
		t.say("the folder is empty: the snapshot is marked so, and never taken for the latest")
	case contract.Partial:
		t.say("%s could not be read, so the snapshot is partial and never taken for the latest:", count(result.PathCount, "file"))
		for _, path := range result.Paths {
			t.say("  %s", printable(path))
		}
	}
	t.say("snapshot %s", done.SnapshotID.Short())
	return nil
}
