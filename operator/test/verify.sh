#!/bin/sh
# Fails when a file that is generated differs from what would be generated now, or when a file is not formatted.
set -eu
cd "$(dirname "$0")/../.."
unformatted=$(gofmt -l $(git ls-files '*.go'))
if [ -n "$unformatted" ]; then
	echo "not formatted; run make fmt:" $unformatted >&2
	exit 1
fi
new=$(mktemp -d)
trap 'rm -rf "$new"' EXIT
gen=.cache/tools/controller-gen
"$gen" crd paths="./operator/api/...;./backup/scheduled" output:crd:dir="$new/crd"
"$gen" rbac:roleName=pvcbackup-manager paths="./operator/controller" output:rbac:dir="$new/rbac"
diff -r "$new/crd" operator/config/crd/bases || { echo "the CRDs are not up to date; run make generate" >&2; exit 1; }
diff "$new/rbac/role.yaml" operator/config/rbac/role.yaml || { echo "the RBAC role is not up to date; run make generate" >&2; exit 1; }
for package in operator/api/v1 backup/scheduled; do
	"$gen" object paths="./$package" output:object:dir="$new/$package"
	diff "$new/$package/zz_generated.deepcopy.go" "$package/zz_generated.deepcopy.go" ||
		{ echo "the deepcopy functions of $package are not up to date; run make generate" >&2; exit 1; }
done
echo "generated files are up to date"
