#!/bin/sh
# Fails when a file that is generated differs from what would be generated now, or when a file is not formatted.
set -eu
cd "$(dirname "$0")/../.."
unformatted=$(gofmt -l $(git ls-files '*.go' | xargs ls -d 2>/dev/null))
if [ -n "$unformatted" ]; then
	echo "not formatted; run make fmt:" $unformatted >&2
	exit 1
fi
new=$(mktemp -d)
trap 'rm -rf "$new"' EXIT
operator/test/generate.sh "$new"
for file in $(cd "$new" && find . -type f); do
	diff "$file" "$new/$file" || { echo "$file is not up to date; run make generate" >&2; exit 1; }
done
echo "generated files are up to date"
