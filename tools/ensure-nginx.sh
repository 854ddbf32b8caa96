#!/bin/sh
# ensure-nginx.sh: makes sure that there is an nginx for the test of docs/proxy.md, and is silent when there is. Where
# Debian's packages can be installed without asking anybody (as root, or through a sudo that needs no password), it
# installs the program; its service is not started.
set -eu

found() { command -v nginx >/dev/null 2>&1 || [ -x /usr/sbin/nginx ]; }

refuse() {
	echo "the test of docs/proxy.md runs nginx, and $1: apt-get install --no-install-recommends nginx (Debian, Ubuntu), dnf install nginx (Fedora), brew install nginx (macOS)" >&2
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
echo "installing nginx from the system's packages (its service is not started)" >&2
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
	apt-get -qq install -y --no-install-recommends nginx' </dev/null >"$log" 2>&1 || {
	cat "$log" >&2
	refuse 'installing it failed (above)'
}
found || refuse 'the package did not bring it'
