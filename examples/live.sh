# What the examples with real programs share: a place to work in, two cgroups, a mount, and that nothing of it is left. To be sourced.
#
# $work is a folder in memory, and the current one, with empty folders `source` and `mnt`; $path_a and $path_b are what a mount calls the cgroups
# $cgroups/$group_a and $cgroups/$group_b. $pids are processes, and $front is the mount or server they use, that are ended if the script ends first.

set -euo pipefail
export LC_ALL=C

# Options NAME=VARIABLE in turn: what the command line says of them becomes the variables'. Anything else is answered by the script's lines 3 to 6.
options() { # NAME=VARIABLE… -- ARGUMENTS…
    local known=()
    while [ "$1" != -- ]; do
        known+=("$1")
        shift
    done
    shift
    while [ $# -gt 0 ]; do
        local option variable=''
        for option in "${known[@]}"; do
            [ "$1" != "--${option%%=*}" ] || variable=${option#*=}
        done
        [ -n "$variable" ] && [ $# -gt 1 ] || { sed -n '3,6s/^# \{0,1\}//p' "$0" >&2; exit 2; }
        printf -v "$variable" %s "$2"
        shift 2
    done
}

work='' cgroups='' pids=() front='' trusted=yes all_trusted=yes
name=$(basename "$(dirname "$0")")
group_a=fairhead-$name-$$-a group_b=fairhead-$name-$$-b

skip() { echo "skipped: $*"; exit 0; }
fail() { echo "$0: $*" >&2; exit 1; }

# Whoever still runs, first of all; then what they used.
clean_up() {
    trap - EXIT
    trap '' INT TERM HUP
    set +e
    for pid in "${pids[@]}"; do kill -INT "$pid" 2>/dev/null; done
    for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null; done
    [ -z "$front" ] || { kill "$front" 2>/dev/null; wait "$front" 2>/dev/null; }
    for group in "$group_a" "$group_b"; do
        for _ in 1 2 3 4 5 6 7 8 9 10; do
            [ -n "$cgroups" ] && [ -d "$cgroups/$group" ] || break
            rmdir "$cgroups/$group" 2>/dev/null || sleep 0.2
        done
    done
    [ -n "$work" ] || return
    ! mountpoint -q "$work/mnt" || umount -l "$work/mnt"
    cd / && rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# What a mount calls a cgroup: what a process in it reads of itself.
path_of() {
    in_group "$1" cat /proc/self/cgroup |
        awk -F: '$2 ~ /(^|,)blkio(,|$)/ { old = $3 } $2 == "" { new = $3 } END { print old != "" ? old : new }'
}

# Becomes something that other programs of the machine cannot keep from its next request.
urgently() {
    chrt --rr 1 true 2>/dev/null && exec chrt --rr 1 "$@"
    exec nice -n -20 "$@"
}

# Becomes something urgent in a cgroup: for the background, or a pipe.
in_group() { # GROUP COMMAND…
    urgently sh -c 'echo $$ > "$1/cgroup.procs" && shift && exec "$@"' - "$cgroups/$1" "${@:2}"
}

# Makes all that, or says why it cannot.
prepare() { # MIB
    fairhead=${FAIRHEAD:-$(command -v fairhead || true)}
    [ -x "$fairhead" ] || fail "no fairhead: cargo build --release, then FAIRHEAD=target/release/fairhead $0"
    fairhead=$(realpath "$fairhead")
    [ "$(id -u)" = 0 ] || skip "only root may make cgroups"
    (exec 3<>/dev/fuse) 2>/dev/null || skip "there is no FUSE (/dev/fuse)"
    local base free
    for base in /dev/shm "${TMPDIR:-/tmp}"; do
        free=$(df --output=avail -m "$base" 2>/dev/null | tail -1 || true)
        [ "${free:-0}" -le "$1" ] || break
    done
    [ "${free:-0}" -gt "$1" ] || skip "no room for $1 MiB"
    # A mount asks for the path of the blkio controller, and where there is none, for that of the only hierarchy.
    for cgroups in /sys/fs/cgroup/blkio /sys/fs/cgroup/unified /sys/fs/cgroup ''; do
        [ -f "$cgroups/cgroup.procs" ] && mkdir "$cgroups/$group_a" "$cgroups/$group_b" 2>/dev/null && break
    done
    [ -n "$cgroups" ] || skip "no cgroup can be made"
    path_a=$(path_of "$group_a") path_b=$(path_of "$group_b")
    work=$(mktemp -d "$base/fairhead-$name-XXXXXX")
    chmod 755 "$work"
    mkdir "$work/source" "$work/mnt"
    cd "$work"
}

# BFQ without what gives a newcomer more than his weight.
settings() { # SCHED
    case $1 in bfq*) echo "--set $1.low_latency=0" ;; esac
}

# Shows `source` at `mnt`.
begin_mount() { # OPTIONS…
    rm -f mount.err
    nice -n -20 "$fairhead" mount source mnt "$@" >mount.out 2>mount.err &
    front=$!
    until grep -qs 'scheduled by' mount.err; do
        kill -0 "$front" 2>/dev/null || { cat mount.err >&2; fail "nothing was mounted"; }
        sleep 0.05
    done
}

# Ends the mount or server, which says in a file whether the emulated disk kept its time: $trusted.
end_front() { # FILE
    kill "$front"
    wait "$front" || fail "$front ended badly"
    front=''
    trusted=yes
    if grep -i 'not to be trusted' "$1" >>verdicts; then
        trusted=no all_trusted=no
    fi
}
