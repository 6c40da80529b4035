# Run by root in a clean Debian that has been started just now; beside it lies fairhead.deb. Installs the package and does what docs/doctor.md,
# record.md, advise.md and try.md say, on a rotating disk sda whose identity, scheduler and rules come from the system's own udev. Prints a line for each thing that holds, and ends in "check: good". On the first that does not hold it prints
# "check: failed" with the last output, and ends.
cd "$(dirname "$0")" || exit 1
export LC_ALL=C NO_COLOR=1
rule='/etc/udev/rules.d/90-fairhead-*.rules'

failed() { echo "check: failed: $*"; cat out err 2>/dev/null; exit 1; }
holds() { echo "check: $(cut -d' ' -f1 /proc/uptime) $*"; }
# CODE COMMAND...: its output goes to the files out and err.
run() {
    code=$1; shift
    "$@" >out 2>err
    got=$?
    [ $got = "$code" ] || failed "$* ended with $got, not $code"
}
# FILE PATTERN...: each is in the file.
says() {
    file=$1; shift
    for pattern in "$@"; do grep -q -e "$pattern" "$file" || failed "there is no '$pattern' in $file"; done
}
chosen() { sed 's/.*\[\(.*\)\].*/\1/' "/sys/block/$1/queue/scheduler"; }
is_chosen() { [ "$(chosen "$1")" = "$2" ] || failed "$1 is under $(chosen "$1"), not $2 ($3)"; }
# All settings of a disk.
queue() {
    # A scheduler is a module, which stays: what could be chosen is no setting.
    find "/sys/block/$1/queue/" -type f -readable ! -name scheduler | sort | while read -r f; do echo "$f $(cat "$f" 2>&1)"; done
    chosen "$1"
}
is_as_before() { queue "$1" >after; cmp -s before after || { diff before after >out; failed "$1 is not as before $2"; }; }
no_instances() { [ -z "$(ls /sys/kernel/tracing/instances)" ] || failed "a trace instance is left after $1"; }
# A disk that goes and comes: the kernel announces it anew, and udev applies its rules.
replug() {
    echo 1 >/sys/block/sda/device/delete
    for host in /sys/class/scsi_host/host*; do echo '- - -' >"$host/scan"; done
    udevadm settle
    [ -b /dev/sda ] || failed "sda has not come back"
}
# DEVICE: programs that use it until `quiet`.
busy() {
    # With pauses: the disk is a file in memory, and each request is simulated many times in software emulation.
    (while dd if="$1" of=/dev/null bs=64k count=50 iflag=direct; do sleep 0.1; done) 2>/dev/null & reader=$!
    (while dd if="$1" of=/dev/null bs=4k count=20 skip=5000 iflag=direct; do sleep 0.1; done) 2>/dev/null & second=$!
}
quiet() {
    kill $reader $second
    wait $reader $second 2>/dev/null
    # Their last ones, which read on.
    for comm in $(grep -lsx dd /proc/[0-9]*/comm); do kill "$(basename "$(dirname "$comm")")"; done
}

package() {
    run 0 dpkg -i fairhead.deb
    run 0 fairhead --version
    run 0 fairhead
    holds "the package installs and runs: $(fairhead --version)"
    [ ! -e $rule ] || failed "the package has brought a rule"
}

doctor() {
    is_chosen sda mq-deadline "the kernel's default"
    queue sda >before
    run 1 fairhead doctor sda --quick
    says out 'sda .*rotating disk' 'scheduler-slow-start' 'Do: *modprobe bfq && echo bfq > /sys/block/sda/queue/scheduler' 'Undo: *echo mq-deadline'
    mend=$(sed -n 's/^ *Do: *\(.*scheduler\)$/\1/p' out) undo=$(sed -n 's/^ *Undo: *//p' out)
    run 1 fairhead doctor --quick --json
    says out '"name": "sda"' '"name": "vda"'
    run 2 fairhead doctor sdz
    says err "sdz"
    is_as_before sda "after doctor"
    sh -c "$mend" || failed "cannot do: $mend"
    is_chosen sda bfq "doctor's command"
    sh -c "$undo" || failed "cannot undo: $undo"
    is_as_before sda "after doctor's undo"
    holds "doctor finds what is wrong, its command mends it, its undo undoes it"
}

# DISK DEVICE
record() {
    busy "$2"
    run 0 fairhead record "$1" -t 3s -o monday.blktrace
    quiet
    no_instances record
    says out "$1" 'dd'
    run 0 fairhead trace monday.blktrace
    says out 'blktrace binary' 'dd-'
    run 0 fairhead advise monday.blktrace --disk nas2020 --sched mq-deadline,bfq --budget 1s --rounds 1
    says out 'mq-deadline'
    holds "record, trace and advise of $1: $(head -n 1 out)"
}

