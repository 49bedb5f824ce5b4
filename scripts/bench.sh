#!/bin/sh
# The measured table of the README: `tidegate compare` in three regimes. About ten minutes.
set -eu
tidegate=$1
specs=$(cd "$(dirname "$0")/../traces/specs" && pwd)
work=$(mktemp -d "${TMPDIR:-/var/tmp}/tidegate-bench.XXXXXX")
trap 'rm -rf "$work"' EXIT

"$tidegate" trace generate "$specs/disk.json" --output "$work/disk.csv"
"$tidegate" trace generate "$specs/uniform.json" --output "$work/uniform.csv"
"$tidegate" trace generate orders --records 1000000 --output "$work/orders.csv.gz"

compare() {
    title=$1
    shift
    echo
    echo "== $title"
    "$tidegate" compare "$@" --quiet --state-dir "$work/state"
}

compare "memory, Zipf keys, many repeats" \
    running-totals "$work/orders.csv.gz" --key customer --value amount --time-unit ms --max-lag 5s --regime memory --runs 7
compare "memory, uniform keys" \
    running-totals "$work/uniform.csv" --time-unit us --regime memory --runs 7
compare "page cache, uniform keys, values of 1,000 bytes" \
    last-value "$work/disk.csv" --value payload --time-unit us --regime cache --runs 5
compare "disk, uniform keys, values of 1,000 bytes, direct reads" \
    last-value "$work/disk.csv" --value payload --time-unit us --regime disk --runs 5
