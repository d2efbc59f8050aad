package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"example.com/pvcbackup/blobstore"
)

// found is a repository below a prefix, as JSON. Its ID is not known without its password.
type found struct {
	// Prefix is below the URL that was given; empty if the repository is right there.
	Prefix string `json:"prefix"`
	URL    string `json:"url"`
	// State is "repository", or "half-initialised" where the config is missing.
	State     string `json:"state"`
	Keys      int    `json:"keys"`
	Snapshots int    `json:"snapshots"`
	// Bytes are of all its files.
	Bytes int64 `json:"bytes"`
}

// ofRepository matches the keys that a repository's files have: what is before, the folder, and the rest.
var ofRepository = regexp.MustCompile(`^(?:(.*)/)?(?:(config)|(keys|snapshots|index)/[0-9a-f]{64}|(data)/[0-9a-f]{2}/[0-9a-f]{64})$`)

func (t *tool) reposCommand() *cobra.Command {
	return &cobra.Command{
		Use: "repos [URL]", Short: "Find the repositories below a URL; needs no password", Args: between(0, 1, "a URL, if not --repo"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				t.repo = args[0]
			}
			store, err := t.store(cmd.Context())
			if err != nil {
				return err
			}
			defer store.Close()
			repos, err := findRepositories(cmd.Context(), store)
			if err != nil {
				return err
			}
			return t.show(map[string]any{"repositories": repos}, func(w io.Writer) { repoTable(w, repos) })
		},
	}
}

func findRepositories(ctx context.Context, store *blobstore.Store) ([]found, error) {
	all := map[string]*found{}
	for object, err := range store.List(ctx, "") {
		if err != nil {
			return nil, err
		}
		match := ofRepository.FindStringSubmatch(object.Key)
		if match == nil {
			continue
		}
		r := all[match[1]]
		if r == nil {
			r = &found{Prefix: match[1], URL: urlBelow(store.URL(), match[1]), State: "half-initialised"}
			all[match[1]] = r
		}
		r.add(cmp.Or(match[2], match[3], match[4]), object.Size)
	}
	repos := []found{}
	for _, prefix := range slices.Sorted(maps.Keys(all)) {
		repos = append(repos, *all[prefix])
	}
	return repos, nil
}

func (f *found) add(kind string, bytes int64) {
	f.Bytes += bytes
	switch kind {
	case "config":
		f.State = "repository"
	case "keys":
		f.Keys++
	case "snapshots":
		f.Snapshots++
	}
}

// urlBelow adds a prefix to a URL that may have one already.
func urlBelow(base, prefix string) string {
	u, err := url.Parse(base)
	if err != nil || prefix == "" {
		return base
	}
	if query := u.Query(); query.Has("prefix") {
		query.Set("prefix", path.Join(query.Get("prefix"), prefix))
		u.RawQuery = query.Encode()
	} else {
		u.Path = path.Join("/", u.Path, prefix)
	}
	return u.String()
}

func repoTable(w io.Writer, repos []found) {
	if len(repos) == 0 {
		fmt.Fprintln(w, "there is no repository")
		return
	}
	rows := [][]string{}
	for _, r := range repos {
		rows = append(rows, []string{cmp.Or(r.Prefix, "."), r.State, strconv.Itoa(r.Snapshots), size(r.Bytes), r.URL})
	}
	table(w, []string{"PREFIX", "STATE", "SNAPSHOTS", "SIZE", "URL"}, rows)
}
