#!/usr/bin/env bash
# What a request costs in a kernel, in instructions: our schedulers beside the kernel's own.
#
#   bench/kernel_cost.sh [--check] [--requests N] [--processors LIST] [--scheds LIST]
#
# In a guest whose clock is its instructions (cargo xtask kernel guest), as many tasks as there are processors read 4 KiB at drawn places of null_blk,
# which completes at once: one request at a time, and 32 at a time. A row has the instructions of all processors for a request, from the program's
# call to its answer, and beside them what the scheduler adds to none; and how often our lock was waited for, and completions handed to who had it.
# The guest is the same every time, and so are the figures.
#
# --requests: of each task (4000). --processors: 1,2. --check: exit code 3 unless fh-bfq costs at most what bfq costs, and fh-noop what mq-deadline does.
#
# Needs what the kernel's tests need (docs/kernel.md); says `skipped: <why>` without.
set -euo pipefail
export LC_ALL=C
root=$(cd "$(dirname "$0")/.." && pwd)
check=0 requests=4000 processors=1,2 scheds=none,mq-deadline,fh-noop,fh-mq-deadline,kyber,fh-kyber,bfq,fh-bfq,fh-cfq,fh-as
while [ $# -gt 0 ]; do
    case $1 in
    --check) check=1 ;;
    --requests) requests=${2?} && shift ;;
    --processors) processors=${2?} && shift ;;
    --scheds) scheds=${2?} && shift ;;
    *) sed -n '2,14s/^# \{0,1\}//p' "$0" >&2; exit 1 ;;
    esac
    shift
done
work=$(mktemp -d "${TMPDIR:-/tmp}/fairhead-cost.XXXXXX")
trap 'rm -rf "$work"' EXIT

for n in ${processors//,/ }; do
    folder=$work/$n
    mkdir "$folder"
    echo "$n" >"$folder/processors"
    echo null_blk >"$folder/modules"
    cat >"$folder/init" <<INIT
#!/bin/sh
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
echo 3 > /proc/sys/kernel/printk
for m in \$(cat /modules/order); do
	[ \$m = null_blk ] && args="gb=4 irqmode=0 submit_queues=$n hw_queue_depth=64" || args=
	insmod /modules/\$m.ko \$args
done
insmod /modules/fairhead.ko
echo
# What begins with a system comes to its end.
usleep 10000000
for s in ${scheds//,/ }; do
	echo \$s > /sys/block/nullb0/queue/scheduler || echo "no \$s"
	for batch in 1 32; do echo "row \$s \$(load cost /dev/nullb0 $n $requests \$batch)"; done
	echo "lock \$s" \$(grep -E '^(contended|handed_over) ' /sys/block/nullb0/queue/iosched/fairhead_stats)
done 2> /dev/null
echo "done"
poweroff -f
INIT
    chmod +x "$folder/init"
    said=$(cargo run --quiet --manifest-path "$root/Cargo.toml" --package xtask -- kernel guest "$folder")
    case $said in skipped*) echo "$said"; exit 0 ;; esac
    tr -d '\r' <"$folder/console" >"$folder/said"
    grep -q '^done' "$folder/said" || { tail -20 "$folder/said" >&2; exit 1; }
    awk -v n="$n" '
        $1 == "row" { key = $2 " " $5 + 0; cost[key] = $9 / $6; if (!($2 in at)) { at[$2] = ++count; name[count] = $2 } }
        $1 == "lock" && $3 == "contended" { waits[$2] = $4; over[$2] = $6 }
        END {
            for (i = 1; i <= count; i++) {
                s = name[i]
                printf "%d %s %.0f %.0f %.0f %.0f %s %s\n", n, s, cost[s " 1"], cost[s " 1"] - cost["none 1"], cost[s " 32"],
                    cost[s " 32"] - cost["none 32"], s in waits ? waits[s] : "-", s in over ? over[s] : "-"
            }
        }' "$folder/said" >>"$work/rows"
done

awk -v check=$check '
    BEGIN {
        print "| processors | scheduler | one at a time | adds | 32 at a time | adds | lock waited for | handed over |"
        print "|---:|---|---:|---:|---:|---:|---:|---:|"
    }
    { printf "| %s | `%s` | %s | %s | %s | %s | %s | %s |\n", $1, $2, $3, $4, $5, $6, $7, $8; one[$1, $2] = $3; many[$1, $2] = $5; n[$1] = 1 }
    function bar(p, ours, theirs) {
        if (one[p, ours] > one[p, theirs] || many[p, ours] > many[p, theirs]) { bad = 1; print ours " costs more than " theirs " with " p " processors" > "/dev/stderr" }
    }
    END { if (check) { for (p in n) { bar(p, "fh-bfq", "bfq"); bar(p, "fh-noop", "mq-deadline") } if (bad) exit 3 } }' "$work/rows"
