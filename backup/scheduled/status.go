package scheduled

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Status tells what is known about the backups of a claim. Embed it, inline, in the status of any kind.
//
// +kubebuilder:object:generate=true
type Status struct {
	// observedGeneration is the generation that the conditions are about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// lastBackup is when the newest good backup was completed. Partial and empty ones do not move it.
	// +optional
	LastBackup *metav1.Time `json:"lastBackup,omitempty"`
	// nextBackup is when the next run will start; unset while suspended.
	// +optional
	NextBackup *metav1.Time `json:"nextBackup,omitempty"`
	// phase sums up the rest for people. Nothing is decided by it.
	// +kubebuilder:validation:MaxLength=32
	// +optional
	Phase string `json:"phase,omitempty"`

	// lastSuccess is the newest good backup.
	// +optional
	LastSuccess *Success `json:"lastSuccess,omitempty"`
	// lastAttempt is the newest run that ended, whatever came of it.
	// +optional
	LastAttempt *Attempt `json:"lastAttempt,omitempty"`
	// current is the run in flight.
	// +optional
	Current *Current `json:"current,omitempty"`
	// consecutiveFailures counts the runs that failed since the newest good one.
	// +optional
	ConsecutiveFailures int32 `json:"consecutiveFailures,omitempty"`
	// skippedSlots counts the scheduled times that passed without a run, because they were noticed too late.
	// +optional
	SkippedSlots int64 `json:"skippedSlots,omitempty"`
	// handledTrigger is the value of the trigger annotation that was served last.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	HandledTrigger string `json:"handledTrigger,omitempty"`
	// planning is what the next run is planned from.
	// +optional
	Planning *Planning `json:"planning,omitempty"`
	// repository is where the backups are.
	// +optional
	Repository *Repository `json:"repository,omitempty"`
	// maintenance is the newest forget and prune.
	// +optional
	Maintenance *Maintenance `json:"maintenance,omitempty"`
	// history is the newest runs that ended, newest first.
	// +kubebuilder:validation:MaxItems=10
	// +listType=atomic
	// +optional
	History []Attempt `json:"history,omitempty"`
	// conditions: Ready means protected. Reconciling and Stalled are there only while true. KeyEscrowed tells whether a
	// generated key was saved. Maintained tells whether the newest forget and prune went well.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// HistoryLimit is how many runs Status.History holds.
const HistoryLimit = 10

// Success is a good backup.
//
// +kubebuilder:object:generate=true
type Success struct {
	// slot of the run.
	Slot string `json:"slot"`
	// snapshotID is the snapshot's id in the repository, which restic and PVCRestore take.
	SnapshotID string `json:"snapshotID"`
	// time at which the volume's contents were frozen.
	// +optional
	Time *metav1.Time `json:"time,omitempty"`
	// bytes in the volume's files.
	Bytes int64 `json:"bytes"`
	// files in the volume.
	Files int64 `json:"files"`
	// added is how many bytes the run put into the store.
	Added int64 `json:"added"`
	// duration from the start of the run to its end.
	Duration metav1.Duration `json:"duration"`
}

// Attempt is a run that ended.
//
// +kubebuilder:object:generate=true
type Attempt struct {
	// slot of the run.
	Slot string `json:"slot"`
	// kind is what asked for the run: Scheduled, Create or Manual.
	Kind string `json:"kind"`
	// started is when the run was begun.
	Started metav1.Time `json:"started"`
	// finished is when it ended.
	Finished metav1.Time `json:"finished"`
	// outcome is Succeeded, Empty, Partial or Failed.
	Outcome string `json:"outcome"`
	// reason of a failure.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message of a failure.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`
	// snapshotID of what was recorded.
	// +optional
	SnapshotID string `json:"snapshotID,omitempty"`
	// movers is how many movers were started.
	// +optional
	Movers int32 `json:"movers,omitempty"`
}

// Current is a run in flight.
//
// +kubebuilder:object:generate=true
type Current struct {
	// slot of the run.
	Slot string `json:"slot"`
	// kind is what asked for the run: Scheduled, Create or Manual.
	Kind string `json:"kind"`
	// time is the slot's nominal time.
	Time metav1.Time `json:"time"`
	// trigger is the annotation's value that asked for a Manual run.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Trigger string `json:"trigger,omitempty"`
	// started is when the run was begun.
	Started metav1.Time `json:"started"`
	// stage is what the run waits for, for people. Nothing is decided by it.
	// +optional
	Stage string `json:"stage,omitempty"`
	// attempt counts the movers of this run, from 1.
	// +optional
	Attempt int32 `json:"attempt,omitempty"`
	// progress of the running mover.
	// +optional
	Progress *Progress `json:"progress,omitempty"`
}

// Progress is how far a mover is.
//
// +kubebuilder:object:generate=true
type Progress struct {
	// bytes done.
	Bytes int64 `json:"bytes"`
	// totalBytes to do; unset while unknown.
	// +optional
	TotalBytes int64 `json:"totalBytes,omitempty"`
	// files done.
	Files int64 `json:"files"`
	// bytesPerSecond moved lately.
	// +optional
	BytesPerSecond int64 `json:"bytesPerSecond,omitempty"`
	// etaSeconds until the end at this rate; unset while unknown.
	// +optional
	ETASeconds int64 `json:"etaSeconds,omitempty"`
}

// Planning is the little that planning the next run needs to remember.
//
// +kubebuilder:object:generate=true
type Planning struct {
	// fingerprint of the fields that say when to run. When it changes, since moves.
	Fingerprint string `json:"fingerprint"`
	// since is the time before which no slot fires: when the schedule was last set, changed or resumed.
	Since metav1.Time `json:"since"`
	// lastSlot is the newest scheduled time that was run, or passed over for good.
	// +optional
	LastSlot *metav1.Time `json:"lastSlot,omitempty"`
}

// Repository is where the backups are.
//
// +kubebuilder:object:generate=true
type Repository struct {
	// url of the repository, without anything secret in it.
	URL string `json:"url"`
	// id of the repository. Once it is known, no other repository is accepted in its place.
	// +optional
	ID string `json:"id,omitempty"`
	// keyFingerprint is the id of the repository's key that the password opens.
	// +optional
	KeyFingerprint string `json:"keyFingerprint,omitempty"`
	// generatedKey names the Secret that was created for this repository, by this object or by one before it; unset when
	// the password was given. It is set before the Secret is created.
	// +optional
	GeneratedKey string `json:"generatedKey,omitempty"`
	// keyCreated says that the generated Secret was created. It is never created again: a lost key cannot be replaced by
	// another one.
	// +optional
	KeyCreated bool `json:"keyCreated,omitempty"`
}

// Maintenance is one forget and prune.
//
// +kubebuilder:object:generate=true
type Maintenance struct {
	// slot of the run after which it was made.
	Slot string `json:"slot"`
	// finished is when it ended.
	Finished metav1.Time `json:"finished"`
	// outcome is Succeeded or Failed.
	Outcome string `json:"outcome"`
	// kept and removed count backups.
	// +optional
	Kept int32 `json:"kept,omitempty"`
	// removed counts the backups forgotten.
	// +optional
	Removed int32 `json:"removed,omitempty"`
	// freed is how many bytes left the store.
	// +optional
	Freed int64 `json:"freed,omitempty"`
	// message of a failure.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`
}

// Condition types.
const (
	ConditionReady       = "Ready"
	ConditionReconciling = "Reconciling"
	ConditionStalled     = "Stalled"
	ConditionKeyEscrowed = "KeyEscrowed"
	ConditionMaintained  = "Maintained"
)
