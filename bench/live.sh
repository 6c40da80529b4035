#!/bin/bash
# Measures `serve` and `mount` beside others, one after the other, round after round: reads a second, and CPU time for each.
#
#   bench/live.sh [ROUNDS [SECONDS [nbd|mount|names|buffered|all|rows]]]
#
# `rows` has `serve` beside nbdkit's file plugin row by row: sizes, reads and writes, depths, one connection, two on two exports, four with bfq. In
# each round, each row is measured with ours, with an earlier build (FAIRHEAD_BASE=PATH; without it, with ours and `--threads 0`), and with nbdkit, one after
# the other; what is printed is the median of the rounds, and of the quotients within a round. PRIORITY='chrt --rr 1' before all programs has them at
# real-time priority. `PRIORITY= bench/live.sh 3 1 rows` takes about 4 minutes.
# All files are in memory, so what is measured is what docs/serve.md says of those: small requests done by a call, large reads as pages, large writes by workers.
# On a machine that others use, only runs at real-time priority mean anything: at normal priority a server with many threads gets a larger share.
#
# The same file in memory and the same client for all. NBD: 4 KiB at random places by one connection (the example nbd_load), 64 under way
# and one. FUSE: 4 KiB direct reads by fio's psync, one thread, two and four, with PRIORITY as for `rows`;
# ours takes FUSE over io_uring if that is switched on (docs/mount.md), and /dev/fuse in a row of its own. The order is turned round every other round. Prints Markdown:
# median, least and most of the rounds; CPU time is that of the server, and of server and client together (for fio: its start as well).
# `libfuse3-dev` has the sources of its examples, which are compiled here.
#
# `names` (as root) has files created, looked at and removed by one process and by two (the example name_load), beside passthrough_ll. A mount serves all
# users, so the kernel has to check rights (`default_permissions`), for which it asks for the folder's attributes again after each file that came or went.
# passthrough_ll does so only if told, and without that option any user may do anything; both are measured. CPU time is that of the three steps together.
#
# `buffered` has the file read through the kernel's page cache, from the beginning to the end in pieces of 128 KiB (dd), and forgotten before each pass,
# beside passthrough_hp, with and without splice. Debian's package lacks the source of that one: `apt-get source fuse3` has it, in the folder `example`, which
# LIBFUSE_EXAMPLES names.
set -eu

rounds=${1:-5} seconds=${2:-2} what=${3:-all}
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
case $what in nbd | mount | names | buffered | all | rows) ;; *) echo "bench/live.sh: '$what' is none of nbd, mount, names, buffered, all, rows" >&2; exit 1 ;; esac
fairhead=${FAIRHEAD:-$target/dist/fairhead}
load=${NBD_LOAD:-$target/dist/examples/nbd_load}
[ -x "$fairhead" ] || cargo build --profile dist --package fairhead
[ -x "$load" ] || cargo build --profile dist --package fairhead-live --example nbd_load
name_load=${NAME_LOAD:-$target/dist/examples/name_load}
[ "$what" != names ] || [ -x "$name_load" ] || cargo build --profile dist --package fairhead-live --example name_load
for program in fio nbdkit qemu-nbd; do
    command -v "$program" >/dev/null || { echo "bench/live.sh: there is no $program" >&2; exit 1; }
done

dir=$(mktemp -d /dev/shm/fairhead-bench.XXXXXX)
server=
end() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    mountpoint -q "$dir/mount" && umount -l "$dir/mount"
    wait
    rm -r "$dir"
}
trap end EXIT
mkdir "$dir/files" "$dir/mount"
file=$dir/files/disk
head -c 512M /dev/urandom >"$file"

# CPU time of the server so far, in ticks of 10 ms.
ticks() { awk '{ print $14 + $15 }' "/proc/$server/stat"; }

# measured CASE LOAD COMMAND…: the command prints how many operations there were, and how long they took unless that was set.
measured() {
    local name=$1 under=$2 before after count took used
    shift 2
    before=$(ticks)
    TIMEFORMAT='%U %S'
    { time "$@" >"$dir/count" 2>"$dir/errors"; } 2>"$dir/time" || cat "$dir/errors" >&2
    after=$(ticks)
    read -r count took <"$dir/count"
    used=$(awk '{ print ($1 + $2) * 1e6 }' "$dir/time")
    awk -v c="$count" -v s="${took:-$seconds}" -v t=$((after - before)) -v u="$used" -v n="$name" -v l="$under" \
        'BEGIN { print n "\t" l "\t" c / s "\t" t * 1e4 / c "\t" (t * 1e4 + u) / c }' >>"$dir/rows"
}

