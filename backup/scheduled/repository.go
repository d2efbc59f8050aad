package scheduled

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/reconcilekit"
)

// KeySecretName is the name of the Secret that a generated password is kept in. It follows from the claim and from where
// its repository is, so that an object that is deleted and made again finds its repository's key, and one that is moved
// to another bucket gets another key there. How the store is spoken to, which is what a URL's query says, has no part in
// it: a repository stays the same when its endpoint is called by another name.
func KeySecretName(claim, repository string) string {
	place, _, _ := strings.Cut(repository, "?")
	return backup.Owner{Name: claim, UID: "claim"}.ChildName("key", claim+"\n"+place, 0)
}

// mayInitialize says whether a mover may create the repository when it proves that there is none: only before one was
// ever seen, and only with a password that was given, or that was generated for this very repository.
func (p *pass) mayInitialize() bool {
	seen := p.status.Repository != nil && p.status.Repository.ID != ""
	intended := p.status.Repository != nil && p.status.Repository.GeneratedKey != ""
	return !seen && (!p.spec.generatesKey() || intended)
}

// findRepository makes sure that there is a password to back up with. A password is generated only after a lookup has
// proven that the store holds neither a repository nor keys of one, only where no generated password is left from an
// earlier one, and only after the intent is written down.
func (p *pass) findRepository(ctx context.Context) error {
	if err := p.locate(ctx); err != nil {
		return err
	}
	switch repository := p.status.Repository; {
	case repository.ID != "" || repository.KeyCreated || !p.spec.generatesKey():
		return nil
	case repository.GeneratedKey != "":
		return p.createKey(ctx)
	}
	return p.lookup(ctx)
}

// locate notes where the repository is. Another place is another repository, about which nothing is known; what still
// works for the one before is stopped first, so that its results are not taken for the new one's.
func (p *pass) locate(ctx context.Context) error {
	place, err := p.options.Stores.Locate(p.obj)
	if err != nil {
		return err
	}
	if p.status.Repository != nil && p.status.Repository.URL == place.URL {
		return nil
	}
	if p.status.Repository != nil {
		if err := p.stopMovers(ctx); err != nil {
			return err
		}
	}
	p.status.Repository = &Repository{URL: place.URL}
	return nil
}

// lookup asks a mover whether there is a repository, and decides on a new key when there is proven to be none.
func (p *pass) lookup(ctx context.Context) error {
	task, err := p.task(contract.OperationLookup)
	if err != nil {
		return err
	}
	task.Role, task.Slot = backup.RoleLookup, p.status.Current.Slot
	state, err := backup.Advance(ctx, p.options.Mover, task, p.options.Attempts, p.now)
	if err != nil {
		return err
	}
	result := state.Result
	switch {
	case result.Outcome == contract.Failed:
		return reconcilekit.Terminal(result.Reason, errors.New(result.Message))
	case result.Repository == contract.RepositoryPresent:
		return nil // its key exists, or the mover will say that it is missing
	case result.Repository != contract.RepositoryAbsent:
		return reconcilekit.Terminal(contract.ReasonRepositoryBroken, fmt.Errorf(
			"%s holds parts of a repository but no config: restore the bucket, or choose another storage.prefix", p.status.Repository.URL))
	}
	return p.intendKey(ctx)
}

// intendKey writes down that a key is going to be created. A key that exists already although the store is empty was
// made for a repository that is gone: that is for a person to judge.
func (p *pass) intendKey(ctx context.Context) error {
	secret, err := p.keySecret()
	if err != nil {
		return err
	}
	switch err := p.client.Create(ctx, secret, client.DryRunAll); {
	case apierrors.IsAlreadyExists(err):
		return reconcilekit.Terminal(contract.ReasonRepositoryMissing, fmt.Errorf(
			"the Secret %s holds the password of a repository, but %s holds none: restore the bucket; or, to begin a new one, give it a password "+
				"of its own with encryption.passwordSecretRef, and keep that Secret for as long as its repository may exist somewhere",
			secret.Name, p.status.Repository.URL))
	case err != nil:
		return err
	}
	p.status.Repository.GeneratedKey = secret.Name
	if err := p.persist(ctx); err != nil {
		return err
	}
	return p.createKey(ctx)
}

// createKey creates the Secret that was decided on, once. One that exists is the one of an earlier try.
func (p *pass) createKey(ctx context.Context) error {
	secret, err := p.keySecret()
	if err != nil {
		return err
	}
	if err := p.client.Create(ctx, secret); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	p.status.Repository.KeyCreated = true
	return p.persist(ctx)
}

// noteFoundKey names the generated key of a repository that was there before this object, so that its owner is asked to
// save it as well. It comes after the repository's id is known: before, a name here means that a key is to be created.
func (p *pass) noteFoundKey() {
	if r := p.status.Repository; r != nil && r.ID != "" && r.GeneratedKey == "" && p.spec.generatesKey() {
		r.GeneratedKey, r.KeyCreated = KeySecretName(p.obj.BackupClaim(), r.URL), true
	}
}

// keySecret is a new password in a Secret without an owner: it outlives the object, since the backups do.
func (p *pass) keySecret() (*corev1.Secret, error) {
	random := make([]byte, 32)
	if _, err := rand.Read(random); err != nil {
		return nil, fmt.Errorf("no random bytes for a password: %w", err)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.owner.Namespace, Name: KeySecretName(p.obj.BackupClaim(), p.status.Repository.URL),
			Labels:      map[string]string{backup.LabelManagedBy: backup.ManagedBy},
			Annotations: map[string]string{"storage.example.com/repository": p.status.Repository.URL},
		},
		Type:       corev1.SecretTypeOpaque,
		StringData: map[string]string{contract.PasswordKey: base64.RawURLEncoding.EncodeToString(random)},
	}, nil
}
