package cli

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"path"
	"strings"

	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/blobstore"
)

// openStore opens the store under the rules for movers: nothing that dies with the Pod passes for a store.
func (m *mover) openStore(ctx context.Context) (*blobstore.Store, error) {
	where, destination := m.Getenv(contract.EnvRepository), m.Getenv(contract.EnvDestination)
	scheme, _, _ := strings.Cut(where, ":")
	if scheme == "mem" || scheme == "file" && destination == "" {
		return nil, because(contract.ReasonStoreInvalid, fmt.Errorf(
			"%s cannot be used by a mover: mem: never can, and file: only below a destination volume (storage.volume)", blobstore.Redact(where)))
	}
	openers := maps.Clone(m.Openers)
	delete(openers, "mem")
	return blobstore.Open(ctx, belowDestination(where, destination), &blobstore.Options{Openers: openers, FileRoot: destination})
}

// belowDestination makes the folders of a file: URL below the mounted volume a prefix in it, because only the volume
// itself is there from the start. Any other URL stays as it is.
func belowDestination(where, destination string) string {
	u, err := url.Parse(where)
	if err != nil || u.Scheme != "file" || destination == "" {
		return where
	}
	destination = path.Clean(destination)
	below, ok := strings.CutPrefix(path.Clean(u.Path), strings.TrimRight(destination, "/")+"/")
	if !ok {
		return where
	}
	query := u.Query()
	query.Set("prefix", path.Join(below, query.Get("prefix")))
	u.Path, u.RawQuery = destination, query.Encode()
	return u.String()
}
