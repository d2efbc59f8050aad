package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const password = "a password for benchmarks"

// place is where one tool keeps one repository: below a folder of its own, or in a bucket.
type place struct {
	dir string // holds the repository, unless it is in a bucket, the cache, the configuration
	s3  *server
	key string // names the repository in the bucket
}

func (p place) repository() string { return filepath.Join(p.dir, "repository") }
func (p place) home() string       { return filepath.Join(p.dir, "home") }

func (p place) make() error {
	if err := os.MkdirAll(p.repository(), 0o755); err != nil {
		return err
	}
	return os.MkdirAll(p.home(), 0o755)
}

// tool is one of the programs that are compared.
type tool struct {
	name string
	// ours says that the repository is in the format of restic and must pass its check.
	ours bool
	env  func(p place) []string
	// init makes a repository; it is not measured.
	init func(p place) [][]string
	// The others return one command each; nil says that the tool has no such thing.
	backup  func(p place, source string) []string
	restore func(p place, source, target string) []string
	check   func(p place) []string
}

func (t *tool) command(p place, args []string) command {
	env := append(t.env(p), "HOME="+p.home(), "TMPDIR="+p.home())
	if p.s3 != nil {
		env = append(env, p.s3.env()...)
	}
	return command{args: args, env: env, dir: p.home()}
}

// dataTool is this project's, as the program at path.
func dataTool(name, path string) *tool {
	return &tool{
		name: name, ours: true,
		env: func(p place) []string {
			url := "file://" + p.repository()
			if p.s3 != nil {
				url = p.s3.url(p.key)
			}
			return []string{"PVCBACKUP_REPOSITORY=" + url, "PVCBACKUP_PASSWORD=" + password}
		},
		init:   func(place) [][]string { return [][]string{{path, "init"}} },
		backup: func(_ place, source string) []string { return []string{path, "backup", source} },
		restore: func(_ place, _, target string) []string {
			return []string{path, "restore", "latest", "--target", target}
		},
		check: func(place) []string { return []string{path, "check", "--read-data"} },
	}
}

func restic(path string) *tool {
	return &tool{
		name: "restic",
		env:  resticEnv,
		init: func(place) [][]string { return [][]string{{path, "init"}} },
		backup: func(_ place, source string) []string {
			return []string{path, "backup", source}
		},
		restore: func(_ place, source, target string) []string {
			return []string{path, "restore", "latest:" + source, "--target", target}
		},
		check: func(place) []string { return []string{path, "check", "--read-data"} },
	}
}

// resticEnv leads restic to the repository of any tool that writes its format.
func resticEnv(p place) []string {
	repository := p.repository()
	if p.s3 != nil {
		repository = p.s3.resticURL(p.key)
	}
	return []string{"RESTIC_REPOSITORY=" + repository, "RESTIC_PASSWORD=" + password, "RESTIC_CACHE_DIR=" + filepath.Join(p.home(), "cache")}
}

func kopia(path string) *tool {
	create := func(p place) []string {
		if p.s3 == nil {
			return []string{path, "repository", "create", "filesystem", "--path", p.repository()}
		}
		return append([]string{path, "repository", "create", "s3", "--prefix", p.key + "/"}, p.s3.kopiaFlags()...)
	}
	return &tool{
		name: "kopia",
		env: func(p place) []string {
			in := func(name string) string { return filepath.Join(p.home(), name) }
			return []string{
				"KOPIA_PASSWORD=" + password, "KOPIA_CONFIG_PATH=" + in("kopia.config"), "KOPIA_CACHE_DIRECTORY=" + in("cache"),
				"KOPIA_LOG_DIR=" + in("log"), "KOPIA_CHECK_FOR_UPDATES=false",
			}
		},
		init: func(p place) [][]string {
			return [][]string{create(p), {path, "policy", "set", "--global", "--compression", "zstd-fastest"}}
		},
		backup: func(_ place, source string) []string {
			return []string{path, "snapshot", "create", "--no-auto-maintenance", source}
		},
		restore: func(_ place, source, target string) []string {
			return []string{path, "snapshot", "restore", "--no-auto-maintenance", source, target}
		},
	}
}

// version is the one that the list of pinned tools has for a program.
func version(root, name string) string {
	list, err := os.ReadFile(filepath.Join(root, "operator", "test", "tools", "versions"))
	if err != nil {
		return "of an unknown version"
	}
	for line := range strings.Lines(string(list)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == name {
			return strings.TrimPrefix(fields[2], "v")
		}
	}
	return "of an unknown version"
}

// toolsFolder is where "make tools" put the programs.
func toolsFolder(root string) string {
	if dir := os.Getenv("PVCBACKUP_TOOLS"); dir != "" {
		return dir
	}
	return filepath.Join(root, ".cache", "tools")
}

func pinned(root, name string) (string, error) {
	path := filepath.Join(toolsFolder(root), name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%s is needed: run make bench, or make tools tool-kopia: %w", name, err)
	}
	return path, nil
}
