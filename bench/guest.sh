#!/usr/bin/env bash
# The lab beside a kernel: the same jobs on the same modelled disks, in a guest with virtual time and in `fairhead run`.
#
#   bench/guest.sh [--measure | --recorded] [--check] [--twice] [--jobs LIST] [--disks LIST] [--scheds LIST] [--host SETTINGS] [--seed N] [--think TIME] [--results FILE.csv]
#
# In the guest (cargo xtask kernel guest) simdisk.ko has the disk models, a program of ours makes the calls of the job files in bench/guest, and
# the schedulers are the kernel's own and ours (fh-...). Places are those that the lab draws. Time counts instructions, so the same command gives the
# same figures on any machine. Every cell (disk, job, scheduler) has a disk of its own. Rows go to --results (bench/guest/measured.csv), and a cell
# that is there is not run again. Then the lab runs the same files, and a table puts both beside each other: bandwidth of all clients together, and in
# the job `start` how long the program took to start.
#
# --measure: only the guest. --recorded: only the lab, beside what is in --results. LIST: names with commas.
# --think: jobs that have a think time have this one; for --results of its own, as rows do not say so. --seed: the lab's (1).
# --host: the lab's host (2023); what its one processor takes is below. --check: exit code 3 unless the median error is at most 2 % and 90 % are within 5 %.
# --twice: run the guest twice; both have to say the same. The job `verify` writes, reads and compares data, and has no figures.
#
# @RT@, @SPAN@, @HALF@, @DELAY@ in the jobs: how long, the size of the disk that is used, half of it, and a quarter of the time.
#
# Needs jq, and what the kernel's tests need (docs/kernel.md); says `skipped: <why>` without.
set -euo pipefail
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
fairhead=${FAIRHEAD:-$root/target/dist/fairhead}
words=${WORDS:-$root/target/dist/examples/words}

disks=nas2020,sata2009q,sata_ssd
jobs=seq1,seq2,seq10,rand1,deep,seqrand,randrw,readwrite,think,idle,film,start
scheds=none,mq-deadline,kyber,bfq,fh-noop,fh-mq-deadline,fh-kyber,fh-bfq,fh-cfq,fh-as
host=2023 seed=1 think= what=all check=0 twice=no results=$here/guest/measured.csv
fail() { echo "$0: $*" >&2; exit 1; }
skip() { echo "skipped: $*"; exit 0; }
usage() { sed -n '2,21s/^# \{0,1\}//p' "$0" >&2; exit 1; }
while [ $# -gt 0 ]; do
    case $1 in
    --measure) what=measure ;;
    --recorded) what=recorded ;;
    --check) check=1 ;;
    --twice) twice=yes ;;
    --jobs) jobs=${2?} && shift ;;
    --disks) disks=${2?} && shift ;;
    --scheds) scheds=${2?} && shift ;;
    --host) host=${2?} && shift ;;
    --seed) seed=${2?} && shift ;;
    --think) think=${2?} && shift ;;
    --results) results=${2?} && shift ;;
    *) usage ;;
    esac
    shift
done
command -v jq >/dev/null || skip "there is no jq"
[ -x "$fairhead" ] || fail "no $fairhead; build it with cargo build --profile dist, or set FAIRHEAD"
work=$(mktemp -d "${TMPDIR:-/tmp}/fairhead-guest.XXXXXX")
trap 'rm -rf "$work"' EXIT

# ---- disks and jobs ----------------------------------------------------------------------------------------------

span_of() { case $1 in nas2020) echo 4000 ;; *) echo 200 ;; esac; }
ms_of() { case $1 in sata_ssd) echo 150 ;; *) echo 2500 ;; esac; }
# How many calls of a client that goes anywhere are planned.
most_of() { case $1 in sata_ssd) echo 40000 ;; *) echo 6000 ;; esac; }
# A name or a file for fairhead: sata2009q is sata2009 with command queueing.
disk_of() {
    [ "$1" = sata2009q ] || { echo "$1"; return; }
    printf 'base = "sata2009"\nname = "sata2009q"\nqueue_depth = 31\n' >"$work/sata2009q.toml"
    echo "$work/sata2009q.toml"
}
# The job as both read it.
job_for() { # DISK JOB [MS]
    local span ms=${3:-$(ms_of "$1")}
    span=$(span_of "$1")
    sed "s,@RT@,${ms}ms,; s,@SPAN@,${span}g,; s,@HALF@,$((span / 2))g,; s,@DELAY@,$((ms / 4))ms,${think:+; s,^thinktime=.*,thinktime=$think,}" \
        "$here/guest/$2.fio"
}
# Where each client goes, as the lab draws it: of a run on a disk that is faster than all of these. Calls that follow each other are one line.
plan_for() { # DISK JOB
    printf 'base = "sata_ssd"\nname = "fast"\ncapacity = "8000GB"\n' >"$work/fast.toml"
    job_for "$1" "$2" 400 >"$work/plan.fio"
    "$fairhead" run "$work/plan.fio" --disk "$work/fast.toml" --host 2020 --sched noop --requests "$work/plan.csv" -o /dev/null
    tail -n +2 "$work/plan.csv" | sort -t, -k4,4 -k5,5n | awk -F, -v most="$(most_of "$1")" '
        function out() { if (count) print op, from, len, count; count = 0 }
        $4 != client { out(); client = $4; calls = 0; print "client", client }
        ++calls > most && count == 1 { next }
        { o = $7 == "write" ? "w" : "r" }
        count && o == op && $12 == len && $11 == from + count * len { count++; next }
        { out(); op = o; from = $11; len = $12; count = 1 }
        END { out() }'
}

