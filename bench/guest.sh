#!/usr/bin/env bash
# The lab beside a kernel, client by client: the same jobs on the same modelled disks, in a guest with virtual time and in `fairhead run`.
#
#   bench/guest.sh [--measure | --recorded] [--check] [--twice] [--disks LIST] [--jobs LIST] [--scheds LIST] [--offsets N] [--cells FILE] [--tenth N]
#                  [--host SETTINGS] [--seed N] [--think TIME] [--results FILE.csv] [--lab FILE.csv] [--list PERCENT]
#
# In the guest (cargo xtask kernel guest) simdisk.ko has the disk models and the tags of their drivers, a program of ours makes the calls of the job
# files in bench/guest, and the schedulers are the kernel's own and ours (fh-...). Places are those that the lab draws. Time counts instructions, so the
# same command gives the same figures on any machine. Every cell (disk, job, scheduler, start offset) has a disk of its own. Rows, one for each client,
# go to --results (bench/guest/clients.csv) after each guest, and a cell that is there is not run again: stop it at any time. Then the lab runs the same
# cells, and `cargo xtask kernel compare` puts both beside each other.
#
# --measure: only the guest. --recorded: only the lab, beside what is in --results. LIST: names with commas; a disk may be DISK@TAGS, a scheduler
# SCHEDULER@NR_REQUESTS. --offsets N: offsets 0 to N-1 (1); with offset K the Nth job of a file starts K x N x 0.7 ms later. --cells FILE: these cells
# alone, a line each: DISK JOB SCHEDULER [OFFSET]; with --offsets, each of them with so many. --tenth N: a tenth of the cells, which N draws.
# --lab: the lab's rows are kept there, and a cell that is there is not run again. --list PERCENT: instead of the tables, the cells in which a client is
# off by more, for --cells. --think: jobs that have a think time have this one; for --results of its own, as rows do not say so.
# --seed: the lab's (1). --host: the lab's host. --check: exit code 3 unless the median error is at most 2 % and 90 % are within 5 %.
# --twice: run the guest twice; both have to say the same. The job `verify` writes, reads and compares data, and has no figures.
#
# In the jobs @RT@ is how long they run, @DELAY@ a quarter of that, @SPAN@ the size of the disk that is used and @HALF@ half of it, @LONG@, @AREA@ and
# @PART@ the sizes of regions, @APP@ where a program's file is.
#
# Needs jq, and what the kernel's tests need (docs/kernel.md); says `skipped: <why>` without.
set -euo pipefail
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
fairhead=${FAIRHEAD:-$root/target/dist/fairhead}
words=${WORDS:-$root/target/dist/examples/words}

disks=nas2020,sata2009,sata2009q,ide2004,microsd_a1,emmc51,sata_ssd,nvme
direct=seq1,seq2,seq10,rand1,rand4,deep,deepseq,seqrand,randrw,randwrite,readwrite,writers2,writerand4,think,levels,realtime,idle,film,start
buffered=bread,bread2,brand,bwrite,copy,bw_read,bw_idle,bw_think,bw_film,bw_bfilm,bw_rand4,bw_start,fsync,bw_fsync
jobs=$direct,$buffered
scheds=none,mq-deadline,kyber,bfq,fh-mq-deadline,fh-bfq
# Cells of one guest. The bytes of dirty pages from which both hosts write back, and from which writers wait: 10 and 20 % of the lab's memory.
batch=24 dirty="107374182 214748364"
host= seed=1 think= what=all check=0 twice=no offsets=1 cells= tenth= list= lab= results=$here/guest/clients.csv
fail() { echo "$0: $*" >&2; exit 1; }
skip() { echo "skipped: $*"; exit 0; }
usage() { sed -n '2,27s/^# \{0,1\}//p' "$0" >&2; exit 1; }
while [ $# -gt 0 ]; do
    case $1 in
    --measure) what=measure ;;
    --recorded) what=recorded ;;
    --check) check=1 ;;
    --twice) twice=yes ;;
    --jobs) jobs=${2?} && shift ;;
    --disks) disks=${2?} && shift ;;
    --scheds) scheds=${2?} && shift ;;
    --offsets) offsets=${2?} && shift ;;
    --cells) cells=${2?} && shift ;;
    --tenth) tenth=${2?} && shift ;;
    --list) list=${2?} && shift ;;
    --lab) lab=${2?} && shift ;;
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

