package scheduled

import (
	"example.com/pvcbackup/reconcilekit"
)

// Object is an object with scheduled backups.
type Object interface {
	reconcilekit.Conditioned
	// BackupClaim is the name of the claim to back up, in the object's namespace.
	BackupClaim() string
	// BackupSpec is what is wanted. It is read only.
	BackupSpec() *Spec
	// BackupStatus is where what was observed is written to.
	BackupStatus() *Status
}

// Annotations that people set on an object.
const (
	// AnnotationTrigger asks for a backup now. Every new value asks for one.
	AnnotationTrigger = "storage.example.com/backup-now"
	// AnnotationKeySaved acknowledges that the generated key was saved; its value is the key's fingerprint.
	AnnotationKeySaved = "storage.example.com/key-saved"
	// AnnotationAbandon, with the value "true", lets an object with deletionPolicy Delete go although its backups could
	// not be removed. They stay in the store.
	AnnotationAbandon = "storage.example.com/abandon-backups"
)

// Finalizer keeps an object until what it has outside itself is cleaned up.
const Finalizer = "storage.example.com/pvcbackup"

// triggerLimit is how long a trigger's value may be; a longer one is cut, in the annotation and in the status alike.
const triggerLimit = 256

func triggerOf(obj Object) string {
	return limit(obj.GetAnnotations()[AnnotationTrigger], triggerLimit)
}
