#!/usr/bin/env bash
#
# Two PostgreSQL servers on one slow disk, each in a cgroup of its own, count the rows of equal tables at the same time. How the disk is shared
# is seen in when they end.
#
#   FAIRHEAD=target/release/fairhead examples/postgres/run.sh [--size MIB] [--disk PRESET] [--sched NAME[,NAME…]] [--weights 2:1[,…]]
#
# What to expect. A table alone takes T. With weights w:1 the heavy server gets w/(w+1) of the disk while both read, so it ends at T(w+1)/w; no
# disk time is lost, so the light one ends at 2T, whatever the weights. light/heavy = 2w/(w+1): 1 for 1:1, 4/3 for 2:1, 8/5 for 4:1. Time lost
# by going back and forth between the tables lowers it: if the disk does the share e of its work meanwhile, it is 1 + e(w-1)/(w+1).
#
# What matters for it:
# - The scheduler sees what misses the page cache, so each measurement has a new mount: its cache is empty, and shared_buffers is small. The
#   kernel reads ahead in the name of the thread that reads; nothing has to be set for that.
# - The tables are written below the mount, frozen and vacuumed, so that to read them is all that a scan does; and their files are opened one
#   after the other, which is the order in which they lie on the emulated disk: as fast to read as one another.
# - BFQ's low_latency is off: it gives who has just begun more than his weight.
#
# Exit code 0: all ratios are within 5 %, or it says `skipped: <why>`. 3: one is not. 1: something failed. It makes nothing that it does not
# take away: processes, mount, cgroups and files are its own.

size=512 disk=sata2009 scheds=cfq,bfq weights=1:1,2:1,4:1
. "$(dirname "$0")/../live.sh"
options size=size disk=disk sched=scheds weights=weights -- "$@"
unset "${!PG@}"

within=0.05            # of what is expected
waits=0.02             # so much of the time a server may wait for a processor
rows=$((size * 1024))  # eight of them fill a page of 8 KiB

# Servers refuse to be root's.
as_user() { setpriv --reuid "$user" --regid "$(id -g "$user")" --clear-groups env HOME="$work" "$@"; }

# Starts the server of a folder in a cgroup; its number is in $started.
start_server() { # FOLDER SOCKETS GROUP
    in_group "$3" setpriv --reuid "$user" --regid "$(id -g "$user")" --clear-groups \
        "$bin/postgres" -D "$1" -k "$2" >"$2/log" 2>&1 &
    started=$!
    pids+=("$started")
}

stop_servers() {
    local pid
    kill -INT "${pids[@]}"
    for pid in "${pids[@]}"; do
        wait "$pid" || fail "a server did not stop as it should"
    done
    pids=()
}

query() { as_user "$bin/psql" -h "$1" -U postgres -d postgres -qAtX -v ON_ERROR_STOP=1; }

# Until it answers a question; the right one also brings what the server has to know of the table.
await_server() { # SOCKETS PID QUESTION
    for _ in $(seq 300); do
        if query "$1" <<<"$3" >/dev/null 2>&1; then return; fi
        kill -0 "$2" 2>/dev/null || { cat "$1/log" >&2; fail "a server did not start"; }
        sleep 0.1
    done
    fail "a server does not answer"
}

make_tables() {
    as_user "$bin/initdb" -D source/a -U postgres -A trust -E UTF8 --locale=C --no-sync >initdb.log 2>&1 ||
        { cat initdb.log >&2; fail "initdb failed"; }
    # fsync: what is lost with the machine is made anew.
    cat >>source/a/postgresql.conf <<'CONF'
listen_addresses = ''
shared_buffers = 1MB
max_parallel_workers_per_gather = 0
synchronize_seqscans = off
jit = off
autovacuum = off
fsync = off
wal_level = minimal
max_wal_senders = 0
max_logical_replication_workers = 0
checkpoint_timeout = 1d
bgwriter_lru_maxpages = 0
CONF
    start_server "$work/source/a" "$work/a" "$group_a"
    await_server "$work/a" "$started" 'SELECT 1'
    query "$work/a" <<SQL
CREATE TABLE t AS SELECT n, repeat('x', 980) AS filler FROM generate_series(1, $rows) AS n;
VACUUM (FREEZE) t;
CHECKPOINT;
SQL
    table=$(query "$work/a" <<<"SELECT pg_relation_filepath('t')")
    stop_servers
    cp -a source/a source/b
}

