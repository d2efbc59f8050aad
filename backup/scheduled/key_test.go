package scheduled

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/reconcilekit/kittest"
)

// key names the Secret that is generated in these tests.
func (w *world) key() string { return KeySecretName("data", "s3://bucket/c1/"+w.ns+"/data") }

// finds lets a lookup find this; nil lets it end with the result instead.
func finds(state contract.RepositoryState) func(backup.Task, int) *contract.Result {
	return func(task backup.Task, attempt int) *contract.Result {
		if task.Role == backup.RoleLookup {
			return &contract.Result{Outcome: contract.Succeeded, Repository: state}
		}
		return well(task, attempt)
	}
}

func (w *world) deleteKey() {
	w.t.Helper()
	require.NoError(w.t, w.admin.Delete(w.t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: w.key()}}))
}

func TestAKeyIsGeneratedOnceForAProvenEmptyStoreAndTheIntentIsWrittenFirst(t *testing.T) {
	w := newWorld(t)
	var intended []string
	w.refuse = func(call kittest.Call) error {
		if call.Verb == "create" && call.Kind == "Secret" {
			key := ""
			if r := w.get().Status.Repository; r != nil {
				key = r.GeneratedKey
			}
			intended = append(intended, key)
		}
		return nil
	}
	var lookup, run backup.Task
	w.answer = func(task backup.Task, attempt int) *contract.Result {
		switch task.Role {
		case backup.RoleLookup:
			lookup = task
			require.Empty(t, w.secrets(), "nothing is created before it is proven that the store is empty")
		case backup.RoleBackup:
			run = task
		}
		return well(task, attempt)
	}
	w.create(generated)
	obj := w.settle()
	name := w.key()
	require.Equal(t, []string{"", name}, intended, "one dry run, then the intent, then the Secret")
	require.Empty(t, lookup.Secrets.Password, "a lookup needs none")
	require.Equal(t, name, run.Secrets.Password)
	require.True(t, run.Request.Backup.Initialize)
	secrets := w.secrets()
	require.Len(t, secrets, 1)
	require.Equal(t, name, secrets[0].Name)
	require.GreaterOrEqual(t, len(secrets[0].Data[contract.PasswordKey]), 40)
	require.Empty(t, secrets[0].OwnerReferences, "it outlives the object")
	require.Equal(t, name, obj.Status.Repository.GeneratedKey)
	require.True(t, obj.Status.Repository.KeyCreated)
	require.Equal(t, metav1.ConditionFalse, w.condition(ConditionKeyEscrowed).Status)
	for _, call := range w.client.Calls() {
		if call.Kind == "Secret" {
			require.Equal(t, "create", call.Verb, "no Secret is ever read")
		}
	}
	w.edit(func(obj *thing) { metav1.SetMetaDataAnnotation(&obj.ObjectMeta, AnnotationKeySaved, "key-1") })
	w.settle()
	require.Equal(t, metav1.ConditionTrue, w.condition(ConditionKeyEscrowed).Status)
	w.tidy(1)
}

func TestAKeyThatWasDeletedIsNeverGeneratedAgain(t *testing.T) {
	t.Run("between runs", func(t *testing.T) {
		w := newWorld(t)
		w.create(generated)
		w.settle()
		w.deleteKey()
		w.toNextSlot()
		require.Len(t, w.settle().Status.History, 2)
		require.Empty(t, w.secrets())
		require.Len(t, w.starts(backup.RoleLookup), 1)
	})
	t.Run("before the first run succeeded", func(t *testing.T) {
		w := newWorld(t)
		w.answer = fails("StoreUnavailable")
		w.create(generated)
		w.settle()
		w.deleteKey()
		w.trigger("now")
		w.settle()
		require.Empty(t, w.secrets())
	})
	t.Run("also when the object is deleted and created again", func(t *testing.T) {
		w := newWorld(t)
		w.create(generated)
		w.settle()
		require.NoError(t, w.admin.Delete(t.Context(), w.get()))
		require.Nil(t, w.settle())
		w.deleteKey()
		var run backup.Task
		w.answer = func(task backup.Task, attempt int) *contract.Result {
			if task.Role == backup.RoleBackup {
				run = task
			}
			return finds(contract.RepositoryPresent)(task, attempt)
		}
		w.create(generated)
		obj := w.settle()
		require.Empty(t, w.secrets())
		require.False(t, run.Request.Backup.Initialize, "nor is the repository")
		require.Equal(t, w.key(), obj.Status.Repository.GeneratedKey, "its owner is asked to save the one that was found")
		require.Equal(t, metav1.ConditionFalse, w.condition(ConditionKeyEscrowed).Status)
	})
}

