#!/usr/bin/env bash
# What `fairhead record` costs, and whether the lab repeats what it recorded.
#
#   bench/record.sh overhead [--turns N] [--seconds N] [--depth N]
#   bench/record.sh replay [--turns N] [--seconds N] [--job seq|rand|mixed]
#
# overhead: fio reads 4 KiB at random, direct, --depth (1) at a time, from a loop device on a file in memory, --seconds (1) in each run. Runs with
# and without `fairhead record` of that device take turns (--turns 20, the order changes from turn to turn). It prints the IOPS and the median
# latency of each, and the median of the differences of the pairs with its quartiles.
#
# replay: `fairhead emulate nas2020` shows a file as that disk, a loop device on it has the kernel's mq-deadline. `fairhead record` records fio on it
# for --seconds (8) in each of --turns (3). Then the lab runs the recording on nas2020 under mq-deadline, with the path that emulate measured
# (--host). It prints bandwidth and p99 of record's summary and of the lab, and their difference in percent. Turns that emulate does not trust are
# marked. --job mixed (the default): 256 KiB in sequence beside 4 KiB at random, one at a time each; seq, rand: one of them, four at a time.
#
# fio, the kernel's workers and emulate run at real-time priorities, record does not.
#
# Exit code 0: the bars are kept (2 % of IOPS; 10 % of bandwidth and p99); 3: they are not; 1: something failed.
# Needs root, fio, jq, loop devices, tracefs, for replay also FUSE; says `skipped: <why>` without.
set -euo pipefail
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd)
fairhead=${FAIRHEAD:-$here/../target/dist/fairhead}
# shellcheck source=bench/emulated.sh
. "$here/emulated.sh"

usage() { sed -n '2,19s/^# \{0,1\}//p' "$0" >&2; exit 1; }

what=${1-} turns='' seconds='' depth=1 job=mixed
[ $# -gt 0 ] && shift
while [ $# -gt 0 ]; do
    case $1 in
    --turns) turns=${2?} && shift ;;
    --seconds) seconds=${2?} && shift ;;
    --depth) depth=${2?} && shift ;;
    --job) job=${2?} && shift ;;
    *) usage ;;
    esac
    shift
done

for program in fio jq losetup chrt; do command -v $program >/dev/null || skip "there is no $program"; done
[ "$(id -u)" = 0 ] || skip "only root may make loop devices"
[ -e /dev/loop-control ] || skip "there are no loop devices"
[ -x "$fairhead" ] || fail "no $fairhead; build it with cargo build --profile dist, or set FAIRHEAD"

memory=/dev/shm
[ -d $memory ] || memory=${TMPDIR:-/tmp}
work=$(mktemp -d "$memory/fairhead-record.XXXXXX")
end() { trap - EXIT; end_disk; workers_to -o 0; rm -rf "$work"; }
trap end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Starts a recording of the device, and returns when the kernel records.
begin_record() { # SECONDS
    rm -f "$work/said"
    "$fairhead" record "$loop" -t "$1s" -o "$work/a.blktrace" --output-format json >"$work/summary" 2>"$work/said" &
    recorder=$!
    for _ in $(seq 250); do grep -qs 'Ctrl-C ends it' "$work/said" && return; sleep 0.02; done
    fail "record did not begin: $(cat "$work/said")"
}
end_record() {
    kill -INT "$recorder"
    wait "$recorder" || fail "record failed: $(cat "$work/said")"
}

# ---- overhead ----------------------------------------------------------------------------------------------------

# IOPS, and the median latency of a request in microseconds.
reads() {
    workers_to -f 4
    chrt -f 5 fio --name=r --filename="$loop" --rw=randread --bs=4k --direct=1 --ioengine=libaio --iodepth="$depth" --time_based --runtime="$seconds" \
        --norandommap --randrepeat=1 --output-format=json >"$work/fio.json"
    jq -r '.jobs[0].read | "\(.iops | floor) \(.clat_ns.percentile["50.000000"] / 1000)"' "$work/fio.json"
}

overhead() {
    dd if=/dev/zero of="$work/image" bs=1M count=512 status=none
    loop=$(losetup -f --show --direct-io=on "$work/image" 2>/dev/null) || loop=$(losetup -f --show "$work/image")
    echo none >"/sys/block/${loop#/dev/}/queue/scheduler"
    reads >/dev/null
    echo "load average $(cut -d' ' -f1-3 /proc/loadavg), $(nproc) processors, kernel $(uname -r), depth $depth"
    local turn plain recorded lost all=0
    for turn in $(seq "${turns:-20}"); do
        [ $((turn % 2)) = 1 ] || plain=$(reads)
        begin_record $((seconds * 4 + 30))
        recorded=$(reads)
        end_record
        lost=$(jq .events_lost "$work/summary") all=$((all + lost))
        [ $((turn % 2)) = 0 ] || plain=$(reads)
        rm -f "$work/a.blktrace"
        echo "$plain $recorded $lost" | awk '{ printf "plain %d IOPS (%.1f us), recorded %d IOPS (%.1f us), %d lost: %+.2f %%\n", $1, $2, $3, $4, $5, ($3 / $1 - 1) * 100 }'
        echo "$plain $recorded" | awk '{ print ($3 / $1 - 1) * 100 }' >>"$work/ratios"
    done
    echo "load average $(cut -d' ' -f1-3 /proc/loadavg); $all events lost"
    sort -g "$work/ratios" | awk '{ a[NR] = $1 } function q(p) { i = 1 + p * (NR - 1); f = int(i); return a[f] + (i - f) * (a[f < NR ? f + 1 : f] - a[f]) }
        END { m = q(0.5); printf "median %+.2f %% of IOPS (quartiles %+.2f, %+.2f)\n", m, q(0.25), q(0.75); exit !(m >= -2) * 3 }'
}