until_there() {
    for _ in $(seq 250); do "$@" && return; sleep 0.02; done
    echo "bench/live.sh: a server does not start" >&2
    exit 1
}

nbd_reads() { "$load" "$dir/socket" "$1" "$seconds" | awk -v s="$seconds" '{ print $3 * s }'; }

# nbd CASE COMMAND…: serves the file at the socket.
nbd() {
    local name=$1
    shift
    rm -f "$dir/socket"
    "$@" >/dev/null 2>&1 &
    server=$!
    until_there test -S "$dir/socket"
    sleep 0.1
    for depth in 64 1; do measured "$name" "depth $depth" nbd_reads "$depth"; done
    kill "$server"
    wait "$server" || true
    server=
}

file_reads() {
    $priority fio --name=reads --filename="$1" --size=512m --rw=randread --bs=4k --direct=1 --ioengine=psync --thread --numjobs="$2" \
        --group_reporting --time_based --runtime="$seconds" --output-format=terse | cut -d';' -f8 | awk -v s="$seconds" '{ print $1 * s }'
}

# Reads the file from the beginning to the end, until the time is over; what the kernel remembers of it goes before each pass.
buffered_reads() {
    local passes=0 took=0
    until awk -v t="$took" -v s="$seconds" 'BEGIN { exit t < s }'; do
        dd if="$1" of=/dev/null iflag=nocache count=0 status=none
        took=$(LC_ALL=C $priority dd if="$1" of=/dev/null bs=128k 2>&1 | awk -v t="$took" 'END { sub(/.*copied, /, ""); print t + $1 }')
        passes=$((passes + 1))
    done
    echo "$((passes * 4096)) $took"
}

# name_rates CASE PROCESSES: three rows.
name_rates() {
    local before after steps step i=0 files=5000
    before=$(ticks)
    read -r -a steps <<<"$($priority "$name_load" "$dir/mount" "$2" "$files")"
    after=$(ticks)
    for step in create stat unlink; do
        awk -v n="$1" -v l="$step, processes $2" -v r="${steps[i]}" -v t=$((after - before)) -v c=$((3 * $2 * files)) \
            'BEGIN { print n "\t" l "\t" r "\t" t * 1e4 / c "\t" "nan" }' >>"$dir/rows"
        i=$((i + 1))
    done
}

# mounted CASE PATH COMMAND…: shows the file at that path below the mount.
mounted() {
    local name=$1 path=$2
    shift 2
    $priority "$@" >/dev/null 2>&1 &
    server=$!
    until_there mountpoint -q "$dir/mount"
    case $what in
        names) for processes in 1 2; do name_rates "$name" "$processes"; done ;;
        buffered) measured "$name" "128k, buffered" buffered_reads "$dir/mount/$path" ;;
        *) for threads in 1 2 4; do measured "$name" "threads $threads" file_reads "$dir/mount/$path" "$threads"; done ;;
    esac
    umount "$dir/mount"
    wait "$server" || true
    server=
}

nbd_case() {
    case $1 in
        1) nbd 'serve, noop' "$fairhead" serve --export "disk=$file" --socket "$dir/socket" --sched noop ;;
        2) nbd 'serve, bfq' "$fairhead" serve --export "disk=$file" --socket "$dir/socket" --sched bfq ;;
        3) nbd 'nbdkit file' nbdkit -f -U "$dir/socket" file "$file" ;;
        4) nbd 'qemu-nbd, cached' qemu-nbd -t -k "$dir/socket" -f raw --aio=io_uring --cache=writeback "$file" ;;
        5) nbd 'qemu-nbd, direct' qemu-nbd -t -k "$dir/socket" -f raw --aio=io_uring --cache=none "$file" ;;
    esac
}