# Of a disk: GiB that are used; GiB of a stream, an area, a part that is read at random, and where a program's file is; milliseconds that jobs run;
# how many calls of a client that goes anywhere are planned, and the disk and milliseconds of the run that draws them; tags of its driver.
facts_of() {
    case ${1%@*} in
    nas2020) echo 4000 64 8 20 20 2500 6000 nvme 400 32 ;;
    ide2004) echo 28 12 2 8 20 2500 6000 nvme 400 1 ;;
    sata_ssd) echo 200 64 8 20 20 150 40000 nvme 400 32 ;;
    nvme) echo 200 64 8 20 20 60 40000 nvme 400 0 ;;
    microsd_a1) echo 58 24 3 20 20 2500 40000 nvme 2500 64 ;;
    emmc51) echo 58 24 3 20 20 2500 40000 nvme 2500 64 ;;
    *) echo 200 64 8 20 20 2500 6000 nvme 400 32 ;;
    esac
}
# microsd_a1@1 is that card in a reader on USB.
tags_of() { case $1 in *@*) echo "${1#*@}" ;; *) facts_of "$1" | cut -d' ' -f10 ;; esac; }
# A name or a file for fairhead: sata2009q is sata2009 with command queueing.
disk_of() {
    [ "${1%@*}" = sata2009q ] || { echo "${1%@*}"; return; }
    printf 'base = "sata2009"\nname = "sata2009q"\nqueue_depth = 31\n' >"$work/sata2009q.toml"
    echo "$work/sata2009q.toml"
}
host=${host:-2020,processors=2023}
# The lab's disk: with the driver that has the tags.
lab_disk_of() {
    local driver
    case $1 in
    *@*)
        case ${1#*@} in 1) driver=usb ;; 32) driver=ahci ;; 64) driver=mmc ;; *) fail "$1: no driver has ${1#*@} tags; there are 1, 32 and 64" ;; esac
        printf 'base = "%s"\nname = "%s"\ndriver = "%s"\n' "${1%@*}" "${1%@*}" "$driver" | sed 's/^base = "sata2009q"/base = "sata2009"\nqueue_depth = 31/' >"$work/$1.toml"
        echo "$work/$1.toml"
        ;;
    *) disk_of "$1" ;;
    esac
}
host_of() { case $1 in *@*) echo "$host,nr_requests=${1#*@}" ;; *) echo "$host" ;; esac; } # SCHED
# The job as both read it.
job_for() { # DISK JOB OFFSET [MS]
    local span long area part app ms rest
    read -r span long area part app ms rest <<<"$(facts_of "$1")"
    ms=${4:-$ms}
    awk -v offset="$3" -v delay=$((ms * 250)) '
        /^\[/ && $0 != "[global]" { print; if (offset) printf "start_delay=%dus\n", offset * ++n * 700; next }
        /^start_delay=@DELAY@/ { printf "start_delay=%dus\n", delay + offset * n * 700; next }
        { print }' "$here/guest/$2.fio" |
        sed "s,@RT@,${ms}ms,; s,@SPAN@,${span}g,; s,@HALF@,$((span / 2))g,; s,@LONG@,${long}g,; s,@AREA@,${area}g,; s,@PART@,${part}g,; s,@APP@,${app}g,
            ${think:+; s,^thinktime=.*,thinktime=$think,}"
}
# Where each client goes, as the lab draws it: of a run past the page cache on a disk that is faster than all of these. Calls that follow each other
# are one line.
plan_for() { # DISK JOB
    local base ms most
    read -r _ _ _ _ _ _ most base ms _ <<<"$(facts_of "$1")"
    printf 'base = "%s"\nname = "fast"\ncapacity = "8000GB"\n' "$base" >"$work/fast.toml"
    job_for "$1" "$2" 0 "$ms" | sed 's,^direct=0,direct=1,; /^thinktime=/d; /^rate=/d; /^start_delay=/d; /^fsync=/d; /^invalidate=/d; /^fadvise_hint=/d' >"$work/plan.fio"
    "$fairhead" run "$work/plan.fio" --disk "$work/fast.toml" --host 2020 --sched noop --requests "$work/plan.csv" -o /dev/null
    tail -n +2 "$work/plan.csv" | sort -t, -k4,4 -k5,5n | awk -F, -v most="$most" '
        function out() { if (count) print op, from, len, count; count = 0 }
        $4 != client { out(); client = $4; calls = 0; print "client", client }
        ++calls > most && count == 1 { next }
        { o = $7 == "write" ? "w" : "r" }
        count && o == op && $12 == len && $11 == from + count * len { count++; next }
        { out(); op = o; from = $11; len = $12; count = 1 }
        END { out() }'
}

# ---- cells -------------------------------------------------------------------------------------------------------

wanted() {
    local disk job sched offset
    if [ -n "$cells" ]; then
        cat "$cells"
    else
        for disk in ${disks//,/ }; do for job in ${jobs//,/ }; do for sched in ${scheds//,/ }; do echo "$disk $job $sched"; done; done; done
    fi | awk -v tenth="$tenth" -v offsets="$offsets" '
        # The sum of a text, for a draw that is the same everywhere.
        function drawn(text,    i, sum) {
            for (i = 1; i <= length(text); i++) sum = (sum * 31 + index("abcdefghijklmnopqrstuvwxyz0123456789_-@ ", substr(text, i, 1)) + 7) % 1000003
            return int((sum * 7919 + 12345) % 1000003 / 97) % 10
        }
        NF < 3 || tenth != "" && drawn($1 " " $2 " " $3 " " tenth) { next }
        NF > 3 { print $1, $2, $3, $4; next }
        { for (i = 0; i < offsets; i++) print $1, $2, $3, i }'
}
# The cells of a file of rows.
cells_of() { [ ! -f "$1" ] || awk -F, '{ print $1, $2, $3, $11 + 0 }' "$1" | sort -u; }

# ---- the guest ---------------------------------------------------------------------------------------------------

# The rows of a guest that has ended; `end` says that a cell was whole.
rows() { # CONSOLE
    tr -d '\r' <"$1" | awk -v OFS=, '
        $1 == "cell" { cell = $2 "," $3 "," $4; offset = $5; n = 0 }
        $1 == "client" && NF == 12 {
            mean = $6 ? int($7 / $6) : 0
            row[++n] = cell "," $2 "," $3 "," $4 "," $5 "," $6 "," mean "," $8 "," offset "," $9 "," $10 "," ($6 ? int($11 / $6) : 0) "," $12
        }
        $1 == "end" { for (i = 1; i <= n; i++) print row[i] }'
}
# Runs the cells of a folder, which are of one disk.
measure() { # FOLDER
    local disk job offset files=$1
    disk=$(head -1 "$files/cells" | cut -d' ' -f1)
    cp "$root/kernel/guest/compare" "$files/init"
    echo "$dirty" >"$files/dirty"
    # A page is copied or cleared by 512 instructions, and not by one for each byte.
    echo ",-erms,-fsrm" >"$files/cpu"
    echo "init_on_alloc=0" >"$files/append"
    "$words" "$(disk_of "$disk")" >"$files/$disk.words"
    tags_of "$disk" >"$files/$disk.tags"
    while read -r job offset; do
        [ "$job" != verify ] || continue
        job_for "$disk" "$job" "$offset" >"$files/$disk.$job.$offset.fio"
        [ -f "$files/$disk.$job.plan" ] || plan_for "$disk" "$job" >"$files/$disk.$job.plan"
    done < <(cut -d' ' -f2,4 "$files/cells" | sort -u)
    # What a guest that failed has done counts; the others are run.
    if ! guest "$disk" "$files"; then
        rows "$files/console" >>"$results"
        echo "$disk" >>"$work/failed"
        return
    fi
    rows "$files/console" >"$work/rows"
    if [ $twice = yes ]; then
        guest "$disk" "$files"
        rows "$files/console" | cmp - "$work/rows" >&2 || fail "two runs of the same guest say different things"
        echo "$(wc -l <"$work/rows") rows are the same in two runs"
    fi
    cat "$work/rows" >>"$results"
    rm -rf "$files"
}
# Runs it, and looks whether it did all that it was to do.
guest() { # DISK FOLDER
    (cd "$root" && cargo xtask kernel guest "$2")
    [ -f "$2/console" ] || exit 0
    grep -q "^done: $(wc -l <"$2/cells") cells" "$2/console" && ! grep -qaE 'BUG|WARNING|Oops|^load: .*error' "$2/console" && return
    tail -n 30 "$2/console" >&2
    echo "$0: the guest with $1 has not done all cells" >&2
    return 1
}
# Runs the cells that are not in --results yet: a guest for each batch of a disk's.
measure_all() {
    local folder
    wanted | grep -Fxv -f <(cells_of "$results") >"$work/todo" || true
    awk -v most=$batch -v work="$work" '
        $1 != disk || count == most { disk = $1; count = 0; folder = sprintf("%s/guest%04d", work, ++n); system("mkdir " folder) }
        { count++; print > (folder "/cells") }' "$work/todo"
    for folder in "$work"/guest[0-9]*; do [ ! -d "$folder" ] || measure "$folder"; done
    [ ! -f "$work/failed" ] || fail "guests that have not done all cells: $(sort "$work/failed" | uniq -c | xargs)"
}

# ---- the lab, and both beside each other -------------------------------------------------------------------------

# The lab's name of a scheduler. What the kernel's own bfq does otherwise than its authors meant is a tunable.
lab_name() { case ${1%@*} in none) echo noop ;; fh-*) tmp=${1#fh-}; echo "${tmp%@*}" ;; *) echo "${1%@*}" ;; esac; }
# What the guest's processor takes for a call, in ns, besides what the lab's host of 2023 has: fitted on rand1 of sata_ssd, a figure for each scheduler.
# And for each 4 KiB that a call moves past the page cache: fitted on seq1 of sata_ssd without a scheduler.
think_of() {
    case ${1%@*} in
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
# Through the page cache: fitted on bread2 of nvme under fh-mq-deadline, and on bwrite of nvme under mq-deadline.
cached_read_ns=3400 cached_write_ns=4630
# How late the calls of clients with a rate were: rows of client, mean and largest. A call past the page cache begins when its first request is made;
# of others nothing is known.
lateness() { # JOB.fio REQUESTS.csv STARTS
    awk -F, '
        FILENAME ~ /\.fio$/ {
            if (/^\[/) section = substr($0, 2, length($0) - 2)
            if (/^direct=0/) is_cached[section]
            if (/^rate=/) { sub("rate=", ""); rate[section] = $0 * (/m$/ ? 1048576 : /k$/ ? 1024 : 1) }
            if (/^bs=/) { sub("bs=", ""); size[section] = $0 * 1024 }
            next
        }
        FILENAME ~ /starts$/ { start[$1] = $2; next }
        !($4 in rate) || $4 in is_cached || $5 in seen { next }
        { seen[$5]; due = start[$4] + calls[$4]++ * size[$4] / rate[$4] * 1e9; late = $13 > due ? $13 - due : 0; sum[$4] += late; if (late > max[$4]) max[$4] = late }
        END { for (c in calls) printf "%s,%d,%d\n", c, sum[c] / calls[c], max[c] }' "$1" "$3" <(tail -n +2 "$2" | sort -t, -s -k13,13n)
}
lab_run() { # DISK JOB SCHED OFFSET
    local more=()
    job_for "$1" "$2" "$4" | sed "s,^\[global\],&\n#!fh_cpus=1\n#!fh_think=$(think_of "$3")ns\n#!fh_cpu=${page_ns}ns," |
        awk -v read=$cached_read_ns -v write=$cached_write_ns '
            /^\[/ { cached = $0 == "[global]" ? 0 : always; in_global = $0 == "[global]" }
            /^direct=0/ { cached = 1; if (in_global) always = 1 }
            { print }
            /^rw=/ && cached { printf "#!fh_cpu=%dns\n", /write/ ? write : read }' >"$work/lab.fio"
    ! grep -q '^rate=' "$work/lab.fio" || more=(--requests "$work/requests.csv")
    "$fairhead" run "$work/lab.fio" --disk "$(lab_disk_of "$1")" --host "$(host_of "$3")" --seed "$seed" --sched "$(lab_name "$3")" "${more[@]}" \
        --output-format json -o "$work/lab.json"
    : >"$work/late"
    if [ ${#more[@]} -gt 0 ]; then
        jq -r '.runs[0].clients[] | [.jobname, .start_ns] | join(",")' "$work/lab.json" >"$work/starts"
        lateness "$work/lab.fio" "$work/requests.csv" "$work/starts" >"$work/late"
    fi
    jq -r --arg cell "$1,$2,$3" --arg offset "$4" --rawfile late "$work/late" '
        ($late | split("\n") | map(split(",") | select(length == 3) | {key: .[0], value: .[1:]}) | from_entries) as $late |
        .runs[0] | (.clients | group_by(.jobname) | map({key: .[0].jobname, value: length}) | from_entries) as $n |
        .clients[] | (.jobname + (if $n[.jobname] > 1 then ".\(.clone)" else "" end)) as $name |
        (if .read.total_ios > 0 then .read else .write end) as $waits | .sync as $sync |
        (.read.total_ios + .write.total_ios) as $calls |
        def of($l; $p): ($l.percentile[$p] // 0);
        ([$cell, $name, .start_ns, .elapsed_ns, (.read.io_bytes + .write.io_bytes), $calls,
            (if $calls > 0 then ((.read.lat_ns.mean * .read.total_ios + .write.lat_ns.mean * .write.total_ios) / $calls | floor) else 0 end),
            ([.read.lat_ns.max, .write.lat_ns.max] | max), $offset, of($waits.lat_ns; "50.000000"), of($waits.lat_ns; "99.000000"),
            ($late[.jobname][0] // "-"), ($late[.jobname][1] // "-")] | join(",")),
        (if $sync.total_ios > 0 then [$cell, $name + "/sync", .start_ns, .elapsed_ns, 0, $sync.total_ios, ($sync.lat_ns.mean | floor), $sync.lat_ns.max,
            $offset, of($sync.lat_ns; "50.000000"), of($sync.lat_ns; "99.000000"), 0, 0] | join(",") else empty end)' "$work/lab.json"
}
lab_all() {
    local disk job sched offset
    wanted | grep -Fx -f <(cells_of "$results") | grep -v ' verify ' | grep -Fxv -f <(cells_of "$1") | while read -r disk job sched offset; do
        lab_run "$disk" "$job" "$sched" "$offset" >"$work/row"
        cat "$work/row" >>"$1"
    done
}
compare() {
    local rows=${lab:-$work/lab.csv}
    [ -f "$rows" ] || : >"$rows"
    lab_all "$rows"
    # The cells that were asked for, of both.
    local file
    for file in "$rows" "$results"; do
        awk -F, 'NR == FNR { asked[$0]; next } ($1 " " $2 " " $3 " " $11 + 0) in asked' <(wanted) "$file" >"$work/asked.$([ "$file" = "$results" ] && echo guest || echo lab)"
    done
    (cd "$root" && cargo xtask kernel compare "$work/asked.lab" "$work/asked.guest" ${list:+--list "$list"} $([ $check = 0 ] || echo --check))
}

[ $what = recorded ] || measure_all
[ $what = measure ] || compare
