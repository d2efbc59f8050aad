package scheduled

import (
	"fmt"
	"net/url"
	"path"
	"strings"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/reconcilekit"
)

// Stores is what an operator is configured with about stores.
type Stores struct {
	// ClusterID names this cluster in repositories and starts their default prefix. Required.
	ClusterID string
	// Parameters completes URLs that have no parameters of their own: by bucket ("s3://backups") if that is there, else
	// by scheme ("s3"). The values are URL queries, such as "region=eu-1&endpoint=https://s3.example.com".
	Parameters map[string]string
}

// DefaultCredentials is the Secret whose keys become a mover's environment when the spec names none. It need not exist.
const DefaultCredentials = "pvcbackup-credentials"

// URL returns the URL of the repository in a storage. It holds nothing secret. defaultPrefix is where the repository is
// when the storage does not say; empty is the URL itself.
func (s Stores) URL(storage *Storage, defaultPrefix string) (string, error) {
	if storage == nil || storage.URL == "" {
		return "", invalidStorage("storage.url is empty: set it")
	}
	u, err := url.Parse(storage.URL)
	if err != nil || u.Scheme == "" {
		return "", invalidStorage("storage.url does not parse: write it like s3://bucket")
	}
	if u.User != nil {
		return "", invalidStorage("storage.url holds a user or a password: move them to the Secret of storage.credentialsSecretRef")
	}
	if err := checkPlace(u, storage); err != nil {
		return "", err
	}
	if err := checkPrefix(storage.Prefix); err != nil {
		return "", err
	}
	if u.RawQuery == "" {
		u.RawQuery = s.parameters(u)
	}
	prefix := storage.Prefix
	if prefix == "" {
		prefix = defaultPrefix
	}
	u.Path = path.Join("/", u.Path, prefix)
	return u.String(), nil
}

func (s Stores) parameters(u *url.URL) string {
	if query, ok := s.Parameters[u.Scheme+"://"+u.Host]; ok {
		return query
	}
	return s.Parameters[u.Scheme]
}

// checkPrefix refuses a prefix that leads out of the store.
func checkPrefix(prefix string) error {
	for _, part := range strings.Split(prefix, "/") {
		if part == "." || part == ".." {
			return invalidStorage("storage.prefix is %q: it must not contain . or .. as a part", prefix)
		}
	}
	return nil
}

// checkPlace refuses what names no bucket, and what a mover would take for a store although it dies with the mover.
func checkPlace(u *url.URL, storage *Storage) error {
	switch {
	case u.Opaque != "" || (u.Host == "") != (u.Scheme == "file" || u.Scheme == "mem"):
		return invalidStorage("storage.url does not name a bucket: write it like s3://bucket, or file://%s", backup.DestinationPath)
	case u.Scheme == "mem":
		return invalidStorage("storage.url is %q: a store in memory is gone with the mover that wrote it", u.Scheme)
	case u.Scheme == "file":
		below := u.Path == backup.DestinationPath || strings.HasPrefix(u.Path, backup.DestinationPath+"/")
		if storage.Volume == "" || !below || path.Clean(u.Path) != strings.TrimSuffix(u.Path, "/") {
			return invalidStorage("storage.url is a file: URL: it needs storage.volume and must lie below file://%s", backup.DestinationPath)
		}
	}
	return nil
}

func invalidStorage(format string, args ...any) error {
	return reconcilekit.Terminal("InvalidStorage", fmt.Errorf(format, args...))
}
