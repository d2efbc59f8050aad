package tree_test

import (
	"errors"
	"fmt"

	"example.com/pvcbackup/backup/repo/id"
	"example.com/pvcbackup/backup/repo/tree"
)

func encoded() []byte {
	var b tree.Builder
	for _, name := range []string{"a", "b"} {
		if err := b.Add(&tree.Node{Name: name, Type: tree.File, Mode: 0o644, Content: []id.ID{}}); err != nil {
			panic(err)
		}
	}
	return b.Bytes()
}

func ExampleAll() {
	for node, err := range tree.All(encoded()) {
		fmt.Println(node.Name, node.Type, err)
	}
	// Output:
	// a file <nil>
	// b file <nil>
}

func ExampleNewDecoder() {
	_, err := tree.NewDecoder([]byte("{}"), tree.Limits{}).Next()
	fmt.Println(errors.Is(err, tree.ErrMalformed))
	// Output: true
}

func ExampleBuilder_Add() {
	var b tree.Builder
	fmt.Println(b.Add(&tree.Node{Name: "b", Type: tree.Dir, Subtree: id.ID{1}}))
	err := b.Add(&tree.Node{Name: "a", Type: tree.Dir, Subtree: id.ID{1}}) // names ascend
	fmt.Println(errors.Is(err, tree.ErrMalformed))
	// Output:
	// <nil>
	// true
}

func ExampleValidName() {
	fmt.Println(tree.ValidName("a file"), tree.ValidName(".."), tree.ValidName("a/b"))
	// Output: true false false
}