# DISK DEVICE
try_on() {
    queue "$1" >before
    busy "$2"
    run 0 fairhead try "$1" bfq -t 8s --turn 2s
    quiet
    is_as_before "$1" "after try"
    no_instances try
    says out "Who pays, on $1" 'dd .*reads'
    # Killed in the middle: the watchdog puts it back.
    fairhead try "$1" bfq -t 60s --turn 2s >out 2>err &
    trial=$!
    for _ in $(seq 200); do [ "$(chosen "$1")" = bfq ] && break; sleep 0.1; done
    is_chosen "$1" bfq "a turn of try"
    kill -9 $trial
    for _ in $(seq 100); do queue "$1" >after; cmp -s before after && break; sleep 0.1; done
    is_as_before "$1" "after try was killed"
    holds "try on $1 measures, and goes back at the end and after SIGKILL"
}

apply() {
    queue sda >before
    run 0 fairhead apply sda bfq --dry-run
    [ ! -e $rule ] || failed "--dry-run has written a rule"
    is_as_before sda "after a dry run"
    run 2 fairhead apply sda bfq
    says err '--yes'
    run 0 fairhead apply sda bfq slice_idle=4 --yes
    says out 'ENV{ID_SERIAL}==' 'at once: scheduler becomes bfq, now mq-deadline' 'undo'
    [ ! -s err ] || failed "apply has a note"
    [ "$(ls $rule)" = /etc/udev/rules.d/90-fairhead-FAIRHEAD_DISK_FH7200.rules ] || failed "the rule is $(ls $rule)"
    is_chosen sda bfq "apply"
    run 0 fairhead apply sda bfq slice_idle=4 --yes
    says out 'nothing to do'
    holds "apply writes one rule: $(basename $rule)"
    # udev has been told, so the rule counts without a restart; for this disk alone.
    other=$(chosen vda)
    echo none >/sys/block/sda/queue/scheduler
    run 0 udevadm trigger --settle --action=change /sys/block/sda /sys/block/vda
    is_chosen sda bfq "udev's change event"
    replug
    is_chosen sda bfq "udev's add event"
    [ "$(cat /sys/block/sda/queue/iosched/slice_idle)" = 4 ] || failed "slice_idle of a disk that came back"
    is_chosen vda "$other" "a rule for sda"
    holds "udev applies the rule when the disk changes and when it comes"
    run 0 fairhead doctor sda --quick
    says out '90-fairhead-FAIRHEAD_DISK_FH7200.rules'
    holds "doctor names the rule, and finds nothing more"
    run 0 fairhead apply sda --undo --yes
    [ ! -e $rule ] || failed "--undo has left the rule"
    is_as_before sda "after --undo"
    run 0 udevadm trigger --settle --action=change /sys/block/sda
    is_as_before sda "after --undo and a change event"
    replug
    is_chosen sda mq-deadline "udev's add event after --undo"
    holds "--undo removes the rule, and udev forgets it"
}

# CHECK SET UNSET: with this set, doctor has findings of this check (about each disk) and no other, and without it none.
seed() {
    sh -c "$2" || failed "cannot set: $2"
    run 1 fairhead doctor --quick
    sed -n 's/^[0-9]*\. .*, \([a-z-]*\)\]$/\1/p' out | sort -u >words
    [ "$(cat words)" = "$1" ] || failed "doctor should find $1 alone"
    sh -c "$3" || failed "cannot unset: $3"
    run 0 fairhead doctor --quick
    seeded=$((seeded + 1))
}

# One fault after another on a machine that is right: sda under bfq, the rest as the kernel has it.
faults() {
    q=/sys/block/sda/queue units=/etc/systemd/system seeded=0
    echo bfq >$q/scheduler
    run 0 fairhead doctor --quick
    says out '^Nothing found'
    seed scheduler-unfit-rotating "echo none >$q/scheduler" "echo bfq >$q/scheduler"
    seed scheduler-slow-start "echo mq-deadline >$q/scheduler" "echo bfq >$q/scheduler"
    for setting in low-latency-off:iosched/low_latency:0:1 slice-idle-off:iosched/slice_idle:0:8 merges-off:nomerges:2:0 \
        statistics-off:iostats:0:1 read-ahead-off:read_ahead_kb:0:128 throttled-twice:wbt_lat_usec:50000:75000 \
        'flushes-dropped:write_cache:write through:write back'; do
        echo "$setting" | tr : '\n' >words
        { read -r name; read -r file; read -r bad; read -r good; } <words
        seed "$name" "echo '$bad' >$q/$file" "echo '$good' >$q/$file"
    done
    seed priority-ignored "printf '[Service]\nIOSchedulingClass=idle\n' >$units/scrub.service" "rm $units/scrub.service"
    echo mq-deadline >$q/scheduler
    holds "doctor finds $seeded of $seeded seeded faults, each alone, and nothing without one"
}

package
doctor
run 0 fairhead advise desktop --disk /dev/sda --sched mq-deadline,bfq --rounds 1
says out 'nas2020'
holds "advise desktop: $(head -n 1 out)"
record sda /dev/sda
try_on sda /dev/sda
apply
faults
run 0 dpkg -r fairhead
[ ! -e /usr/bin/fairhead ] || failed "the package is still there"
echo "check: good"
