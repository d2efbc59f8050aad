package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/blobstore"
)

// Options of Run. Stdout, Stderr and Getenv are required.
type Options struct {
	// Openers are the drivers that repositories may be opened with.
	Openers map[string]blobstore.Opener
	Stdout  io.Writer
	Stderr  io.Writer
	// Getenv reads the environment.
	Getenv func(name string) string
	// Version is recorded in snapshots and printed by the command version. Empty means "dev".
	Version string
	// Terminal says that Stderr is one, so that progress may be a line that changes.
	Terminal bool
	// Memory is how much the process may take in total, in bytes, if that is less than 256 MiB: a container's limit. The
	// flag --memory goes first. 0 means 256 MiB.
	Memory int64
	// LimitMemory is told how much the process is going to take, in bytes, and makes the runtime collect garbage in time;
	// more than once if an index is large. nil means that nobody is told.
	LimitMemory func(total int64)
	// Now tells the time; nil means time.Now.
	Now func() time.Time
}

// Run interprets the arguments, without the program's name, and returns the exit code.
func Run(ctx context.Context, args []string, o Options) int { return newTool(o).run(ctx, args) }

func newTool(o Options) *tool {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Version == "" {
		o.Version = "dev"
	}
	return &tool{Options: o, memory: memory{limit: o.LimitMemory}}
}

func (t *tool) run(ctx context.Context, args []string) int {
	root := t.root()
	root.SetArgs(append([]string{}, args...)) // nil would mean those of the process
	root.SetOut(t.Stdout)
	root.SetErr(t.Stderr)
	return t.exit(root.ExecuteContext(ctx))
}

// tool is one invocation.
type tool struct {
	Options
	repo         string
	passwordFile string
	json         bool
	lockWait     time.Duration
	memory       memory
	noLock       bool
	// moverWait, scrypt and clock replace moverLockWait, the cost of keys, and the repository's time in tests.
	moverWait time.Duration
	scrypt    repo.ScryptParams
	clock     repo.Clock
	// command is the name of the command that runs, once that is known.
	command string
	// code is the exit code of a command that ended without an error.
	code int
}

func (t *tool) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "pvcbackup",
		Short:         "Back up folders and volumes into restic repositories, and restore them",
		SilenceUsage:  true,
		SilenceErrors: true,
		Long: "pvcbackup reads and writes repositories in the restic format, in any store that has a URL:\n" +
			"s3://bucket/prefix?region=…, gs://bucket/prefix, azblob://container/prefix, file:///folder.\n\n" +
			"Exit codes: 0 done · 1 failed · 2 wrong usage · 3 some files could not be read · 10 no repository ·\n" +
			"11 locked · 12 wrong password · 130 interrupted.",
	}
	flags := root.PersistentFlags()
	flags.StringVarP(&t.repo, "repo", "r", t.Getenv(contract.EnvRepository), "URL of the repository ($"+contract.EnvRepository+")")
	flags.StringVar(&t.passwordFile, "password-file", "", "file that holds the password (default: $"+contract.EnvPassword+")")
	flags.BoolVar(&t.json, "json", false, "print JSON")
	flags.IntVar(&t.memory.flag, "memory", 0, "most memory to take, in MiB, at least 128 (default: 256, or the container's limit if that is less)")
	flags.DurationVar(&t.lockWait, "lock-wait", time.Minute, "how long to wait for a locked repository")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage(err) })
	root.AddCommand(t.initCommand(), t.backupCommand(), t.snapshotsCommand(), t.restoreCommand(), t.lsCommand(),
		t.checkCommand(), t.forgetCommand(), t.pruneCommand(), t.keysCommand(), t.unlockCommand(), t.reposCommand(),
		t.dumpCommand(), t.diffCommand(), t.statsCommand(), t.copyCommand(), t.repairCommand(), t.catCommand(), t.listCommand(),
		t.versionCommand(), t.moverCommand())
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		t.command = cmd.Name()
		return t.memory.divide(t.Memory)
	}
	root.Args = cobra.NoArgs // an unknown command
	root.RunE = func(*cobra.Command, []string) error { return usage(errors.New("no command: see pvcbackup --help")) }
	root.CompletionOptions.HiddenDefaultCmd = true
	wrongUsage(root)
	return root
}

// exactly and between count the arguments, and say what they are when there are not as many.
func exactly(n int, what string) cobra.PositionalArgs { return between(n, n, what) }

func between(least, most int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return usage(fmt.Errorf("%s: %d arguments were given", what, len(args)))
		}
		return nil
	}
}

// wrongUsage makes what cobra finds out about a command line a usage error.
func wrongUsage(cmd *cobra.Command) {
	if args := cmd.Args; args != nil {
		cmd.Args = func(cmd *cobra.Command, given []string) error {
			if err := args(cmd, given); err != nil {
				return usage(err)
			}
			return nil
		}
	}
	for _, sub := range cmd.Commands() {
		wrongUsage(sub)
	}
}

// usageError is a command line that is wrong.
type usageError struct{ error }

func usage(err error) error { return usageError{err} }

// exit prints an error and returns the exit code.
func (t *tool) exit(err error) int {
	if err == nil {
		return t.code
	}
	result := failure(contract.Operation(t.command), err)
	if t.json {
		if err := t.print(result); err != nil {
			return contract.ExitFailed
		}
	} else {
		fmt.Fprintf(t.Stderr, "pvcbackup: %s\n", result.Message)
	}
	if errors.As(err, &usageError{}) {
		return contract.ExitUsage
	}
	return result.ExitCode()
}
