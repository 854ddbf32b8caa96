#!/bin/sh
# ensure-program.sh PROGRAM WHO: makes sure that there is a program which tests run, such as nginx for "the test of
# docs/proxy.md", and is silent when there is. Where Debian's packages can be installed without asking anybody (as root,
# or through a sudo that needs no password), it installs the package of that name; no service is started.
set -eu

[ $# -eq 2 ] || {
	echo "usage: $0 PROGRAM WHO" >&2
	exit 2
}
program=$1 who=$2

found() { command -v "$program" >/dev/null 2>&1 || [ -x "/usr/sbin/$program" ]; }

refuse() {
	echo "$who needs $program, and $1: apt-get install --no-install-recommends $program (Debian, Ubuntu), dnf install $program (Fedora), brew install $program (macOS)" >&2
	exit 1
}

as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	else
		sudo -n "$@"
	fi
}

found && exit 0
command -v apt-get >/dev/null 2>&1 || refuse 'this machine has none'
[ "$(id -u)" -eq 0 ] || sudo -n true 2>/dev/null || refuse 'installing it needs root'
echo "installing $program from the system's packages (no service is started)" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# A policy, removed again at the end, keeps the package from starting its service.
# shellcheck disable=SC2016 # the inner shell expands
as_root sh -euc '
	policy=/usr/sbin/policy-rc.d
	if [ ! -e "$policy" ]; then
		trap "rm -f $policy" EXIT
		printf "#!/bin/sh\nexit 101\n" >"$policy"
		chmod 755 "$policy"
	fi
	export DEBIAN_FRONTEND=noninteractive
	apt-get -qq update
	apt-get -qq install -y --no-install-recommends "$1"' sh "$program" </dev/null >"$log" 2>&1 || {
	cat "$log" >&2
	refuse 'installing it failed (above)'
}
found || refuse 'the package did not bring it'
