#!/bin/bash
# bench/advise.sh [DISK [SECONDS [JOB...]]]: asks `advise` about all example jobs, and asks again with ten times the seeds.
# A table for bench/RESULTS.md, a row for each job. Takes long: the second time has no budget.
cd "$(dirname "$0")/.." || exit 1
disk=${1:-nas2020} seconds=${2:-60}
shift $(($# < 2 ? $# : 2))
cargo build --release -q -p fairhead-bench || exit 1
bench=${CARGO_TARGET_DIR:-target}/release/fairhead-bench
echo "job | CPU s | rounds | winner | score | seeds again | score again | best again | its score | "
echo "--- | ---: | ---: | --- | ---: | ---: | ---: | --- | ---: | ---"
for job in ${@:-$(basename -s .fio examples/*.fio)}; do
    "$bench" confirm "examples/$job.fio" "$disk" "$seconds" || exit 1
done
