package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"example.com/pvcbackup/backup/blockdev"
	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/backup/repo"
)

// volumeTarget are the flags of a restore that have a meaning for volumes only.
type volumeTarget struct {
	device, image string
	zeroed        bool
}

func (f *volumeTarget) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.device, "to-device", "", "block device to write the volume to")
	flags.StringVar(&f.image, "to-image", "", "file to write the volume to")
	flags.BoolVar(&f.zeroed, "zeroed", false, "the device is known to have only zeros, so write none")
}

func (f *volumeTarget) given() bool { return f.device != "" || f.image != "" || f.zeroed }

// volumeOptions refuses what has no meaning for volumes.
func (f restoreFlags) volumeOptions() (o blockdev.RestoreOptions, err error) {
	switch {
	case f.volume.device == "" && f.volume.image == "":
		err = errors.New("--zeroed is for --to-device")
	case f.volume.device != "" && f.volume.image != "" || f.target != "":
		err = errors.New("give one of --target, --to-device and --to-image")
	case f.volume.zeroed && f.volume.image != "":
		err = errors.New("--zeroed is for --to-device: a file always is")
	case f.dryRun || f.noOwners:
		err = errors.New("--dry-run and --no-owners are for folders")
	case f.overwrite != "refuse" && f.overwrite != "always":
		err = fmt.Errorf("--overwrite is %.64q, and for a volume it is refuse or always", f.overwrite)
	}
	if err != nil {
		return o, usage(err)
	}
	return blockdev.RestoreOptions{Path: f.below, Overwrite: f.overwrite == "always", Zeroed: f.volume.zeroed}, nil
}

func (t *tool) restoreVolume(ctx context.Context, id string, f restoreFlags) error {
	choice, err := f.selection(id)
	if err != nil {
		return err
	}
	o, err := f.volumeOptions()
	if err != nil {
		return err
	}
	restore, target := blockdev.RestoreToDevice, f.volume.device
	if f.volume.image != "" {
		restore, target = blockdev.RestoreToFile, f.volume.image
	}
	start := t.Now()
	return t.with(ctx, reading, func(ctx context.Context, s *session) error {
		chosen, err := s.choose(ctx, choice)
		if err != nil {
			return err
		}
		t.sayWhich(chosen)
		meter := t.meter("restoring")
		o.Progress, o.MemoryBudget = meter.volume, t.memory.budget()
		done, err := restore(ctx, s.repository, chosen.ID, target, o)
		meter.stop()
		if err != nil {
			return err
		}
		result := restoredVolume(done, chosen)
		result.RepositoryID, result.Seconds = s.repository.ID(), seconds(start, t.Now())
		if t.json {
			return t.print(result)
		}
		t.say("restored and verified a volume of %s in %.1f s: %s of data, the rest zeros",
			size(done.Size), result.Seconds, size(done.Written))
		for _, note := range result.Notes {
			t.say("note: %s", note)
		}
		return nil
	})
}

// restoredVolume says what was done.
func restoredVolume(done *blockdev.RestoreResult, from repo.SnapshotInfo) contract.Result {
	r := contract.Result{
		Version: contract.Version, Operation: contract.OperationRestore, Outcome: contract.Succeeded,
		SnapshotID: from.ID.String(), SnapshotTime: from.Time, Files: 1, Bytes: done.Size,
	}
	if rest := done.TargetSize - done.Size; rest > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("the device's last %d bytes are beyond the volume, and were left alone", rest))
	}
	return r
}
