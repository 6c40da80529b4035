#!/bin/bash
# Measures `serve --vhost-user` beside qemu-storage-daemon's vhost-user-blk export, one after the other, round after round.
#
#   bench/vhost.sh [ROUNDS [SECONDS]]
#
# The client is the example vhost_load: a driver without a guest, so what is measured is the server. The same file for both: in memory, and on
# the file system of FAIRHEAD_DISK (a folder; default: none), where both go around the page cache. qemu-storage-daemon has an iothread, and
# on a disk io_uring. PRIORITY='chrt --rr 1' before all programs has them at real-time priority, which a machine that others use needs.
# The order is turned round every other round. Prints Markdown: the median of the rounds for each, with least and most, of
# requests a second and of the server's running time for a request; and the median of the quotients within a round, ours by theirs.
# Each step has a limit: a server has 4 s to listen and 5 s to end, a load its SECONDS and LIMIT more (default 10). A step that takes longer
# ends the script with a line that names it.
set -eu

rounds=${1:-5} seconds=${2:-2}
limit=$(awk "BEGIN { print $seconds + ${LIMIT:-10} }")
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
fairhead=${FAIRHEAD:-$target/dist/fairhead}
load=${VHOST_LOAD:-$target/dist/examples/vhost_load}
[ -x "$fairhead" ] || cargo build --profile dist --package fairhead
[ -x "$load" ] || cargo build --profile dist --package fairhead-live --example vhost_load
command -v qemu-storage-daemon >/dev/null || { echo "bench/vhost.sh: there is no qemu-storage-daemon" >&2; exit 1; }

dir=$(mktemp -d /dev/shm/fairhead-vhost.XXXXXX)
disk=${FAIRHEAD_DISK:-}
priority=${PRIORITY-}
server=
# Ends the server; kills it if it has not ended within 5 s.
stop() {
    [ -n "$server" ] || return 0
    kill "$server" 2>/dev/null || true
    for _ in $(seq 250); do kill -0 "$server" 2>/dev/null || break; sleep 0.02; done
    kill -9 "$server" 2>/dev/null && echo "bench/vhost.sh: a server did not end within 5 s and was killed" >&2
    wait "$server" 2>/dev/null || true
    server=
}
end() {
    stop
    rm -r "$dir"
    [ -z "$disk" ] || rm -f "$disk/fairhead-vhost-bench"
}
trap end EXIT
head -c 256M /dev/urandom >"$dir/memory"
[ -z "$disk" ] || { cp "$dir/memory" "$disk/fairhead-vhost-bench"; ln -s "$disk/fairhead-vhost-bench" "$dir/disk"; }

begin() { # WHO FILE
    rm -f "$dir/s"
    local direct=off aio=threads
    [ "$2" = memory ] || { direct=on aio=io_uring; }
    case $1 in
        fairhead*) $priority "$fairhead" serve --sched "${1#fairhead-}" --vhost-user "$dir/s=$dir/$2" >/dev/null 2>&1 & ;;
        qsd) $priority qemu-storage-daemon --object iothread,id=io \
            --blockdev "driver=file,node-name=n,filename=$dir/$2,cache.direct=$direct,aio=$aio" \
            --export "type=vhost-user-blk,id=e,node-name=n,addr.type=unix,addr.path=$dir/s,writable=on,iothread=io" >/dev/null 2>&1 & ;;
    esac
    server=$!
    for _ in $(seq 200); do [ -S "$dir/s" ] && return; sleep 0.02; done
    echo "bench/vhost.sh: $1 does not listen" >&2
    exit 1
}

# Writes requests a second and the server's microseconds for each into $dir/one.
measure() { # WHO FILE DEPTH BYTES r|w
    begin "$1" "$2"
    local ended=0
    timeout -k 2 "$limit" $priority "$load" "$dir/s" "$3" "$4" "$seconds" "$5" "$server" >"$dir/said" || ended=$?
    stop
    case $ended in
        0) ;;
        124 | 137) echo "bench/vhost.sh: the load on $1 ($3 deep, $4 bytes, $5) has not ended within $limit s" >&2; exit 1 ;;
        *) echo "bench/vhost.sh: the load on $1 ($3 deep, $4 bytes, $5) ended with $ended" >&2; exit 1 ;;
    esac
    sed -E 's/^([0-9]+) requests.* server ([0-9.]+) .*/\1 \2/' "$dir/said" >"$dir/one"
}

echo "load average before: $(cut -d' ' -f1-3 /proc/loadavg); $(nproc) processors"
echo
echo "| file | load | server | requests/s | server us/request | by qemu-storage-daemon's |"
echo "|---|---|---|---|---|---|"
files=memory
[ -z "$disk" ] || files="memory disk"
for file in $files; do
    for row in "1 4096 r" "32 4096 r" "32 4096 w" "8 65536 r"; do
        set -- $row
        : >"$dir/rows"
        for round in $(seq "$rounds"); do
            order="fairhead-noop fairhead-bfq qsd"
            [ $((round % 2)) = 1 ] || order="qsd fairhead-bfq fairhead-noop"
            for who in $order; do
                measure "$who" "$file" "$1" "$2" "$3"
                echo "$round $who $(cat "$dir/one")" >>"$dir/rows"
            done
        done
        python3 - "$dir/rows" "$file" "$1" "$2" "$3" <<'P'
import statistics, sys
path, file, depth, size, kind = sys.argv[1:]
rows = [line.split() for line in open(path)]
theirs = {r[0]: float(r[2]) for r in rows if r[1] == "qsd"}
name = {"r": "random reads", "w": "random writes"}[kind]
for who in ["fairhead-noop", "fairhead-bfq", "qsd"]:
    mine = [(r[0], float(r[2]), float(r[3])) for r in rows if r[1] == who]
    rate = [m[1] for m in mine]
    quotient = statistics.median(m[1] / theirs[m[0]] for m in mine)
    print(f"| {file} | {int(size) // 1024} KiB {name}, depth {depth} | {who.replace('-', ', ')} | {statistics.median(rate):.0f} "
          f"({min(rate):.0f} to {max(rate):.0f}) | {statistics.median(m[2] for m in mine):.2f} | {quotient:.2f} |")
P
    done
done
echo
echo "load average after: $(cut -d' ' -f1-3 /proc/loadavg)"
