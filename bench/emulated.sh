# Sourced by kernel.sh, record.sh and try.sh: a disk that `fairhead emulate` shows, with a loop device on it that has one of the kernel's schedulers,
# and priorities that keep other programs from delaying it.
#
# Wants `here`, the folder of the benches, `fairhead`, and `work`, a folder of its own. begin_disk sets `loop` and `server`; end_disk ends both.
# What emulate says is in $work/emulate.out and $work/emulate.err.
loop='' server=''

skip() { echo "skipped: $*"; exit 0; }
fail() { echo "$0: $*" >&2; exit 1; }

# The kernel's workers that a request meets: kblockd's and loop's.
workers() { ps -eLo tid=,comm= | awk '$2 ~ /^kworker\/(u|[0-9]+:[0-9]+H)/ { print $1 }'; }
workers_to() { # POLICY PRIORITY
    local tid
    for tid in $(workers); do chrt "$1" -p "$2" "$tid" 2>/dev/null || true; done
}
# Threads of a process, those of its io_uring workers included.
threads() { ls "/proc/$1/task" 2>/dev/null || true; }

span_of() { case $1 in nas2020) echo 4000 ;; *) echo 200 ;; esac; }
# A disk's name or file for fairhead.
disk_of() {
    [ "$1" = sata2009q ] || { echo "$1"; return; }
    [ -f "$work/sata2009q.toml" ] ||
        "$fairhead" show sata2009 | sed 's/^queue_depth *=.*//; $a queue_depth = 31' >"$work/sata2009q.toml"
    echo "$work/sata2009q.toml"
}
is_rotational() { case $1 in plextor_m5s|sata_ssd|nvme) echo 0 ;; *) echo 1 ;; esac; }


# The job as fio and the lab read it. The name of the device is what differs.
job_for() { # DISK JOB DEVICE SECONDS
    local span
    span=$(span_of "$1")
    sed "s,@DEV@,$3,; s,@RT@,$4s,; s,@SPAN@,${span}g,; s,@HALF@,$((span / 2))g," "$here/kernel/$2.fio"
}

# SCHED: the kernel's name, or bfq0 for bfq with low_latency off.
begin_disk() { # DISK SCHED
    mkdir -p "$work/mnt"
    # What the emulation before said must not be taken for this one's word.
    rm -f "$work/image" "$work/emulate.err"
    truncate -s "$(span_of "$1")G" "$work/image"
    "$fairhead" emulate "$(disk_of "$1")" "$work/image" "$work/mnt" >"$work/emulate.out" 2>"$work/emulate.err" &
    server=$!
    # The file is there before: the emulation measures the path to it first.
    for _ in $(seq 500); do grep -qs 'is a disk as slow' "$work/emulate.err" && break; sleep 0.02; done
    grep -qs 'is a disk as slow' "$work/emulate.err" || { cat "$work/emulate.err" >&2; fail "the disk is not there"; }
    loop=$(losetup -f --show --direct-io=on "$work/mnt/disk")
    local queue=/sys/block/${loop#/dev/}/queue
    is_rotational "$1" >"$queue/rotational"
    echo "${2/bfq0/bfq}" >"$queue/scheduler"
    echo 32 >"$queue/nr_requests"
    [ "$2" != bfq0 ] || echo 0 >"$queue/iosched/low_latency"
    urge
}

# Ends the loop device and the emulation, if there are any.
end_disk() {
    [ -z "$loop" ] || { echo none >"/sys/block/${loop#/dev/}/queue/scheduler"; losetup -d "$loop"; } 2>/dev/null || true
    loop=''
    if [ -n "$server" ]; then
        # The loop device lets go of the file a moment later.
        for _ in $(seq 100); do umount "$work/mnt" 2>/dev/null && break; sleep 0.02; done
        mountpoint -q "$work/mnt" && umount -l "$work/mnt"
        wait "$server" 2>/dev/null || true
        server=''
    fi
    rm -f "$work/image"
}

# Disk before workers before fio: whoever serves must be there when it is called.
urge() {
    local tid
    for tid in $(threads "$server"); do chrt -f -p 20 "$tid" 2>/dev/null || true; done
    workers_to -f 10
}
