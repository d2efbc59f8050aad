package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/restorer"
)

// overwriteFlags are the policies by their names on the command line.
var overwriteFlags = map[string]restorer.Overwrite{
	"refuse": restorer.RefuseNonEmpty, "if-changed": restorer.IfChanged, "always": restorer.Always, "never": restorer.Never,
}

type restoreFlags struct {
	filterFlags
	target, below, overwrite, asOf string
	offset                         int
	dryRun, noOwners               bool
	volume                         volumeTarget
}

func (t *tool) restoreCommand() *cobra.Command {
	var f restoreFlags
	cmd := &cobra.Command{
		Use: "restore ID|latest", Short: "Restore a snapshot into a folder, or to a device", Args: exactly(1, "a snapshot's ID, or latest"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.volume.given() {
				return t.restoreVolume(cmd.Context(), args[0], f)
			}
			return t.restore(cmd.Context(), args[0], f)
		},
	}
	f.register(cmd, "path-filter")
	flags := cmd.Flags()
	flags.StringVar(&f.target, "target", "", "folder to restore into; this, or a device or image, is required")
	flags.StringVar(&f.below, "path", "", "restore only this folder or file of the snapshot")
	flags.StringVar(&f.overwrite, "overwrite", "refuse", "what happens to files that exist: refuse, if-changed, always or never")
	flags.StringVar(&f.asOf, "as-of", "", "with latest: the newest snapshot at or before this time, such as 2026-01-31T12:00:00Z")
	flags.IntVar(&f.offset, "offset", 0, "with latest: that many before it")
	flags.BoolVar(&f.dryRun, "dry-run", false, "count and change nothing")
	flags.BoolVar(&f.noOwners, "no-owners", false, "leave users and groups as they come")
	f.volume.register(cmd)
	t.readFlags(cmd)
	return cmd
}

// selection says which snapshot a person means.
func (f restoreFlags) selection(id string) (s selection, err error) {
	s = selection{host: f.host, path: f.path, tags: f.tags, offset: f.offset, oneSeries: true}
	if f.asOf != "" {
		if s.asOf, err = time.Parse(time.RFC3339, f.asOf); err != nil {
			return s, usage(fmt.Errorf("--as-of is %q, and not a time such as 2026-01-31T12:00:00Z", f.asOf))
		}
	}
	if id == "latest" {
		return s, nil
	}
	if f.asOf != "" || f.offset != 0 || f.host != "" || f.path != "" || len(f.tags) > 0 {
		return s, usage(fmt.Errorf("the snapshot is named by its ID %.64q, so --as-of, --offset, --host, --path-filter and --tag have no meaning", id))
	}
	s.id = id
	return s, nil
}

func (t *tool) restore(ctx context.Context, id string, f restoreFlags) error {
	if f.target == "" {
		return usage(fmt.Errorf("no target: give --target, --to-device or --to-image"))
	}
	choice, err := f.selection(id)
	if err != nil {
		return err
	}
	o := restorer.Options{Path: f.below, DryRun: f.dryRun, SkipOwners: f.noOwners, MemoryBudget: t.memory.budget()}
	if o.Overwrite, err = named(overwriteFlags, "overwrite", f.overwrite); err != nil {
		return err
	}
	start := t.Now()
	return t.with(ctx, reading, func(ctx context.Context, s *session) error {
		chosen, err := s.choose(ctx, choice)
		if err != nil {
			return err
		}
		t.sayWhich(chosen)
		meter := t.meter("restoring")
		o.Progress = meter.restorer
		done, err := restorer.Restore(ctx, s.repository, chosen.ID, f.target, o)
		meter.stop()
		if err != nil {
			return err
		}
		result := restoreResult(done, chosen)
		result.RepositoryID, result.Seconds = s.repository.ID(), seconds(start, t.Now())
		return t.showRestore(result, done)
	})
}

func (t *tool) sayWhich(chosen repo.SnapshotInfo) {
	t.say("restoring snapshot %s of %s, host %s, path %s", chosen.ID.Short(), stamp(chosen.Time), printable(chosen.Hostname), printable(strings.Join(chosen.Paths, ", ")))
}

func (t *tool) showRestore(result contract.Result, done *restorer.Result) error {
	if t.json {
		return t.print(result)
	}
	verb, verified := "restored", " and verified"
	if done.DryRun {
		verb, verified = "would restore", ""
	}
	t.say("%s%s %s, %s and %s, %s in %.1f s", verb, verified, count(done.Files, "file"), count(done.Dirs, "folder"),
		count(done.Symlinks, "symlink"), size(done.Bytes), result.Seconds)
	if done.Kept+done.Skipped > 0 {
		t.say("%d were as they should be already, %d others that existed were left alone", done.Kept, done.Skipped)
	}
	for _, note := range result.Notes {
		t.say("note: %s", printable(note))
	}
	return nil
}
