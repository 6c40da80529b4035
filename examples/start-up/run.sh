#!/usr/bin/env bash
#
# How long a program takes to start from a slow disk while ten readers stream from it, under each scheduler: xterm with all its libraries, from
# the moment that it is called to the moment that the shell in it has ended.
#
#   FAIRHEAD=target/release/fairhead examples/start-up/run.sh [--sched NAME[,NAME…]] [--disk PRESET] [--readers N] [--runs N] [--settle SECONDS]
#
# Each start has a copy of its own, which is in no cache: half of the copies are started while nobody reads, the rest while the readers do. BFQ
# takes a reader that has just begun for a program that starts; --settle is how long readers read before anything is measured (25 s, until it
# knows better; with 4 s it is the hardest).
#
# Exit code 0: under BFQ the mean is at most 1.5 times the mean of the idle disk, and the longest twice that, or it says `skipped: <why>`. 3: it is not. 1: something failed.
# It makes nothing that it does not take away.

scheds=noop,deadline,as,cfq,bfq,mq-deadline,kyber disk=nas2020 readers=10 runs=3 settle=25
. "$(dirname "$0")/../live.sh"
options sched=scheds disk=disk readers=readers runs=runs settle=settle -- "$@"

streams=()
patience=120 # seconds; who has not started by then is killed

# A folder with all that the program is made of.
make_copies() {
    local xterm loader copy
    xterm=$(command -v xterm)
    loader=$(ldd "$xterm" | awk '/ld-linux|ld64|ld-musl/ { print $1 }')
    [ -n "$loader" ] || fail "xterm has no loader"
    for copy in $(seq $((2 * runs))); do
        mkdir -p "source/$copy/lib"
        cp -L "$xterm" "source/$copy/xterm"
        cp -L "$loader" "source/$copy/loader"
        ldd "$xterm" | awk '$3 ~ /^\// { print $3 }' | xargs -I{} cp -L {} "source/$copy/lib/"
    done
}

# How many seconds the start of a copy takes; all else that it needs is in memory.
start() { # COPY
    local from=$EPOCHREALTIME at="mnt/$1"
    (urgently timeout "$patience" "$at/loader" --library-path "$at/lib" "$at/xterm" -e true 2>>xterm.err) || echo failed >>failures
    awk -v a="$from" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.2f\n", b - a }'
}

starts() { # FIRST LAST
    local copy
    for copy in $(seq "$1" "$2"); do start "$copy"; done
}

begin_readers() {
    local i
    for i in $(seq "$readers"); do
        dd if="mnt/big$i" of=/dev/null bs=1M iflag=nocache status=none &
        streams+=($!)
        pids+=($!)
    done
}

end_readers() {
    local pid
    for pid in "${streams[@]}"; do
        kill -0 "$pid" 2>/dev/null || fail "a reader ended before it should"
        kill "$pid"
        wait "$pid" 2>/dev/null || true
    done
    streams=() pids=("$server")
}

row() { printf '%-14s %8s %8s %8s %8s  %s\n' "$@"; }

summary() { sort -n | awk '{ t += $1; most = $1 } END { printf "%.2f %.2f", t / NR, most }'; }

measure() { # SCHED
    begin_mount --emulate "$disk" --sched "$1"
    : >failures
    local idle busy ratio
    idle=$(starts 1 "$runs" | summary)
    begin_readers
    sleep "$settle"
    busy=$(starts $((runs + 1)) $((2 * runs)) | summary)
    end_readers
    end_front mount.err
    [ -s failures ] && busy="$busy+"
    ratio=$(awk -v a="${idle% *}" -v b="${busy% *}" 'BEGIN { printf "%.2f", b / a }')
    row "$1" "${idle% *}" "${busy% *}" "${busy#* }" "$ratio" "$trusted"
    case $1 in bfq) awk -v i="${idle% *}" -v r="$ratio" -v m="${busy#* }" 'BEGIN { exit !(r > 1.5 || m > 2 * i) }' && missed=yes ;; esac
    return 0
}

for program in xterm Xvfb; do command -v $program >/dev/null || skip "there is no $program"; done
prepare 500
make_copies
for i in $(seq "$readers"); do truncate -s 64G "source/big$i"; done
exec 4>display
urgently Xvfb -displayfd 4 -screen 0 800x600x24 >/dev/null 2>xvfb.err &
server=$!
pids+=("$server")
until [ -s display ]; do kill -0 "$server" 2>/dev/null || { cat xvfb.err >&2; fail "Xvfb did not start"; }; sleep 0.1; done
DISPLAY=:$(cat display)
export DISPLAY
: >verdicts
missed=no
xterm -e true || fail "xterm does not run here"
echo "xterm's start from $disk, in seconds, beside $readers readers; $runs times"
row scheduler idle mean most ratio trusted
for sched in ${scheds//,/ }; do measure "$sched"; done
sort -u verdicts
if [ $all_trusted = no ]; then echo "skipped: this machine was too busy to keep the disk's time"; exit 0; fi
[ $missed = no ] || { echo "BFQ took more than 1.5 times as long as on the idle disk, or once more than twice" >&2; exit 3; }
