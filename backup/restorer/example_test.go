package restorer_test

import (
	"context"
	"errors"
	"fmt"

	"example.com/pvcbackup/backup/restorer"
)

// What is in the target is refused, kept where it is equal, or replaced, as asked.
func ExampleRestore() {
	ctx := context.Background()
	r, snapshot, target, cleanUp, err := prepared(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cleanUp()
	for _, o := range []restorer.Options{{}, {}, {Overwrite: restorer.IfChanged}} {
		result, err := restorer.Restore(ctx, r, snapshot, target, o)
		var notEmpty *restorer.NotEmptyError
		if errors.As(err, &notEmpty) {
			fmt.Println(notEmpty.Reason())
			continue
		}
		fmt.Println("kept", result.Kept, err)
	}
	// Output:
	// kept 0 <nil>
	// TargetNotEmpty
	// kept 1 <nil>
}
