package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

func (t *tool) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return t.show(map[string]string{"version": t.Version}, func(w io.Writer) { fmt.Fprintln(w, "pvcbackup", t.Version) })
		},
	}
}
