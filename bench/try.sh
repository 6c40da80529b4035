#!/usr/bin/env bash
# What `advise` says in the lab beside what `try` measures with the kernel's schedulers, on disks that `emulate` shows.
#
#   bench/try.sh [--pairs LIST] [--sched NAME] [--seconds N] [--results FILE.csv]
#
# For each pair JOB:DISK of a job of bench/kernel and a disk it asks `fairhead advise` for NAME (bfq) against none, and then has `fairhead try`
# compare the two on a loop device over the emulated disk, for --seconds (48). A row has what both say of all jobs together: how many times as much of
# what they get alone (advise), or how many times as good (try), with its interval; above 1 is better with NAME. A pair has the right direction if both
# are above 1.05, both below 1 / 1.05, or both between, and the right size if they are within 20 % of each other.
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

# Of each pair: what the lab says of all jobs together, and what the machine says.
echo "job,disk,lab,lab_interval,try,try_interval,lab_verdict,outcome,direction,size,trust" | tee "$results"
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
        def side: if . > 1.05 then 1 elif . < 1 / 1.05 then -1 else 0 end;
        def show: if . == null then "-" else . * 1000 | round / 1000 | tostring end;
        def interval: "\(.low | show) to \(.high | show)";
        ([$lab[0].candidates[] | select(.name == $sched)][0].change) as $l | $tried[0].change as $t
        | (if $t != null and ($l.factor | side) == ($t.factor | side) then 1 else 0 end) as $d
        | (if $t != null and ($l.factor / $t.factor | log | fabs) <= (1.2 | log) then 1 else 0 end) as $s
        | [($l.factor | show), ($l | interval), ($t.factor | show), ($t | interval), $lab[0].winner, $tried[0].outcome, $d, $s] | join(",")')
    echo "$job,$disk,$row,$trust" | tee -a "$results"
    count=$((count + 1)) right=$((right + $(echo "$row" | cut -d, -f7))) near=$((near + $(echo "$row" | cut -d, -f8)))
done
echo "$right of $count directions are right, $near of $count sizes are within 20 %"
[ "$right" -ge 9 ] && [ "$near" -ge 6 ] || exit 3
