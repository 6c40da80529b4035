#!/bin/bash
# bench/advise.sh [DISK [SECONDS [FILE...]]]: asks `advise` about job files and traces (all example jobs), and asks again with ten times the seeds.
# A table for bench/RESULTS.md, a row for each job. Takes long: the second time has no budget.
cd "$(dirname "$0")/.." || exit 1
disk=${1:-nas2020} seconds=${2:-60}
shift $(($# < 2 ? $# : 2))
cargo build --profile dist -q -p fairhead-bench || exit 1
bench=${CARGO_TARGET_DIR:-target}/dist/fairhead-bench
echo "job | s | CPU s | rounds | winner | score | seeds again | score again | best again | its score | "
echo "--- | ---: | ---: | ---: | --- | ---: | ---: | ---: | --- | ---: | ---"
[ $# -gt 0 ] || set -- examples/*.fio
for file in "$@"; do
    "$bench" confirm "$file" "$disk" "$seconds" || exit 1
done
