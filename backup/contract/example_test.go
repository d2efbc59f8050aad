package contract_test

import (
	"errors"
	"fmt"

	"example.com/pvcbackup/backup/contract"
)

func ExampleDecodeRequest() {
	text, err := contract.Request{Operation: contract.OperationBackup, Backup: &contract.Backup{Run: "orders-1"}}.Encode()
	fmt.Println(err)
	request, err := contract.DecodeRequest(text)
	fmt.Println(request.Operation, request.Backup.Run, err)
	// Output:
	// <nil>
	// backup orders-1 <nil>
}

// Unknown is never success.
func ExampleDecodeResult() {
	message := contract.Result{Operation: contract.OperationBackup, Outcome: contract.Succeeded, SnapshotID: "3fa8"}.Encode()
	result, err := contract.DecodeResult(string(message))
	fmt.Println(result.Good(), result.SnapshotID, err)
	_, err = contract.DecodeResult("")
	fmt.Println(errors.Is(err, contract.ErrNoResult))
	// Output:
	// true 3fa8 <nil>
	// true
}

func ExampleParseProgress() {
	progress, ok := contract.ParseProgress(contract.Progress{Stage: "reading", Bytes: 7}.Line())
	fmt.Println(progress.Stage, progress.Bytes, ok)
	_, ok = contract.ParseProgress("some other line of the log")
	fmt.Println(ok)
	// Output:
	// reading 7 true
	// false
}
