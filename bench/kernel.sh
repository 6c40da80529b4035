#!/usr/bin/env bash
# The running kernel's schedulers beside the lab's: the same jobs on the same emulated disks.
#
#   bench/kernel.sh [--measure] [--jobs GLOB] [--disks LIST] [--scheds LIST] [--seconds N] [--results FILE.csv] [--busy] [--recorded] [--vary] [--path path=TIME]
#
# For each cell (disk, job, scheduler) it shows the disk with `fairhead emulate`, puts a loop device on it, gives that the kernel's scheduler and
# runs the job with fio: 2 s of ramp and --seconds (4). The rows go to --results (bench/kernel/measured.csv); a cell that is there is not measured
# again. Then the same files run in the lab (--host 2020, the path latency that was measured), and a table puts both beside each other.
# --measure: only measure. --recorded: measure nothing, compare with bench/kernel/recorded.csv. --busy: keep also cells that the machine was too
# busy for; without it they are marked and measured again next time. LIST: names with commas. GLOB: such as 'h_*'.
#
# --vary: of each client that is off by more than 10 %, also the least and the most that the lab gives when little things are changed that no job file
# says: the seed, the order of the starts and the time between them, and the path latency, by a third.
#
# --path path=45us: of a path that was not measured.
#
# @DEV@, @RT@, @SPAN@, @HALF@ in the jobs: the device, the run time, the size of the disk that is used, and half of it. A section with
# cgroup_weight= is a fio process in a cgroup of that blkio.bfq.weight.
#
# Exit code 0: the bars are kept; 3: they are not; 1: something failed. Needs root, fio, jq, FUSE, loop devices; says `skipped: <why>` without.
set -euo pipefail
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd)
fairhead=${FAIRHEAD:-$here/../target/dist/fairhead}
# shellcheck source=bench/emulated.sh
. "$here/emulated.sh"

globs='*' disks=nas2020,sata2009q,plextor_m5s scheds=none,mq-deadline,kyber,bfq0,bfq seconds=4 busy=no what=all path= vary=no
results=$here/kernel/measured.csv
usage() { sed -n '2,20s/^# \{0,1\}//p' "$0" >&2; exit 1; }
while [ $# -gt 0 ]; do
    case $1 in
    --measure) what=measure ;;
    --recorded) what=recorded results=$here/kernel/recorded.csv ;;
    --busy) busy=yes ;;
    --vary) vary=yes ;;
    --path) path=${2?} && shift ;;
    --jobs) globs=${2?} && shift ;;
    --disks) disks=${2?} && shift ;;
    --scheds) scheds=${2?} && shift ;;
    --seconds) seconds=${2?} && shift ;;
    --results) results=${2?} && shift ;;
    *) usage ;;
    esac
    shift
done

command -v jq >/dev/null || skip "there is no jq"
[ -x "$fairhead" ] || fail "no $fairhead; build it with cargo build --profile dist, or set FAIRHEAD"

work=$(mktemp -d "${TMPDIR:-/tmp}/fairhead-kernel.XXXXXX")
groups=()

# Everything that a cell has made.
end_cell() {
    end_disk
    local group
    for group in "${groups[@]}"; do rmdir "$group" 2>/dev/null || true; done
    groups=()
}
end() {
    trap - EXIT
    end_cell
    workers_to -o 0
    rm -rf "$work"
}

# ---- the machine -------------------------------------------------------------------------------------------------

# For how long these threads have waited for a processor altogether, in ns.
waited() {
    local tid sum=0 delay
    for tid in "$@"; do
        { read -r _ delay _ <"/proc/$tid/schedstat"; } 2>/dev/null && sum=$((sum + delay))
    done
    echo "$sum"
}
# Processor time of the emulation, in hundredths of a second.
ticks() { awk '{ print $14 + $15 }' "/proc/$server/stat"; }
stolen() { awk '$1 == "cpu" { print $9 }' /proc/stat; }