examples=/usr/share/doc/libfuse3-dev/examples
mount_case() {
    case $1 in
        1) mounted 'mount, noop' disk "$fairhead" mount "$dir/files" "$dir/mount" --sched noop ;;
        4) mounted 'mount, noop, /dev/fuse' disk "$fairhead" mount "$dir/files" "$dir/mount" --sched noop --fuse-transport dev ;;
        5) mounted 'mount, bfq' disk "$fairhead" mount "$dir/files" "$dir/mount" --sched bfq ;;
        2) mounted 'passthrough_ll' disk "$dir/passthrough_ll" -f -o "source=$dir/files" "$dir/mount" ;;
        3) mounted 'passthrough' "${file#/}" "$dir/passthrough" -f "$dir/mount" ;;
    esac
}

# names_case NUMBER, buffered_case NUMBER: what is measured beside `mount`, and that itself.
names_case() {
    case $1 in
        1) mount_case 1 ;;
        2) mounted 'passthrough_ll, default_permissions' disk "$dir/passthrough_ll" -f -o "source=$dir/files,default_permissions,allow_other" "$dir/mount" ;;
        3) mount_case 2 ;;
        4) mount_case 4 ;;
    esac
}

buffered_case() {
    case $1 in
        1) mount_case 1 ;;
        2) mounted 'passthrough_hp' disk "$dir/passthrough_hp" --foreground "$dir/files" "$dir/mount" ;;
        3) mounted 'passthrough_hp, no splice' disk "$dir/passthrough_hp" --foreground --nosplice "$dir/files" "$dir/mount" ;;
        4) mount_case 4 ;;
    esac
}

# row SERVER DEPTH BYTES OP CONNECTIONS SCHED: one figure of one round.
row() {
    local server_name=$1 depth=$2 bytes=$3 op=$4 connections=$5 sched=$6 exports=disk,other program=$fairhead more=() count
    case $connections in 1) exports=disk ;; 4) exports=disk,other,disk,other ;; esac
    rm -f "$dir/socket"
    case $server_name in
        nbdkit)
            exports=${exports//[a-z]/}
            $priority nbdkit -f -U "$dir/socket" file "$file" >/dev/null 2>&1 &
            ;;
        *)
            if [ "$server_name" = before ]; then
                if [ -n "${FAIRHEAD_BASE:-}" ]; then program=$FAIRHEAD_BASE; else more=(--threads 0); fi
            fi
            $priority "$program" serve --export "disk=$file" --export "other=$dir/files/other" --socket "$dir/socket" --sched "$sched" \
                "${more[@]}" >/dev/null 2>&1 &
            ;;
    esac
    server=$!
    until_there test -S "$dir/socket"
    sleep 0.1
    count=$($priority "$load" "$dir/socket" "$depth" "$seconds" "$exports" "$bytes" "$op" | awk '{ print $3 }')
    kill "$server"
    wait "$server" || true
    server=
    printf '%s\t%s %s, depth %s, connections %s, %s\t%s\n' "$server_name" "$bytes" "$op" "$depth" "$connections" "$sched" "$count" >>"$dir/rows"
}

