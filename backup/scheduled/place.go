package scheduled

import (
	"path"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/backup/contract"
)

// Place is where the backups of an object are, and how a mover gets at them.
type Place struct {
	// URL of the repository, without anything secret in it.
	URL string
	// RepositoryID is the repository's id; empty while it is not known.
	RepositoryID string
	// Identity is how the repository's snapshots name the claim.
	Identity contract.Identity
	// Secrets hold the password and the credentials.
	Secrets backup.Secrets
	// Volume is the claim that holds the repository; empty for an object store.
	Volume string
}

// Locate returns the place of an object's backups. Contradictions in the spec are a terminal error.
func (s Stores) Locate(obj Object) (Place, error) {
	spec, namespace, claim := obj.BackupSpec(), obj.GetNamespace(), obj.BackupClaim()
	url, err := s.URL(spec.Storage, path.Join(s.ClusterID, namespace, claim))
	if err != nil {
		return Place{}, err
	}
	place := Place{
		URL:      url,
		Identity: contract.Identity{Host: s.ClusterID, Path: "/" + namespace + "/" + claim},
		Secrets:  spec.Storage.Credentials(),
		Volume:   spec.Storage.Volume,
	}
	place.Secrets.Password, place.Secrets.PasswordKey = spec.passwordSecret(claim, url)
	if r := obj.BackupStatus().Repository; r != nil && r.URL == url {
		place.RepositoryID = r.ID
	}
	return place, nil
}

// Credentials returns which Secret of credentials a mover gets.
func (s *Storage) Credentials() backup.Secrets { return secretsOf(s.CredentialsSecretRef) }

// maintenance returns which Secret of credentials a mover gets that forgets, prunes and deletes.
func (s *Storage) maintenance() backup.Secrets {
	if s.MaintenanceCredentialsSecretRef != nil {
		return secretsOf(s.MaintenanceCredentialsSecretRef)
	}
	return s.Credentials()
}

func secretsOf(ref *SecretRef) backup.Secrets {
	if ref == nil {
		return backup.Secrets{Credentials: DefaultCredentials, CredentialsOptional: true}
	}
	return backup.Secrets{Credentials: ref.Name}
}

// PasswordKey returns the Secret and the key that hold the password.
func (r *SecretKeyRef) PasswordKey() (secret, key string) {
	if r.Key == "" {
		return r.Name, contract.PasswordKey
	}
	return r.Name, r.Key
}

func (s *Spec) passwordSecret(claim, repository string) (secret, key string) {
	if s.generatesKey() {
		return KeySecretName(claim, repository), contract.PasswordKey
	}
	return s.Encryption.PasswordSecretRef.PasswordKey()
}

func (s *Spec) generatesKey() bool {
	return s.Encryption == nil || s.Encryption.PasswordSecretRef == nil
}