# ---- replay ------------------------------------------------------------------------------------------------------

# The job's sections. Each program makes one request at a time or some.
sections() {
    local common="--filename=$loop --direct=1 --time_based --runtime=$seconds --ioengine=libaio --group_reporting=0"
    case $job in
    seq) chrt -f 5 fio $common --name=film --rw=read --bs=256k --iodepth=4 ;;
    rand) chrt -f 5 fio $common --name=base --rw=randread --bs=4k --iodepth=4 --size=100g ;;
    mixed) chrt -f 5 fio $common --name=film --rw=read --bs=256k --iodepth=1 --name=base --rw=randread --bs=4k --iodepth=1 --size=100g ;;
    *) fail "no job '$job'; there are seq, rand, mixed" ;;
    esac
}

replay() {
    (exec 3<>/dev/fuse) 2>/dev/null || skip "there is no FUSE (/dev/fuse)"
    local turn host good=0 doubted=0 doubt
    for turn in $(seq "${turns:-3}"); do
        begin_disk nas2020 mq-deadline
        begin_record $((seconds + 30))
        sections >"$work/fio.out"
        end_record
        end_disk
        host=$(sed -n 's/^path through a loop device: .*--host //p' "$work/emulate.out" "$work/emulate.err" | head -n 1)
        doubt=$(sed -n 's/.*not to be trusted: //p' "$work/emulate.err" | head -n 1)
        host=${host:-2020,path=30us}
        "$fairhead" trace "$work/a.blktrace" --output-format json >"$work/trace.json"
        "$fairhead" run "$work/a.blktrace" --disk nas2020 --sched mq-deadline --host "$host" --output-format json >"$work/lab.json" 2>/dev/null
        echo "turn $turn, $job, --host $host, load $(cut -d' ' -f1 /proc/loadavg)${doubt:+, not to be trusted: $doubt}"
        [ -z "$doubt" ] || { doubted=$((doubted + 1)); }
        beside >"$work/beside" && good=$((good + 1))
        cat "$work/beside"
        [ -z "${KEEP-}" ] || cp "$work"/{summary,lab.json,trace.json} "$KEEP"
    done
    echo "$good of ${turns:-3} turns within 10 %; $doubted not to be trusted"
    [ $good = "${turns:-3}" ] || exit 3
}

# Each process of fio (threads that make at least 10 requests) as recorded and in the lab. The lab replays all requests, so bandwidths differ as the
# times from the first request to the last completion do. Exit code 1 if one figure is off by more than 10 %.
beside() {
    jq -nr --slurpfile s "$work/summary" --slurpfile t "$work/trace.json" --slurpfile l "$work/lab.json" '
        $s[0].processes[] | select(.name == "fio" and .requests >= 10) | . as $p
        | ($l[0].runs[0].jobs | if length > 1 then .[] | select(.jobname == "fio-\($p.process)") else .[] end) as $j
        | [$p.process, ($p.read_bytes / $t[0].span_ns * 1e9 / 1048576), $j.read.bw_bytes / 1048576,
           $p.latency_p50_ns / 1e6, $j.read.lat_ns.percentile["50.000000"] / 1e6,
           $p.latency_p99_ns / 1e6, $j.read.lat_ns.percentile["99.000000"] / 1e6] | @tsv' |
        awk 'function off(a, b) { return (b / a - 1) * 100 } function abs(x) { return x < 0 ? -x : x }
            { printf "  fio-%d: %.3f MiB/s recorded, %.3f lab (%+.1f %%); p50 %.2f ms, %.2f (%+.1f %%); p99 %.2f ms, %.2f (%+.1f %%)\n",
                $1, $2, $3, off($2, $3), $4, $5, off($4, $5), $6, $7, off($6, $7); n++
              if (abs(off($2, $3)) > 10 || abs(off($6, $7)) > 10) bad = 1 }
            END { exit bad || !n }'
}

case $what in
overhead) seconds=${seconds:-1} && overhead ;;
replay) seconds=${seconds:-8} && replay ;;
*) usage ;;
esac
