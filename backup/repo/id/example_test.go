package id_test

import (
	"fmt"

	"example.com/pvcbackup/backup/repo/id"
)

func ExampleHash() {
	blob := id.Hash([]byte("hello"))
	fmt.Println(blob.Short(), len(blob.String()))
	// Output: 2cf24dba 64
}

func ExampleParse() {
	_, err := id.Parse("2cf24dba")
	fmt.Println(err)
	parsed, err := id.Parse(id.Hash([]byte("hello")).String())
	fmt.Println(parsed == id.Hash([]byte("hello")), err)
	// Output:
	// id "2cf24dba" has 8 characters, not 64
	// true <nil>
}
