#!/usr/bin/env bash
# What `advise` says in the lab beside what `try` measures with the kernel's schedulers, on disks that `emulate` shows.
#
#   bench/try.sh [--pairs LIST] [--sched NAME] [--seconds N] [--results FILE.csv]
#
# For each pair JOB:DISK of a job of bench/kernel and a disk it asks `fairhead advise` for NAME (bfq) against none, and then has `fairhead try`
# compare the two on a loop device over the emulated disk, for --seconds (48). A row has both factors of the wait (advise's figure of latency; try's
# p99 of all reads) and of the bytes of all jobs; above 1 is better with NAME. A pair has the right direction if the two factors that differ most
# from 1 in the lab are on the same side of 1 on the machine, and the right size if they are within 20 % of each other.
#
# Exit code 0: at least 9 of 12 directions and 6 of 12 sizes are right; 3: they are not; 1: something failed. Needs root, fio, jq, FUSE, loop
# devices and tracefs; says `skipped: <why>` without.
set -euo pipefail
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd)
fairhead=${FAIRHEAD:-$here/../target/dist/fairhead}
# shellcheck source=bench/emulated.sh
. "$here/emulated.sh"
jobs='a_seq2 e_seqrand f_readwrite j_randrw c_deep l_writers2'
pairs=$(for j in $jobs; do echo "$j:nas2020 $j:plextor_m5s"; done)
sched=bfq seconds=48 results=/dev/null
while [ $# -gt 0 ]; do
    case $1 in
    --pairs) pairs=${2?} && shift ;;
    --sched) sched=${2?} && shift ;;
    --seconds) seconds=${2?} && shift ;;
    --results) results=${2?} && shift ;;
    *) sed -n '2,15s/^# \{0,1\}//p' "$0" >&2; exit 1 ;;
    esac
    shift
done

command -v jq >/dev/null || skip "there is no jq"
command -v fio >/dev/null || skip "there is no fio"
command -v chrt >/dev/null || skip "there is no chrt"
[ "$(id -u)" = 0 ] || skip "only root has loop devices"
[ -e /dev/fuse ] || skip "there is no FUSE"
[ -d /sys/kernel/tracing/instances ] || skip "there is no tracefs"
[ -x "$fairhead" ] || fail "no $fairhead; build it with cargo build --profile dist, or set FAIRHEAD"

work=$(mktemp -d "${TMPDIR:-/tmp}/fairhead-try.XXXXXX")
end() { trap - EXIT; end_disk; workers_to -o 0; rm -rf "$work"; }
trap end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Of each pair: what the lab says of wait and bytes, and what the machine says.
echo "job,disk,lab_wait,try_wait,lab_bytes,try_bytes,lab_verdict,outcome,direction,size,trust" | tee "$results"
right=0 near=0 count=0
for pair in $pairs; do
    job=${pair%:*} disk=${pair#*:}
    job_for "$disk" "$job" /dev/disk 6 | sed '/^ramp_time/d' >"$work/lab.fio"
    "$fairhead" advise "$work/lab.fio" --disk "$disk" --sched "none,$sched" --against none --output-format json >"$work/lab.json"
    begin_disk "$disk" none
    job_for "$disk" "$job" "$loop" 600 | sed '/^ramp_time/d' >"$work/try.fio"
    chrt -f 5 "$fairhead" try "${loop#/dev/}" "$sched" --against none --job "$work/try.fio" -t "${seconds}s" --turn 4s --json >"$work/try.json"
    end_disk
    trust=$(grep -q 'not to be trusted' "$work/emulate.err" && echo busy || echo yes)
    row=$(jq -rn --arg sched "$sched" --slurpfile lab "$work/lab.json" --slurpfile tried "$work/try.json" '
        def all(way): [$tried[0].rows[] | select(.name == null and .way == way)][0];
        def sum(i): [$tried[0].rows[] | select(.name == null) | .mib_per_s[i]] | add;
        def side: if . > 1.05 then 1 elif . < 1 / 1.05 then -1 else 0 end;
        def show: if . == null then "-" else . * 1000 | round / 1000 | tostring end;
        def distance(a; b): if a == null or b == null or a <= 0 or b <= 0 then null else (a / b | log | fabs) end;
        ([$lab[0].candidates[] | select(.name == $sched)][0].jobs) as $then
        | ([$lab[0].candidates[] | select(.name == "none")][0].jobs) as $now
        | ([$lab[0].jobs[] | {(.job): .unit}] | add) as $unit
        | ([$now | keys[] | select($unit[.] == "s") | $now[.].amount / $then[.].amount][0]) as $waits
        | (([$now | keys[] | select($unit[.] == "bytes/s") | $then[.].amount] | add) / ([$now | keys[] | select($unit[.] == "bytes/s") | $now[.].amount] | add)) as $moves
        | [$waits, $moves] as $l
        | ((all("reads") // all("writes")).p99.factor) as $wait | (sum(1) / sum(0)) as $bytes
        | (if distance($l[0]; 1) != null and (distance($l[0]; 1) >= (distance($l[1]; 1) // 0)) then [$l[0], $wait] else [$l[1], $bytes] end) as [$a, $b]
        | (if $a != null and $b != null and ($a | side) == ($b | side) then 1 else 0 end) as $d
        | (if (distance($a; $b) // 9) <= (1.2 | log) then 1 else 0 end) as $s
        | [($l[0] | show), ($wait | show), ($l[1] | show), ($bytes | show), ($lab[0].winner), $tried[0].outcome, $d, $s] | join(",")')
    echo "$job,$disk,$row,$trust" | tee -a "$results"
    count=$((count + 1)) right=$((right + $(echo "$row" | cut -d, -f7))) near=$((near + $(echo "$row" | cut -d, -f8)))
done
echo "$right of $count directions are right, $near of $count sizes are within 20 %"
[ "$right" -ge 9 ] && [ "$near" -ge 6 ] || exit 3
