module example.com/pvcbackup/operator/test/csidriver

go 1.26.0

require (
	github.com/container-storage-interface/spec v1.13.0
	github.com/google/go-cmp v0.7.0
	github.com/kubernetes-csi/csi-test/v5 v5.6.0
	github.com/stretchr/testify v1.11.1
	golang.org/x/sys v0.47.0
	google.golang.org/grpc v1.83.1
)
