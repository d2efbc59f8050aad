package scheduled

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/schedule"
	"example.com/pvcbackup/snapshot"
)

// Defaults of Deadlines.
const (
	DefaultSnapshotTaken = 10 * time.Minute
	DefaultSnapshotReady = time.Hour
	DefaultStaged        = 30 * time.Minute
	DefaultMoverStarted  = 10 * time.Minute
	DefaultNoProgress    = time.Hour
	DefaultRun           = 24 * time.Hour
)

func (d *Deadlines) orDefault() Deadlines {
	if d == nil {
		return Deadlines{}
	}
	return *d
}

// Snapshot returns the deadlines of taking a snapshot. A nil d has the defaults.
func (d *Deadlines) Snapshot() snapshot.Deadlines {
	set := d.orDefault()
	return snapshot.Deadlines{
		Taken: durationOr(set.SnapshotTaken, DefaultSnapshotTaken),
		Ready: durationOr(set.SnapshotReady, DefaultSnapshotReady),
	}
}

// Stage returns the deadline of making a volume from a snapshot. A nil d has the default.
func (d *Deadlines) Stage() time.Duration { return durationOr(d.orDefault().Staged, DefaultStaged) }

// Mover returns the deadlines of a mover. A nil d has the defaults.
func (d *Deadlines) Mover() backup.MoverDeadlines {
	set := d.orDefault()
	return backup.MoverDeadlines{
		Start:      durationOr(set.MoverStarted, DefaultMoverStarted),
		NoProgress: durationOr(set.NoProgress, DefaultNoProgress),
		Run:        durationOr(set.Run, DefaultRun),
	}
}

func durationOr(d *metav1.Duration, otherwise time.Duration) time.Duration {
	if d == nil || d.Duration <= 0 {
		return otherwise
	}
	return d.Duration
}

// PodSettings returns how a mover's Pod runs. A nil m has the defaults.
func (m *MoverSpec) PodSettings() backup.PodSettings {
	if m == nil {
		return backup.PodSettings{Privilege: backup.Restricted}
	}
	privilege := backup.Privilege(m.Privilege)
	if privilege == "" {
		privilege = backup.Restricted
	}
	return backup.PodSettings{
		Privilege: privilege, RunAsUser: m.RunAsUser, RunAsGroup: m.RunAsGroup,
		Resources: m.Resources, ServiceAccountName: m.ServiceAccountName,
		NodeSelector: m.NodeSelector, Tolerations: m.Tolerations, Affinity: m.Affinity,
		PriorityClassName: m.PriorityClassName, ImagePullSecrets: m.ImagePullSecrets,
	}
}

// keepRules returns the keep rules; without any in the spec, the default ones.
func (r *Retention) keepRules() contract.Keep {
	if r == nil {
		return contract.Keep{Hourly: 24, Daily: 7, Weekly: 4, Monthly: 12}
	}
	return contract.Keep{
		Last: int(r.Last), Hourly: int(r.Hourly), Daily: int(r.Daily), Weekly: int(r.Weekly),
		Monthly: int(r.Monthly), Yearly: int(r.Yearly), Within: r.Within,
	}
}

func (s *Spec) keepSnapshots() int {
	if s.Snapshot == nil || s.Snapshot.Keep == nil {
		return 1
	}
	return int(*s.Snapshot.Keep)
}

func (s *Spec) className() string {
	if s.Snapshot == nil {
		return ""
	}
	return s.Snapshot.ClassName
}

// sampleBlobs is as the contract has it: negative for none.
func (s *Spec) sampleBlobs() int {
	switch {
	case s.Verify == nil || s.Verify.SampleBlobs == nil:
		return 0
	case *s.Verify.SampleBlobs == 0:
		return -1
	default:
		return int(*s.Verify.SampleBlobs)
	}
}

// scheduleSpec and policy are the spec in the terms of package schedule.
func (s *Spec) scheduleSpec() schedule.Spec {
	return schedule.Spec{Cron: s.Schedule, TimeZone: s.TimeZone}
}

func (s *Spec) policy(seed string) schedule.Policy {
	p := schedule.Policy{Suspend: s.Suspend, RunOnCreate: s.RunOnCreate == nil || *s.RunOnCreate, Seed: seed, Overlap: schedule.Forbid}
	if s.ConcurrencyPolicy == Replace {
		p.Overlap = schedule.Replace
	}
	if s.StartingDeadlineSeconds != nil {
		p.StartingDeadline = time.Duration(*s.StartingDeadlineSeconds) * time.Second
	}
	if s.Jitter != nil {
		p.Jitter = s.Jitter.Duration
	}
	return p
}
