#!/bin/bash
# bench/library.sh [PAIRS]: the processor time of `fairhead run` with a scheduler that is linked in and with the
# same one as a library, by turns; the difference for a request, and the median of the ratios. For
# bench/RESULTS.md.
cd "$(dirname "$0")/.." || exit 1
pairs=${1:-10} target=${CARGO_TARGET_DIR:-target} profile=${PROFILE:-dist}
cargo build --profile "$profile" -q -p fairhead || exit 1
cargo build --profile "$profile" -q -p fairhead-plugin --example adios || exit 1
fairhead=$target/$profile/fairhead library=$target/$profile/examples/libadios.so
job=$(mktemp --suffix .fio)
trap 'rm -f "$job"' EXIT
cat > "$job" <<'END'
[a]
rw=randread
bs=4k
size=4g
direct=1
ioengine=libaio
iodepth=16
time_based
runtime=4s
END
requests=$("$fairhead" run "$job" --disk nvme --sched adios --output-format json | grep -m1 -o '"issued": [0-9]*' | grep -o '[0-9]*$')
# Seconds of user and system time.
spent() { local TIMEFORMAT='%U %S'; { time "$fairhead" run "$job" --disk nvme --sched "$1" -o /dev/null > /dev/null 2>&1; } 2>&1 | awk '{ print $1 + $2 }'; }
echo "$requests requests a run, $pairs pairs"
for i in $(seq "$pairs"); do
    # Whoever is first changes from pair to pair.
    if ((i % 2)); then
        linked=$(spent adios) loaded=$(spent "$library")
    else
        loaded=$(spent "$library") linked=$(spent adios)
    fi
    echo "$linked $loaded"
done | sort -n | awk -v n="$requests" '
    { linked[NR] = $1; loaded[NR] = $2; ratio[NR] = $2 / $1; diff[NR] = ($2 - $1) / n * 1e9 }
    function median(v,   i, j, t, m) {
        m = NR
        for (i = 2; i <= m; i++) for (j = i; j > 1 && v[j] < v[j - 1]; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
        return m % 2 ? v[(m + 1) / 2] : (v[m / 2] + v[m / 2 + 1]) / 2
    }
    END {
        printf "linked in %.2f s, library %.2f s, ratio %.3f, %.0f ns a request\n", median(linked), median(loaded), median(ratio), median(diff)
    }'