# ---- the guest ---------------------------------------------------------------------------------------------------

has() { [ -f "$results" ] && grep -q "^$1,$2,$3," "$results"; }
# The rows of a guest that has ended; `end` says that a cell was whole.
rows() { # CONSOLE
    tr -d '\r' <"$1" | awk -v OFS=, '
        $1 == "cell" { cell = $2 "," $3 "," $4; n = 0 }
        $1 == "client" && NF == 8 { row[++n] = cell "," $2 "," $3 "," $4 "," $5 "," $6 "," ($6 ? int($7 / $6) : 0) "," $8 }
        $1 == "end" { for (i = 1; i <= n; i++) print row[i] }'
}
measure() { # DISK
    local job sched files=$work/$1
    mkdir -p "$files"
    for job in ${jobs//,/ }; do
        for sched in ${scheds//,/ }; do
            has "$1" "$job" "$sched" || echo "$1 $job $sched" >>"$files/cells"
        done
    done
    [ -f "$files/cells" ] || return 0
    cp "$root/kernel/guest/compare" "$files/init"
    "$words" "$(disk_of "$1")" >"$files/$1.words"
    for job in $(cut -d' ' -f2 "$files/cells" | uniq); do
        [ "$job" != verify ] || continue
        job_for "$1" "$job" >"$files/$job.fio"
        plan_for "$1" "$job" >"$files/$1.$job.plan"
    done
    guest "$1" "$files"
    rows "$files/console" >"$work/rows"
    if [ $twice = yes ]; then
        guest "$1" "$files"
        rows "$files/console" | cmp - "$work/rows" >&2 || fail "two runs of the same guest say different things"
        echo "$(wc -l <"$work/rows") rows are the same in two runs"
    fi
    cat "$work/rows" >>"$results"
}
# Runs it, and looks whether it did all that it was to do.
guest() { # DISK FOLDER
    (cd "$root" && cargo xtask kernel guest "$2")
    [ -f "$2/console" ] || exit 0
    grep -q "^done: $(wc -l <"$2/cells") cells" "$2/console" && ! grep -qaE 'BUG|WARNING|Oops|^load: .*error' "$2/console" && return
    rows "$2/console" >>"$results"
    tail -n 30 "$2/console" >&2
    fail "the guest with $1 has not done all cells"
}

# ---- the lab, and both beside each other -------------------------------------------------------------------------

# The lab's name of a scheduler. What the kernel's own bfq does otherwise than its authors meant is a tunable.
lab_name() { case $1 in none) echo noop ;; fh-*) echo "${1#fh-}" ;; *) echo "$1" ;; esac; }
# What the guest's processor takes for a call, in ns, besides what the lab's host of 2023 has: fitted on rand1 of sata_ssd, a figure for each scheduler.
# And for each 4 KiB that a call moves past the page cache: fitted on seq1 of sata_ssd without a scheduler.
think_of() {
    case $1 in
    none) echo 7200 ;;
    mq-deadline) echo 7800 ;;
    kyber) echo 8150 ;;
    bfq) echo 9150 ;;
    fh-bfq) echo 7900 ;;
    fh-noop) echo 8850 ;;
    fh-mq-deadline) echo 8300 ;;
    fh-kyber) echo 8350 ;;
    fh-cfq) echo 10000 ;;
    *) echo 9650 ;;
    esac
}
page_ns=600
lab_run() { # DISK JOB SCHED
    job_for "$1" "$2" | sed "s,^\[global\],&\n#!fh_cpus=1\n#!fh_think=$(think_of "$3")ns\n#!fh_cpu=${page_ns}ns," >"$work/lab.fio"
    "$fairhead" run "$work/lab.fio" --disk "$(disk_of "$1")" --host "$host" --seed "$seed" --sched "$(lab_name "$3")" --output-format json |
        jq -r --arg cell "$1,$2,$3" '.runs[0] | (.clients | group_by(.jobname) | map({key: .[0].jobname, value: length}) | from_entries) as $n |
            .clients[] | [$cell, (.jobname + (if $n[.jobname] > 1 then ".\(.clone)" else "" end)), .start_ns, .elapsed_ns,
            (.read.io_bytes + .write.io_bytes), (.read.total_ios + .write.total_ios)] | join(",")'
}
lab_all() {
    local disk job sched
    cut -d, -f1-3 "$results" | awk '!seen[$0]++' | while IFS=, read -r disk job sched; do
        [[ ,$disks, == *,$disk,* && ,$jobs, == *,$job,* && ,$scheds, == *,$sched,* ]] || continue
        lab_run "$disk" "$job" "$sched"
    done
}
compare() {
    lab_all >"$work/lab.csv"
    awk -F, -v check=$check -f "$here/guest/table.awk" "$work/lab.csv" "$results"
}

[ $what = recorded ] || for disk in ${disks//,/ }; do measure "$disk"; done
[ $what = measure ] || compare
