package scheduled_test

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/backup/scheduled"
)

func ExampleNew() {
	_, err := scheduled.New(scheduled.Options{})
	fmt.Println(err)
	// Output: scheduled.Options: Client, Live and Mover are required
}

func ExampleNewMetrics() {
	registry := prometheus.NewRegistry()
	_, err := scheduled.NewMetrics(registry, nil)
	fmt.Println(err)
	fmt.Println(testutil.GatherAndCount(registry))
	// Output:
	// <nil>
	// 1 <nil>
}

func ExampleStores_URL() {
	stores := scheduled.Stores{ClusterID: "prod", Parameters: map[string]string{"s3": "region=eu-central-1"}}
	fmt.Println(stores.URL(&scheduled.Storage{URL: "s3://bucket"}, "prod/ns/data"))
	_, err := stores.URL(&scheduled.Storage{URL: "s3://key:secret@bucket"}, "prod/ns/data")
	fmt.Println(err)
	// Output:
	// s3://bucket/prod/ns/data?region=eu-central-1 <nil>
	// storage.url holds a user or a password: move them to the Secret of storage.credentialsSecretRef
}

func ExampleKeySecretName() {
	moved := scheduled.KeySecretName("data", "s3://other/prod/ns/data")
	fmt.Println(scheduled.KeySecretName("data", "s3://bucket/prod/ns/data") == moved)
	// Output: false
}

func ExampleProgressOf() {
	fmt.Println(scheduled.ProgressOf(nil), scheduled.ProgressOf(&contract.Progress{Bytes: 7}).Bytes)
	// Output: <nil> 7
}
