#!/bin/sh
# unchanged.sh COMMAND…: runs a command that writes files, and fails when a file of the work tree is not what it was: what
# is committed was then not made from its sources. It compares with the tree as it was before, so it also works on one
# with changes of its own.
set -eu
cd "$(dirname "$0")/.."

state() {
	git status --porcelain=v1 --untracked-files=all
	git diff HEAD
	git ls-files -z --others --exclude-standard | xargs -0 -r sha256sum
}

before=$(mktemp) after=$(mktemp)
trap 'rm -f "$before" "$after"' EXIT
state >"$before"
"$@"
state >"$after"
if ! changed=$(diff "$before" "$after"); then
	printf '%s\n' "$changed" | head -n 100 >&2
	echo "these files are not what '$*' makes of their sources (above, at most 100 lines): run it and commit what it writes" >&2
	exit 1
fi
