#!/bin/sh
# Writes all that is generated below a folder: the root of the repository, or another one to compare with. It needs
# controller-gen ("make tools").
set -eu
into=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
gen=.cache/tools/controller-gen
for package in operator/api/v1 backup/scheduled; do
	"$gen" object paths="./$package" output:object:dir="$into/$package"
done
"$gen" crd paths="./operator/api/...;./backup/scheduled" output:crd:dir="$into/operator/config/crd/bases"
"$gen" rbac:roleName=pvcbackup-manager paths="./operator/controller" output:rbac:dir="$into/operator/config/rbac"
for package in examples/finalizer examples/database; do
	"$gen" object crd:maxDescLen=0 paths="./$package" output:object:dir="$into/$package" output:crd:dir="$into/$package/crd"
done
mkdir -p "$into/docs"
CGO_ENABLED=0 go run ./operator/test/reference "$into/docs"
