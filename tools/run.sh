#!/bin/sh
# run.sh GO [ARGS…]: builds rouse and serves. It says before the build what would be in the way after it, shows that the build goes
# on, and ends well when the server was asked to end.
set -eu

go=$1
shift
address=${ROUSE_ADDR:-127.0.0.1:8080}
folder=.rouse
[ "$(id -u)" -ne 0 ] || folder=/var/lib/rouse
folder=${ROUSE_DATA_DIR:-$folder}
next=
for word; do
	[ "$next" != --addr ] || address=$word
	[ "$next" != --data-dir ] || folder=$word
	case $word in --addr=*) address=${word#--addr=} ;; --data-dir=*) folder=${word#--data-dir=} ;; esac
	next=$word
done
port=${address##*:}
if [ "$port" != 0 ] && command -v curl >/dev/null 2>&1; then
	status=0
	curl -s -o /dev/null --max-time 2 "http://127.0.0.1:$port/" || status=$?
	if [ "$status" != 7 ]; then # 7: nobody listens there
		echo "another program listens on port $port: end it, or choose another: make run ARGS=\"--addr 127.0.0.1:9000\"" >&2
		exit 1
	fi
fi

if [ -e "$folder/rouse.lock" ] && command -v flock >/dev/null 2>&1 && ! flock -n "$folder/rouse.lock" true; then
	echo "another rouse has the data folder $folder: end it, or choose another: make run ARGS=\"--data-dir /tmp/rouse\"" >&2
	exit 1
fi

mkdir -p bin
echo 'building rouse: about 3 minutes once, then seconds' >&2
"$go" build -o bin/rouse-run ./cmd/rouse &
build=$!
trap 'kill "$build" 2>/dev/null; exit 130' INT TERM
seconds=0
while kill -0 "$build" 2>/dev/null; do
	sleep 1
	seconds=$((seconds + 1))
	[ $((seconds % 15)) -ne 0 ] || echo "building for $seconds s" >&2
done
wait "$build"

trap : INT TERM # the server gets the signal too, and says itself how it ends
status=0
bin/rouse-run serve "$@" || status=$?
exit "$status"