# One fio for each section that has a weight, in its cgroup; one for the whole file otherwise.
begin_fio() { # JOB
    pids=()
    if ! grep -q '^cgroup_weight=' "$1"; then
        chrt -f 5 fio --output-format=json --output="$work/fio.0" "$1" 2>"$work/fio.err" &
        pids+=($!)
        return
    fi
    local section i=0 weight group
    grep -v '^cgroup' "$1" >"$1.plain"
    for section in $(sed -n 's/^\[\(.*\)\]/\1/p' "$1" | grep -v '^global$'); do
        weight=$(awk -v s="[$section]" '/^\[/ { on = $0 == s } on' "$1" | sed -n 's/^cgroup_weight=//p')
        group=/sys/fs/cgroup/blkio/fairhead-kernel-$$-$section
        [ -d /sys/fs/cgroup/blkio ] || group=/sys/fs/cgroup/fairhead-kernel-$$-$section
        mkdir "$group" && groups+=("$group")
        if [ -f "$group/blkio.bfq.weight" ]; then echo "$weight" >"$group/blkio.bfq.weight"
        elif [ -f "$group/io.bfq.weight" ]; then echo "$weight" >"$group/io.bfq.weight"; fi
        sh -c 'echo $$ >"$1/cgroup.procs" && shift && exec "$@"' - "$group" \
            chrt -f 5 fio --output-format=json --output="$work/fio.$i" --section="$section" "$1.plain" 2>"$work/fio.err" &
        pids+=($!)
        i=$((i + 1))
    done
}

# Runs what is in $work/job on the disk. How long fio has waited for a processor is counted against the
# time that all calls took, in percent: in a chain of one call after the other that is the error of the bandwidth.
run_fio() { # SECONDS
    local pid fios=() stolen ticks
    rm -f "$work"/fio.[0-9]*
    begin_fio "$work/job"
    sleep 0.7
    urge
    stolen=$(stolen) ticks=$(ticks)
    sleep "$(awk -v s="$1" 'BEGIN { print s - 1.2 }')"
    load=$(awk -v t=$(($(ticks) - ticks)) -v s="$1" 'BEGIN { printf "%.0f", t / (s - 1.2) }')
    for pid in "${pids[@]}"; do fios+=("$pid" $(pgrep -P "$pid" || true)); done
    late_fio=$(waited "${fios[@]}")
    for pid in "${pids[@]}"; do wait "$pid" || { cat "$work/fio.err" >&2; fail "fio failed"; }; done
    local took
    took=$(calls_took)
    read -r late_fio late_host < <(awk -v f="$late_fio" -v s="$1" -v t="$took" -v c=$(($(stolen) - stolen)) \
        'BEGIN { printf "%.2f %.2f\n", f / s / t * 100, c / s }')
}

# How long the kernel's workers and the emulation have waited for a processor, in percent of the model's time. Once the emulation has ended.
late_kernel() {
    sed -n "s/^waits for a processor: .*, \([0-9.]*\) % of the model's time\$/\1/p" "$work/emulate.out"
}

# ---- measuring ---------------------------------------------------------------------------------------------------

# How many nanoseconds of calls there were in each second, as those of several clients go on side by side.
calls_took() {
    fios | jq -s '[.[].jobs[] | [.read, .write][] | select(.total_ios > 0) | .clat_ns.mean * .iops] | add // 1'
}

fios() { cat "$work"/fio.[0-9]* | sed '/^fio: /d'; }

