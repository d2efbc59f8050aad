#!/bin/sh
# Forks the operator as people do: copies the folder operator, renames its module, adds a kind with "kubebuilder create
# api", generates, and builds it.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
fork=$(mktemp -d)
trap 'chmod -R u+w "$fork"; rm -rf "$fork"' EXIT
(cd "$root/operator" && git ls-files -z . ':!test' | xargs -0 cp --parents -t "$fork")
cd "$fork"
export GOFLAGS=-mod=mod GOWORK=off CGO_ENABLED=0
grep -rl example.com/pvcbackup/operator . | xargs sed -i 's|example.com/pvcbackup/operator|example.com/fork|g'
sed -e 's|^module .*|module example.com/fork|' "$root/go.mod" >go.mod
cp "$root/go.sum" go.sum
go mod edit -require=example.com/pvcbackup@v0.0.0 -replace=example.com/pvcbackup="$root"
echo "building the fork ..."
go vet ./...
echo "adding a kind to the fork ..."
mkdir -p bin
cp "$root/.cache/tools/controller-gen" bin/
"$root/.cache/tools/kubebuilder" create api --group storage --version v1 --kind Widget --resource --controller --make=false
grep -q 'WidgetReconciler{' cmd/main.go
make generate manifests
grep -q widgets config/rbac/role.yaml
test -e config/crd/bases/storage.example.com_widgets.yaml
go vet ./...
go build -o bin/manager ./cmd
echo "the fork builds, with a kind of its own"
