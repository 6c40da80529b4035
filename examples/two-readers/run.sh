#!/usr/bin/env bash
#
# Two sequential readers (fio, 64 KiB, one request at a time, around the page cache) on one slow disk, through `fairhead mount` and through
# `fairhead serve`: what each gets of what a single reader gets.
#
#   FAIRHEAD=target/release/fairhead examples/two-readers/run.sh [--seconds N] [--disk PRESET] [--front mount|serve] [--sched NAME[,NAME…]]
#
# Each row is a front, a scheduler, and how the readers differ: by weights (of cgroups, or of exports) or by I/O priority. BFQ's low_latency is
# off, for it gives who has just begun more than his weight.
#
# What to expect. Equal readers: each at least 45 % of a single one, under noop less than 15 %. Weights 100:300: 1 to 3, within 5 %. Priorities as
# the scheduler has them: CFQ's slices are 40 and 180 ms, 1 to 4.5; BFQ's weights are 10 and 80, 1 to 8; within 15 %, as the first has a whole
# slice or budget before there is a second.
#
# Exit code 0: all rows are so, or it says `skipped: <why>`. 3: one is not. 1: something failed. It makes nothing that it does not take away.

seconds=12 disk=nas2020 fronts=mount,serve scheds=noop,cfq,bfq
. "$(dirname "$0")/../live.sh"
options seconds=seconds disk=disk front=fronts sched=scheds -- "$@"

# Reads for that long.
reader() { # OUTPUT FIO'S OPTIONS…
    echo fio --name=reader --rw=read --bs=64k --size="$((256 * seconds))m" --time_based --runtime="$seconds" --minimal --output="$@"
}

# MiB a second.
rate() { awk -F';' '/^3;/ { printf "%.1f", $7 / 1024 }' "$1"; }

# Starts readers that are given as GROUP and words, and waits for all.
together() {
    local pid
    for reader in "$@"; do
        # shellcheck disable=SC2086 # words
        in_group $reader >/dev/null &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do wait "$pid" || fail "fio failed"; done
    pids=()
}

# Readers of files on the mount. Priorities count within a group, weights between groups.
mounted() { # SCHED WEIGHT_A WEIGHT_B GROUP_B PRIO_A PRIO_B
    # shellcheck disable=SC2046 # words
    begin_mount --emulate "$disk" --sched "$1" $(settings "$1") --group "$path_a,weight=$2" --group "$path_b,weight=$3"
    : <mnt/a; : <mnt/b
    local how='--ioengine=psync --direct=1 --prioclass=2'
    local readers=("$group_a $(reader a.out "$how" --filename=mnt/a --prio="$5")")
    [ "$6" = - ] || readers+=("$4 $(reader b.out "$how" --filename=mnt/b --prio="$6")")
    together "${readers[@]}"
    end_front mount.err
}

# Readers of two exports.
served() { # SCHED WEIGHT_A WEIGHT_B - - PRIO_B
    # shellcheck disable=SC2046 # words
    nice -n -20 "$fairhead" serve --socket s --emulate "$disk" --sched "$1" $(settings "$1") \
        --export a=source/a,weight="$2" --export b=source/b,weight="$3" >serve.out 2>serve.err &
    front=$!
    until [ -S s ]; do
        kill -0 "$front" 2>/dev/null || { cat serve.err >&2; fail "nothing was served"; }
        sleep 0.05
    done
    local how=--ioengine=nbd
    local readers=("$group_a $(reader a.out "$how" '--uri=nbd+unix:///a?socket=s')")
    [ "$6" = - ] || readers+=("$group_a $(reader b.out "$how" '--uri=nbd+unix:///b?socket=s')")
    together "${readers[@]}"
    end_front serve.out
}

row() { printf '%-6s %-10s %-10s %10s %10s %9s %9s %7s %7s %8s  %s\n' "$@"; }

# What is to be expected of b : a, or of each in percent of a single reader.
expected() { # SCHED READERS
    case $2:$1 in
        equal:noop) echo '<15%' ;;
        equal:*) echo '>45%' ;;
        100:300:*) echo 3 ;;
        be7,be0:cfq*) echo 4.5 ;;
        be7,be0:bfq*) echo 8 ;;
        *) echo - ;;
    esac
}

# One measurement, with what each got of a single reader's rate.
measure() { # FRONT SCHED READERS WEIGHT_A WEIGHT_B GROUP_B PRIO_A PRIO_B
    rm -f a.out b.out
    "$1" "$2" "${@:4}"
    if [ "$8" = - ]; then
        single=$(rate a.out)
        row "$1" "$2" "$3" "$single" - 100% - - - - "$trusted"
        return
    fi
    local found
    found=$(awk -v a="$(rate a.out)" -v b="$(rate b.out)" -v s="$single" -v e="$(expected "$2" "$3")" 'BEGIN {
        A = 100 * a / s; B = 100 * b / s; least = A < B ? A : B; most = A < B ? B : A
        if (e == "-") ok = 1
        else if (e == "<15%") ok = most < 15
        else if (e == ">45%") ok = least >= 45
        else { off = b / a / e - 1; ok = off * off <= (e == 3 ? 0.0025 : 0.0225) }
        printf "%.1f %.1f %.1f%% %.1f%% %.2f %s %s", a, b, A, B, b / a, e, ok ? "ok" : "MISSED"
    }')
    # shellcheck disable=SC2086 # words
    row "$1" "$2" "$3" $found "$trusted"
    case $found in *MISSED) missed=yes ;; esac
}

command -v fio >/dev/null || skip "there is no fio"
prepare 100
truncate -s 8G source/a source/b
: >verdicts
missed=no
echo "two readers of 64 KiB on $disk, $seconds s; MiB/s, and of what a single reader gets"
row front scheduler readers a b 'a of 1' 'b of 1' b:a expected is trusted
for front_name in ${fronts//,/ }; do
    case $front_name in
        mount) through=mounted ;;
        serve) through=served ;;
        *) fail "--front $front_name: mount or serve" ;;
    esac
    for sched in ${scheds//,/ }; do
        measure $through $sched one 100 100 "$group_a" 4 -
        measure $through $sched equal 100 100 "$group_a" 4 4
        [ $sched != noop ] || continue
        measure $through $sched 100:300 100 300 "$group_b" 4 4
        [ $through = served ] || measure $through $sched be7,be0 100 100 "$group_a" 7 0
    done
done
sort -u verdicts
if [ $all_trusted = no ]; then echo "skipped: this machine was too busy to keep the disk's time"; exit 0; fi
[ $missed = no ] || { echo "a row is not as expected" >&2; exit 3; }