# NAME MIB P99 MEAN of each client of the last fio; clones of a job are one client.
clients() {
    fios | jq -rs '[.[].jobs[]] | group_by(.jobname)[] |
        [.[0].jobname, (map(.read.bw_bytes + .write.bw_bytes) | add / 1048576),
         (map([.read, .write][] | .clat_ns.percentile["99.000000"] // 0) | max / 1e6),
         (map([.read, .write][] | .clat_ns.mean) | max / 1e6)] | @tsv'
}

header=disk,job,scheduler,client,MiB/s,p99_ms,mean_ms,late_workers,late_fio,stolen,moments_late,trusted

# A cell that is not believed says why.
verdict() {
    local why=''
    why=$(sed -n 's/.*not to be trusted: \(.*\)/\1; /p' "$work/emulate.err" | tr -d '\n')
    awk -v l="$late_fio" 'BEGIN { exit !(l > 3) }' && why+="fio waited $late_fio %; "
    [ "$load" -le 70 ] || why+="the emulation took $load % of a processor; "
    awk -v l="$late_host" 'BEGIN { exit !(l > 3) }' && why+="$late_host % stolen; "
    echo "${why%; }"
}

measure() { # DISK JOB SCHED
    begin_disk "$1" "$3"
    job_for "$1" "$2" "$loop" "$seconds" >"$work/job"
    run_fio "$(awk -v s="$seconds" 'BEGIN { print s + 2 }')"
    end_cell
    local why moments rows
    why=$(verdict)
    moments=$(sed -n 's/.*99 % less than \([^ ]*\) late.*/\1/p' "$work/emulate.out")
    rows=$(clients | awk -v OFS=, -v cell="$1,$2,$3" -v l="$(late_kernel),$late_fio,$late_host,$moments" -v t="${why:+no}" \
        '{ printf "%s,%s,%.2f,%.3f,%.3f,%s,%s\n", cell, $1, $2, $3, $4, l, t ? t : "yes" }')
    if [ -n "$why" ] && [ $busy = no ]; then
        echo "$1 $2 $3: the machine was too busy to be believed: $why" >&2
        # It is kept beside, to be seen, and measured again next time.
        echo "$rows" >>"${results%.csv}.busy.csv"
        return
    fi
    echo "$rows" >>"$results"
    echo "$rows"
}

# What the way to an emulated disk and back takes: reads that are in its buffer, less what the model says.
measure_path() { # DISK
    begin_disk "$1" none
    job_for "$1" path "$loop" "$seconds" >"$work/job"
    run_fio "$seconds"
    end_cell
    clients | awk -v d="$1" -v l="$(late_kernel),$late_fio,$late_host,,yes" '{ printf "%s,path,none,%s,%.2f,%.4f,%.4f,%s\n", d, $1, $2, $3, $4, l }' |
        tee -a "$results"
}

has() { [ -f "$results" ] && grep -q "^$1,$2,$3," "$results"; }

jobs() {
    local file name glob
    for file in "$here"/kernel/*.fio; do
        name=$(basename "$file" .fio)
        set -f
        for glob in ${globs//,/ }; do
            # shellcheck disable=SC2053
            if [[ $name == $glob && $name != path ]]; then echo "$name"; fi
        done
        set +f
    done | sort -u
}

measure_all() {
    local disk job sched
    [ "$(id -u)" = 0 ] || skip "only root may make loop devices"
    command -v chrt >/dev/null || skip "there is no chrt"
    command -v fio >/dev/null || skip "there is no fio"
    (exec 3<>/dev/fuse) 2>/dev/null || skip "there is no FUSE (/dev/fuse)"
    [ -e /dev/loop-control ] || skip "there are no loop devices"
    [ -f "$results" ] || echo "$header" >"$results"
    for disk in ${disks//,/ }; do
        has "$disk" path none || measure_path "$disk"
        for job in $(jobs); do
            for sched in ${scheds//,/ }; do
                has "$disk" "$job" "$sched" || measure "$disk" "$job" "$sched"
            done
        done
    done
}

# ---- the lab, and both beside each other -------------------------------------------------------------------------

# The path to the emulated disk, for --host: what a read that the disk's buffer answers takes beyond what it takes in the lab, half of it in each
# direction. What goes beyond the mean in one call of a hundred is the jitter: of an exponential distribution, 3.6 times its mean.
path_of() { # DISK
    local lab
    [ -z "$path" ] || { echo "$path"; return; }
    lab=$(lab_run "$1" path none 2020 | cut -d, -f5)
    awk -F, -v d="$1" -v lab="$lab" '
        $1 == d && $2 == "path" { t = $7 * 1000 - lab; j = ($6 - $7) * 1000 / 3.6; if (j > t / 2) j = t / 2 }
        END { if (t > 0) printf "path=%dus,path_jitter=%dus", (t - j) / 2, j; else print "path=30us" }' "$here/kernel/measured.csv" "$results"
}

# CLIENT,MIB,P99,MEAN_US of each client in the lab.
lab_run() { # DISK JOB SCHED HOST [SEED]
    local sched=$3 set=()
    job_for "$1" "$2" /dev/sdx "$seconds" >"$work/lab.fio"
    case $3 in
    none) sched=noop ;;
    bfq0) sched=bfq set=(--set bfq.low_latency=0) ;;
    esac
    "$fairhead" run "$work/lab.fio" --disk "$(disk_of "$1")" --host "$4" --sched "$sched" "${set[@]}" --seed "${5:-1}" --output-format json |
        jq -r '.runs[0].jobs[] | [.jobname, ((.read.bw_bytes // 0) + (.write.bw_bytes // 0)) / 1048576,
            ([.read, .write][] | select(. != null and .total_ios > 0) | .lat_ns.percentile["99.000000"]) / 1e6,
            0, ([.read, .write][] | select(. != null and .total_ios > 0) | .lat_ns.mean) / 1e3] | @csv' |
        tr -d '"' | awk -F, '!($1 in seen) { seen[$1] = 1; print }'
}

# DISK,JOB,SCHED,CLIENT,KERNEL MIB,LAB MIB,TRUSTED of all cells.
lab_all() {
    local disk job sched way
    tail -n +2 "$results" | cut -d, -f1-3 | awk '!seen[$0]++' | while IFS=, read -r disk job sched; do
        wanted "$disk" "$job" "$sched" || continue
        way=$(cat "$work/path.$disk" 2>/dev/null || path_of "$disk" | tee "$work/path.$disk")
        lab_run "$disk" "$job" "$sched" "2020,$way" | cut -d, -f1,2 | while IFS=, read -r client mib; do
            echo "$disk,$job,$sched,$client,$mib"
        done
    done
}

# A path that takes FACTOR times as long.
longer() { # PATH FACTOR
    echo "$1" | awk -F'[=u,]' -v f="$2" '{ printf "path=%dus", $2 * f; if (NF > 4) printf ",path_jitter=%dus", $5 * f; print "" }'
}

# CLIENT,MIB of a cell's clients in each variation.
variations() { # DISK JOB SCHED
    local way
    way=$(cat "$work/path.$1")
    {
        lab_run "$1" "$2" "$3" "2020,$way" 2
        lab_run "$1" "$2" "$3" "2020,$way" 3
        lab_run "$1" "$2" "$3" "2020,$way,starts=reversed"
        lab_run "$1" "$2" "$3" "2020,$way,start_gap=3ms"
        lab_run "$1" "$2" "$3" "2020,$way,start_gap=6ms"
        lab_run "$1" "$2" "$3" "2020,$(longer "$way" 0.67)"
        lab_run "$1" "$2" "$3" "2020,$(longer "$way" 1.33)"
    } | cut -d, -f1,2
}

# What the lab gives for the clients that are off when little things are changed.
vary_all() {
    local disk job sched client kernel lab least most
    printf '\n| disk | job | scheduler | client | kernel, MiB/s | lab | least | most | the kernel is |\n|---|---|---|---|---:|---:|---:|---:|---|\n'
    while IFS=, read -r disk job sched client kernel lab; do
        [ -f "$work/vary.$disk.$job.$sched" ] || variations "$disk" "$job" "$sched" >"$work/vary.$disk.$job.$sched"
        read -r least most < <(awk -F, -v c="$client" -v o="$lab" 'BEGIN { l = m = o }
            $1 == c { if ($2 < l) l = $2; if ($2 > m) m = $2 } END { print l, m }' "$work/vary.$disk.$job.$sched")
        awk -v OFMT=%.4g -v k="$kernel" -v o="$lab" -v l="$least" -v m="$most" -v c="$disk | $job | $sched | $client" 'BEGIN {
            printf "| %s | %.4g | %.4g | %.4g | %.4g | %s |\n", c, k, o, l, m, (k >= l * 0.9 && k <= m * 1.1) ? "within" : "outside" }'
    done <"$work/off.csv"
}

wanted() { # DISK JOB SCHED
    local job
    [[ ,$disks, == *,$1,* && ,$scheds, == *,$3,* && $2 != path ]] || return 1
    for job in $(jobs); do [ "$job" != "$2" ] || return 0; done
    return 1
}

# The table, and the bars. A cell is disk, job and scheduler; its error is that of all clients together.
compare() {
    lab_all >"$work/lab.csv"
    awk -F, -v OFS=, -v lab="$work/lab.csv" -v off_file="$work/off.csv" '
        function off(a, b) { return b == 0 ? (a == 0 ? 0 : 999) : (a / b - 1) * 100 }
        function abs(x) { return x < 0 ? -x : x }
        function median(a, n,    i, j, t) {
            for (i = 2; i <= n; i++) { t = a[i]; for (j = i - 1; j > 0 && a[j] > t; j--) a[j + 1] = a[j]; a[j + 1] = t }
            return n ? (a[int((n + 1) / 2)] + a[int(n / 2) + 1]) / 2 : 0
        }
        BEGIN { while ((getline line < lab) > 0) { split(line, f, ","); ours[f[1] "," f[2] "," f[3] "," f[4]] = f[5] } }
        FNR == 1 { next }
        { cell = $1 "," $2 "," $3; key = cell "," $4 }
        !(key in ours) { next }
        !(cell in number) { number[cell] = ++cells; name[cells] = cell }
        !(key in runs) { clients[cell] = clients[cell] " " $4 }
        { runs[key]++; theirs[key] += $5; doubt[cell] = doubt[cell] || $12 == "no" }
        END {
            print "| disk | job | scheduler | kernel, MiB/s | lab | error of all, % | of each | |"
            print "|---|---|---|---|---|---:|---|---|"
            for (i = 1; i <= cells; i++) {
                cell = name[i]; split(cell, c, ","); n = split(clients[cell], list, " ")
                a = b = 0; left = right = each = ""
                for (j = 1; j <= n; j++) {
                    key = cell "," list[j]; t = theirs[key] / runs[key]; o = ours[key]
                    a += o; b += t; e = off(o, t)
                    if (abs(off(o, t)) > 10 && !doubt[cell]) print cell, list[j], t, o >off_file
                    left = left sprintf("%s%s %.4g", j > 1 ? ", " : "", list[j], t)
                    right = right sprintf("%s%.4g", j > 1 ? ", " : "", o)
                    each = each sprintf("%s%+.0f", j > 1 ? ", " : "", e)
                    if (!doubt[cell]) { total++; good += abs(e) <= 10 }
                }
                e = off(a, b)
                if (!doubt[cell]) { errors[++believed] = abs(e); within += abs(e) <= 10 }
                printf "| %s | %s | %s | %s | %s | %+.1f | %s | %s |\n", c[1], c[2], c[3], left, right, e, each, doubt[cell] ? "machine too busy" : ""
            }
            if (!believed) { print "skipped: no cell to be believed"; exit 0 }
            m = median(errors, believed)
            printf "\n%d cells, %d of them to be believed. All clients together: median error %.1f %% (bar 3), %.0f %% of the cells within 10 %% (bar 90). ", cells, believed, m, within / believed * 100
            printf "Each client: %.0f %% within 10 %% (bar 80).\n", good / total * 100
            exit !(m <= 3 && within / believed >= 0.9 && good / total >= 0.8) * 3
        }' "$results"
}

trap end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
[ $what = recorded ] || measure_all
[ $what = measure ] || { compare && kept=0 || kept=$?; [ $vary = no ] || vary_all; exit "$kept"; }