# Shows the folder as a slow disk under a scheduler and weights, and starts the servers on it.
begin() { # SCHED WEIGHT_A WEIGHT_B
    # shellcheck disable=SC2046 # words
    begin_mount --emulate "$disk" --sched "$1" $(settings "$1") --group "$path_a,weight=$2" --group "$path_b,weight=$3"
    for file in mnt/a/"$table"* mnt/b/"$table"*; do : <"$file"; done
    local s
    for s in a b; do
        group=group_$s
        start_server "$work/mnt/$s" "$work/$s" "${!group}"
    done
    await_server "$work/a" "${pids[0]}" 'EXPLAIN SELECT count(*) FROM t'
    await_server "$work/b" "${pids[1]}" 'EXPLAIN SELECT count(*) FROM t'
    # Whoever asks now gets his answers from memory.
    moment=$(($(date +%s) + 2))
}

# Counts the rows from the moment on; prints how many seconds later it ended.
scan() { # SOCKETS
    query "$1" >"$1/answer" <<SQL
SELECT pg_sleep($moment - extract(epoch FROM clock_timestamp())) IS NULL;
SELECT extract(epoch FROM clock_timestamp()) - $moment;
SELECT count(*) FROM t;
SELECT extract(epoch FROM clock_timestamp()) - $moment;
SELECT pg_read_file('/proc/self/schedstat');
SQL
    { read -r _; read -r began; read -r count; read -r ended; read -r _ delay _; } <"$1/answer"
    [ "$count" = "$rows" ] || fail "the table has $rows rows, and $count were counted"
    awk -v t="$began" 'BEGIN { exit !(t < 0.05) }' || fail "a scan began $began s late"
    # Who had to wait for a processor was not the disk's only reader.
    awk -v ns="$delay" -v t="$ended" -v most=$waits 'BEGIN { exit !(ns / 1e9 > most * t) }' &&
        echo "a server waited $((delay / 1000000)) ms for a processor" >>busy
    echo "$ended"
}

# Ends all; whether the figures can be $trusted.
end() {
    stop_servers
    end_front mount.err
    if [ -s busy ]; then
        sort -u busy >>verdicts
        trusted=no all_trusted=no
    fi
    : >busy
}

row() { printf '%-14s %-8s %8s %8s %8s %8s %8s %7s  %s\n' "$@"; }

command -v setpriv >/dev/null || skip "there is no setpriv (util-linux)"
bin=$(for d in /usr/lib/postgresql/*/bin; do [ -x "$d/initdb" ] && [ -x "$d/psql" ] && echo "$d"; done | sort -V | tail -1)
[ -n "$bin" ] || skip "there is no PostgreSQL (apt-get install postgresql)"
user=postgres
id "$user" >/dev/null 2>&1 || user=nobody
prepare $((2 * size + 200))
mkdir a b
chown "$user" source a b
make_tables

all_within=yes
: >verdicts
: >busy
echo "two tables of $size MiB on $disk, each with its own server in its own cgroup; seconds"
row scheduler weights alone heavy light ratio theory off trusted
for sched in ${scheds//,/ }; do
    begin "$sched" 100 100
    alone=$(scan "$work/a")
    end
    row "$sched" - "$(printf %.2f "$alone")" - - - - - "$trusted"
    for pair in ${weights//,/ }; do
        w=${pair%:*} v=${pair#*:}
        begin "$sched" $((100 * w)) $((100 * v))
        scan "$work/a" >heavy & scan_a=$!
        scan "$work/b" >light || fail "a scan failed"
        wait "$scan_a" || fail "a scan failed"
        end
        read -r heavy light ratio theory off verdict < <(
            awk -v h="$(<heavy)" -v l="$(<light)" -v w="$w" -v v="$v" -v most=$within 'BEGIN {
                theory = 2 * w / (w + v); off = l / h / theory - 1
                printf "%.2f %.2f %.3f %.3f %+.1f%% ", h, l, l / h, theory, 100 * off
                print (off <= most && off >= -most) ? "yes" : "no" }')
        row "$sched" "$pair" - "$heavy" "$light" "$ratio" "$theory" "$off" "$trusted"
        [ "$verdict" = yes ] || [ "$trusted" = no ] || all_within=no
    done
done
sort -u verdicts
[ $all_within = yes ] || { echo "a ratio is off by more than 5 %" >&2; exit 3; }
[ $all_trusted = yes ] || echo "skipped: this machine was too busy to keep the disk's time"
