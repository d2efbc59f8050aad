#!/bin/sh
# Compares the exported API of all packages with the one of a commit, by default the one in api-baseline, and fails when
# something that others may use is gone or different.
set -eu
cd "$(dirname "$0")/../.."
tool=$PWD/.cache/tools/apidiff
module=example.com/pvcbackup
baseline=${1:-$(sed 's/#.*//' operator/test/api-baseline | tr -d '[:space:]')}
git cat-file -e "$baseline^{commit}" 2>/dev/null || {
	echo "the baseline $baseline is not in this clone; fetch the history (git fetch --unshallow), or name another commit: make apidiff SINCE=…" >&2
	exit 1
}
old=$(mktemp -d)
trap 'rm -rf "$old"' EXIT
git archive "$baseline" | tar -x -C "$old"
export CGO_ENABLED=0

# quietly runs the tool without what it says about internal packages.
quietly() {
	"$tool" -m "$@" 2>"$old/errors" || { cat "$old/errors" >&2; exit 1; }
}

(cd "$old" && quietly -w "$old/api" "$module")
changes=$(quietly "$old/api" "$module")
echo "the API since $baseline:"
echo "${changes:-no change}"
case $changes in
*"Incompatible changes:"*)
	echo "This breaks those who use the packages. If it must be, name it in CHANGELOG.md, and make the commit that has it" >&2
	echo "the baseline in operator/test/api-baseline." >&2
	exit 1
	;;
esac
