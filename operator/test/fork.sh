#!/bin/sh
# Forks the operator as people do: copies the folder operator, renames its module, runs its tests, adds a kind with
# "kubebuilder create api", generates, builds it, and sees the new kind reconciled by the fork's manager.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
fork=$(mktemp -d)
trap 'chmod -R u+w "$fork"; rm -rf "$fork"' EXIT
(cd "$root/operator" && git ls-files -z . ':!test' | xargs -0 cp --parents -t "$fork")
export KUBEBUILDER_ASSETS="${KUBEBUILDER_ASSETS:-$root/.cache/controlplane}" PVCBACKUP_TOOLS="${PVCBACKUP_TOOLS:-$root/.cache/tools}"
export CGO_ENABLED=0
(cd "$root" && go build -o "$fork/bin/forked" ./operator/test/forked)
cd "$fork"
export GOFLAGS=-mod=mod GOWORK=off
grep -rl example.com/pvcbackup/operator . --include='*.go' --include=PROJECT | xargs sed -i 's|example.com/pvcbackup/operator|example.com/fork|g'
sed -e 's|^module .*|module example.com/fork|' "$root/go.mod" >go.mod
cp "$root/go.sum" go.sum
go mod edit -require=example.com/pvcbackup@v0.0.0 -replace=example.com/pvcbackup="$root"
echo "building the fork ..."
go vet ./...
echo "testing the fork ..."
go test ./api/... ./controller/...
go test -run 'TestWhatIsBackedUpIsRestoredEqual|TestTheWholeInstallation' ./app
echo "adding a kind to the fork ..."
cp "$root/.cache/tools/controller-gen" bin/
"$root/.cache/tools/kubebuilder" create api --group storage --version v1 --kind Widget --resource --controller --make=false
grep -q 'WidgetReconciler{' cmd/main.go
make generate manifests
grep -q widgets config/rbac/role.yaml
test -e config/crd/bases/storage.example.com_widgets.yaml
go vet ./...
go build -o bin/manager ./cmd
echo "running the fork ..."
bin/forked -manager bin/manager -crds config/crd/bases -kind Widget
echo "the fork passes its tests, builds, and reconciles a kind of its own"
