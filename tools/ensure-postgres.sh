#!/bin/sh
# ensure-postgres.sh [run|test|migration]: makes sure that there is a PostgreSQL for `make` to use, and is silent when
# there is. Missing server programs are installed from the system's packages where that asks nothing of anybody: as root,
# through a sudo that needs no password, or with Homebrew. Only programs are installed: no cluster is made, no service is
# started. It looks where internal/postgres/binaries.go looks.
set -eu

oldest=14

# usable DIR: is the server of a version that will do in this folder?
usable() {
	[ -x "$1/postgres" ] && [ -x "$1/initdb" ] || return 1
	version=$("$1/postgres" -V 2>/dev/null | sed -n 's/^[^0-9]*\([0-9][0-9]*\).*/\1/p')
	[ -n "$version" ] && [ "$version" -ge "$oldest" ]
}

found() {
	for program in postgres initdb; do
		if path=$(command -v "$program"); then
			usable "$(dirname "$(readlink -f "$path")")" && return 0
		fi
	done
	for dir in /usr/lib/postgresql/*/bin /usr/pgsql-*/bin /opt/homebrew/opt/postgresql*/bin /usr/local/opt/postgresql*/bin \
		/home/linuxbrew/.linuxbrew/opt/postgresql*/bin /Applications/Postgres.app/Contents/Versions/*/bin \
		/usr/local/pgsql/bin /usr/libexec/postgresql* /usr/lib/postgresql*/bin; do
		usable "$dir" && return 0
	done
	return 1
}

has() { command -v "$1" >/dev/null 2>&1; }

# refuse WHY: ends with the ways to go on.
refuse() {
	cat >&2 <<END
rouse needs PostgreSQL, and $1. Do one of these:
  - install the server: apt-get install postgresql (Debian, Ubuntu), dnf install postgresql-server (Fedora),
    apk add postgresql (Alpine), brew install postgresql@17 (macOS); version $oldest or newer
  - name the folder that holds postgres and initdb in ROUSE_PG_BINDIR
  - name a running database in $url
  - start rouse and PostgreSQL in containers: docker compose up
END
	exit 1
}

# as_root COMMAND…: runs it as root without asking anybody; fails where that is not possible.
as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	else
		sudo -n "$@"
	fi
}

# A drop-in, removed again at the end, keeps Debian's package from making and starting a cluster of its own.
install_debian() {
	dropin=/etc/postgresql-common/createcluster.d/rouse.conf
	# shellcheck disable=SC2016 # the inner shell expands
	as_root sh -euc '
		trap "rm -f $1" EXIT
		mkdir -p "$(dirname "$1")"
		echo "create_main_cluster = false" >"$1"
		export DEBIAN_FRONTEND=noninteractive
		apt-get -qq update
		apt-get -qq install -y --no-install-recommends postgresql' sh "$dropin" </dev/null
}

install_server() {
	if has brew; then
		brew install --quiet postgresql@17
	elif has apt-get; then
		install_debian
	elif has dnf; then
		as_root dnf -q -y install postgresql-server
	elif has apk; then
		as_root apk add --quiet postgresql
	fi
}

purpose=${1:-run}
case $purpose in
run) url=ROUSE_DATABASE_URL database=${ROUSE_DATABASE_URL:-} ;;
migration) url=ROUSE_DEV_DATABASE_URL database=${ROUSE_DEV_DATABASE_URL:-} ;;
test) url=ROUSE_TEST_DATABASE_URL database=${ROUSE_TEST_DATABASE_URL:-} ;;
*)
	echo "usage: $0 [run|test|migration]" >&2
	exit 2
	;;
esac

[ -z "$database" ] || exit 0
if [ -n "${ROUSE_PG_BINDIR:-}" ]; then
	usable "$ROUSE_PG_BINDIR" || refuse "ROUSE_PG_BINDIR=$ROUSE_PG_BINDIR holds no server of version $oldest or newer"
	exit 0
fi
found && exit 0
if [ "$purpose" = test ] && has docker && docker info >/dev/null 2>&1; then
	exit 0 # the tests start a container
fi
if [ "$(id -u)" -ne 0 ] && ! has brew && ! { has sudo && sudo -n true 2>/dev/null; }; then
	refuse "this machine has no server; installing it from the system's packages needs root"
fi
echo "installing PostgreSQL's server from the system's packages (no cluster is made, no service is started)" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! install_server >"$log" 2>&1; then
	cat "$log" >&2
	refuse "installing it from the system's packages failed (above)"
fi
found || refuse "the system's packages do not bring one of version $oldest or newer"
