#!/bin/sh
# Builds the programs that tests and demonstrations run, into .cache at the root of the repository, and only those
# that are missing or not as pinned:
#
#   build.sh control-plane   etcd, Kubernetes and the CSI controllers, and their CRDs  .cache/controlplane
#   build.sh csi-driver      the CSI driver                                            .cache/controlplane/csidriver
#   build.sh tool NAME...    tools listed in tools/versions                            .cache/tools/NAME
#
# It needs Go and git only. Each program takes its place by a rename, when it is whole.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cache=$(cd "$here/../.." && pwd)/.cache
export CGO_ENABLED=0 GOWORK=off
beat= new=

# cleanup ends the heartbeat and removes what is unfinished, however the script ends.
cleanup() {
	[ -z "$beat" ] || kill "$beat" 2>/dev/null || true
	[ -z "$new" ] || rm -rf "$new"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

# busy TEXT COMMAND... runs a command, and says every 30 seconds that it still does.
busy() {
	text=$1
	shift
	echo "$text ..."
	start=$(date +%s)
	(
		trap 'kill "$nap"; exit' TERM # a nap left behind would outlive this script
		while :; do
			sleep 30 </dev/null >/dev/null 2>&1 &
			nap=$!
			wait "$nap"
			echo "  ... still $text, for $(($(date +%s) - start)) s"
		done
	) &
	beat=$!
	status=0
	"$@" || status=$?
	kill "$beat" 2>/dev/null || true
	wait "$beat" 2>/dev/null || true
	beat=
	if [ "$status" -ne 0 ]; then
		echo "$text failed" >&2
		return "$status"
	fi
	echo "  done in $(($(date +%s) - start)) s"
}

# module PATH FIELD prints a field of a module that the module in the working directory requires.
module() { go list -m -f "{{.$2}}" "$1"; }

control_plane() {
	cd "$here/controlplane"
	out=$cache/controlplane
	stamp=$({ cat go.mod go.sum ./*.go "$here/build.sh"; go env GOVERSION GOOS GOARCH; } | git hash-object --stdin)
	whole=yes
	for program in kube-apiserver etcd snapshot-controller csi-snapshotter csi-provisioner crd; do
		[ -e "$out/$program" ] || whole=
	done
	if [ -n "$whole" ] && [ "$(cat "$out/.stamp" 2>/dev/null)" = "$stamp" ]; then
		return
	fi
	new=$out/.new.$$
	mkdir -p "$new"
	busy "building the control plane (about 6 minutes the first time)" build_control_plane
	for file in "$new"/*; do # kube-apiserver last: some wait for it
		[ "$file" = "$new/kube-apiserver" ] || place "$file"
	done
	place "$new/kube-apiserver"
	rmdir "$new"
	echo "$stamp" >"$out/.stamp"
}

place() {
	rm -rf "$out/.old.$$"
	if [ -d "$1" ] && [ -e "$out/${1##*/}" ]; then # what is not a folder is replaced at once
		mv "$out/${1##*/}" "$out/.old.$$"
	fi
	mv -f "$1" "$out/"
	rm -rf "$out/.old.$$"
}

build_control_plane() {
	go mod download || return
	base=k8s.io/component-base/version
	go build -o "$new/controlplane" -ldflags "-s -w -X $base.gitVersion=$(module k8s.io/kubernetes Version) -X $base.gitMajor=1 -X $base.gitMinor=37" . || return
	for part in etcd kube-apiserver kube-controller-manager kube-scheduler kubectl; do
		ln -sf controlplane "$new/$part"
	done
	for program in external-snapshotter/v8/cmd/snapshot-controller external-snapshotter/v8/cmd/csi-snapshotter external-provisioner/v6/cmd/csi-provisioner; do
		package=github.com/kubernetes-csi/$program
		go build -o "$new/" -ldflags "-s -w -X main.version=$(module "${package%/cmd/*}" Version)" "$package" || return
	done
	mkdir "$new/crd" || return
	cp "$(module github.com/kubernetes-csi/external-snapshotter/client/v8 Dir)"/config/crd/*snapshot.storage.k8s.io_*.yaml "$new/crd/" || return
	chmod -R u+w "$new/crd"
}

csi_driver() {
	cd "$here/csidriver"
	mkdir -p "$cache/controlplane"
	program=$cache/controlplane/csidriver
	stamp=$(cat go.mod go.sum ./*.go "$here/build.sh" | git hash-object --stdin)
	if [ -x "$program" ] && [ "$(cat "$cache/controlplane/.csidriver.stamp" 2>/dev/null)" = "$stamp" ]; then
		return
	fi
	new=$program.new.$$
	busy "building the CSI driver (about 20 seconds the first time)" go build -ldflags "-s -w" -o "$new" .
	mv -f "$new" "$program"
	echo "$stamp" >"$cache/controlplane/.csidriver.stamp"
}

# tool NAME builds one of the tools, unless the one that is there says that it is of the pinned version.
tool() {
	# shellcheck disable=SC2046 # three words
	set -- $(awk -v name="$1" '$1 == name' "$here/tools/versions")
	if [ $# -ne 3 ]; then
		echo "operator/test/tools/versions does not list that tool" >&2
		return 2
	fi
	name=$1 package=$2 version=$3 program=$cache/tools/$1
	if [ -x "$program" ] && go version -m "$program" | awk -v p="$package" -v v="$version" \
		'($1 == "mod" || $1 == "dep") && index(p "/", $2 "/") == 1 && $3 == v { ok = 1 } END { exit !ok }'; then
		return
	fi
	new=$cache/tools/.new.$$
	mkdir -p "$new"
	if [ -f "$here/tools/$name/go.mod" ]; then
		cd "$here/tools/$name"
		busy "building $name $version" go build -ldflags "-s -w" -o "$new/$name" "$package"
	else
		# "go install" names a program after its package; v4 is a version, not a name.
		busy "building $name $version" env GOBIN="$new" GOFLAGS= go install -ldflags "-s -w" "$package@$version"
	fi
	mv -f "$new"/* "$program" # which may be called otherwise, when there are two versions of one
	rmdir "$new"
}

case ${1-} in
control-plane) control_plane ;;
csi-driver) csi_driver ;;
tool)
	shift
	for name; do tool "$name"; done
	;;
*)
	echo "usage: build.sh control-plane | csi-driver | tool NAME..." >&2
	exit 2
	;;
esac