func TestAStoreThatIsNotProvenEmptyGetsNoKey(t *testing.T) {
	for name, test := range map[string]struct {
		answer func(backup.Task, int) *contract.Result
		reason string
	}{
		"denied": {func(backup.Task, int) *contract.Result {
			return &contract.Result{Outcome: contract.Failed, Reason: contract.ReasonStoreDenied, Message: "403"}
		}, contract.ReasonStoreDenied},
		"broken":   {finds(contract.RepositoryBroken), contract.ReasonRepositoryBroken},
		"no state": {finds(""), contract.ReasonRepositoryBroken},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.answer = test.answer
			w.create(generated)
			obj := w.settle()
			require.Equal(t, test.reason, obj.Status.LastAttempt.Reason)
			require.Equal(t, test.reason, w.condition(ConditionReady).Reason)
			require.Empty(t, w.secrets())
			require.Empty(t, obj.Status.Repository.GeneratedKey)
			require.Empty(t, w.starts(backup.RoleBackup))
			w.tidy(0)
		})
	}
}

func TestAnEmptyStoreWhoseKeyExistsIsForAPersonToJudge(t *testing.T) {
	w := newWorld(t)
	left := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: w.key()}, StringData: map[string]string{"password": "old"}}
	require.NoError(t, w.admin.Create(t.Context(), left))
	w.create(generated)
	w.settle()
	require.Equal(t, contract.ReasonRepositoryMissing, w.condition(ConditionReady).Reason)
	require.Contains(t, w.condition(ConditionReady).Message, left.Name)
	require.Empty(t, w.starts(backup.RoleBackup))
	require.Equal(t, "old", string(w.secrets()[0].Data["password"]))
	w.tidy(0)
}

func TestARepositoryThatWasSeenIsAskedForByItsIDAndNeverInitialisedAgain(t *testing.T) {
	w := newWorld(t)
	var runs []backup.Task
	w.answer = func(task backup.Task, attempt int) *contract.Result {
		if task.Role == backup.RoleBackup {
			runs = append(runs, task)
		}
		return well(task, attempt)
	}
	w.create(nil)
	w.settle()
	w.toNextSlot()
	w.settle()
	require.Len(t, runs, 2)
	require.Equal(t, []bool{true, false}, []bool{runs[0].Request.Backup.Initialize, runs[1].Request.Backup.Initialize})
	require.Equal(t, []string{"", "repository-1"}, []string{runs[0].Request.RepositoryID, runs[1].Request.RepositoryID})
	require.Equal(t, "c1/"+w.ns+"/data", runs[1].Request.Backup.Owner)
	require.Contains(t, runs[1].Request.Backup.Tags, contract.TagOwner+"="+string(w.get().UID))
	require.NotEqual(t, runs[0].Request.Backup.Run, runs[1].Request.Backup.Run)
}

func TestAStorageEditedInTheMiddleOfARunStartsItAgainInTheNewPlace(t *testing.T) {
	w := newWorld(t)
	w.answer = running
	w.create(nil)
	slot := w.settle().Status.Current.Slot
	w.answer = well
	w.edit(func(obj *thing) { obj.Spec.Storage.Prefix = "elsewhere" })
	obj := w.settle()
	require.Equal(t, slot, obj.Status.LastAttempt.Slot)
	require.Equal(t, "Succeeded", obj.Status.LastAttempt.Outcome)
	require.Equal(t, "s3://bucket/elsewhere", obj.Status.Repository.URL)
	w.tidy(1)
}

func TestAnObjectThatMovesToAnotherBucketGetsAnotherKeyThereAndFindsTheFirstWhenItReturns(t *testing.T) {
	w := newWorld(t)
	w.create(generated)
	w.settle()
	w.edit(func(obj *thing) { obj.Spec.Storage.URL = "s3://elsewhere" })
	w.toNextSlot()
	obj := w.settle()
	require.Equal(t, "Succeeded", obj.Status.LastAttempt.Outcome)
	require.Len(t, w.secrets(), 2)
	require.NotEqual(t, w.key(), obj.Status.Repository.GeneratedKey)
	var run backup.Task
	w.answer = func(task backup.Task, attempt int) *contract.Result {
		if task.Role == backup.RoleBackup {
			run = task
		}
		return finds(contract.RepositoryPresent)(task, attempt)
	}
	w.edit(func(obj *thing) { obj.Spec.Storage.URL = "s3://bucket" })
	w.toNextSlot()
	require.Equal(t, "Succeeded", w.settle().Status.LastAttempt.Outcome)
	require.Equal(t, w.key(), run.Secrets.Password)
	require.Len(t, w.secrets(), 2)
}