rows() {
    local round server_name line
    cp "$file" "$dir/files/other"
    for round in $(seq "$rounds"); do
        while read -r -a line; do
            for server_name in $([ $((round % 2)) = 1 ] && echo ours before nbdkit || echo nbdkit before ours); do
                row "$server_name" "${line[@]}" </dev/null
            done
        done <<'END'
1 4096 read 1 noop
4 4096 read 1 noop
16 4096 read 1 noop
64 4096 read 1 noop
16 4096 write 1 noop
1 65536 read 1 noop
16 65536 read 1 noop
16 65536 write 1 noop
4 1048576 read 1 noop
4 1048576 write 1 noop
16 4096 read 4 bfq
32 4096 read 2 noop
16 65536 read 2 noop
4 1048576 read 2 noop
END
    done
    echo "| row | ours, a second | nbdkit | ours / nbdkit | ours / before |"
    echo "|---|---:|---:|---:|---:|"
    awk -F'\t' '
        function median(v, n,    i, j, t) {
            for (i = 2; i <= n; i++) for (j = i; j > 1 && v[j] < v[j - 1]; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
            return (v[int((n + 1) / 2)] + v[int(n / 2) + 1]) / 2
        }
        { if (!($2 in seen)) { seen[$2]; order[++keys] = $2 } n[$1, $2]++; rate[$1, $2, n[$1, $2]] = $3 }
        END {
            for (k = 1; k <= keys; k++) {
                key = order[k]; m = n["ours", key]
                for (i = 1; i <= m; i++) {
                    o = rate["ours", key, i]; a[i] = o; b[i] = rate["nbdkit", key, i]
                    c[i] = o / (b[i] > 0 ? b[i] : 1); d[i] = o / (rate["before", key, i] > 0 ? rate["before", key, i] : 1)
                }
                printf "| %s | %.0f | %.0f | %.2f | %.2f |\n", key, median(a, m), median(b, m), median(c, m), median(d, m)
            }
        }' "$dir/rows"
}

: >"$dir/rows"
priority=${PRIORITY:-}
if [ "$what" = rows ]; then
    rows
    exit
fi
if [ "$what" = buffered ]; then
    hp=${LIBFUSE_EXAMPLES:-$examples}/passthrough_hp.cc
    [ -f "$hp" ] || { echo "bench/live.sh: there is no $hp; LIBFUSE_EXAMPLES names the folder 'example' of libfuse's source (apt-get source fuse3)" >&2; exit 1; }
    # shellcheck disable=SC2046 # flags are words
    c++ -O2 -w "$hp" $(pkg-config --cflags --libs fuse3) -o "$dir/passthrough_hp"
elif [ "$what" != nbd ]; then
    for example in passthrough_ll passthrough; do
        # shellcheck disable=SC2046 # flags are words
        cc -O2 -w "-I$examples" "$examples/$example.c" $(pkg-config --cflags --libs fuse3) -o "$dir/$example"
    done
fi
for round in $(seq "$rounds"); do
    if [ "$what" = names ] || [ "$what" = buffered ]; then
        for i in $([ $((round % 2)) = 1 ] && seq 4 || seq 4 -1 1); do "${what}_case" "$i"; done
        continue
    fi
    [ "$what" = mount ] || for i in $([ $((round % 2)) = 1 ] && seq 5 || seq 5 -1 1); do nbd_case "$i"; done
    [ "$what" = nbd ] || for i in $([ $((round % 2)) = 1 ] && seq 5 || seq 5 -1 1); do mount_case "$i"; done
done

per=reads
[ "$what" != names ] || per=files
echo "| | load | $per a second | beside ours, round by round | server, us each | all, us each |"
echo "|---|---|---:|---:|---:|---:|"
awk -F'\t' -v rounds="$rounds" '
    # Median, least and most, with so many decimals.
    function spread(values, n, decimals,    i, j, t) {
        for (i = 2; i <= n; i++) for (j = i; j > 1 && values[j] < values[j - 1]; j--) { t = values[j]; values[j] = values[j - 1]; values[j - 1] = t }
        return sprintf("%.*f (%.*f to %.*f)", decimals, (values[int((n + 1) / 2)] + values[int(n / 2) + 1]) / 2, decimals, values[1], decimals, values[n])
    }
    { key = $1 "\t" $2; if (!(key in n)) order[++keys] = key; n[key]++; rate[key, n[key]] = $3; server[key, n[key]] = $4; all[key, n[key]] = $5 }
    END {
        for (k = 1; k <= keys; k++) {
            key = order[k]; split(key, part, "\t")
            ours = (part[2] ~ /^depth/ ? "serve, noop" : "mount, noop") "\t" part[2]
            for (i = 1; i <= n[key]; i++) { a[i] = rate[key, i]; b[i] = rate[ours, i] / rate[key, i]; c[i] = server[key, i]; d[i] = all[key, i] }
            # Of ours under another scheduler it is the other way round: how much of noop it keeps.
            if (part[1] ~ /^serve, bfq/) for (i = 1; i <= n[key]; i++) b[i] = 1 / b[i]
            beside = key == ours ? "" : spread(b, n[key], 2)
            # Of names, the time of the client is that of several steps.
            both = d[1] == "nan" ? "" : spread(d, n[key], 1)
            printf "| %s | %s | %s | %s | %s | %s |\n", part[1], part[2], spread(a, n[key], 0), beside, spread(c, n[key], 1), both
        }
    }' "$dir/rows"
