#!/bin/sh
# The measured tables of the README. About 20 minutes.
set -eu
tidegate=$1
runs=${2:-7}
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
    "$tidegate" compare "$@" --runs "$runs" --quiet --state-dir "$work/state"
}

# Runs a workload of `bench engine` in several ways, one after the other, so many rounds, and shows
# medians and spreads: events a second, their ratio to the first way, and the most memory.
engine() {
    title=$1
    workload=$2
    shift 2
    echo
    echo "== $title"
    round=0
    : >"$work/rounds"
    while [ "$round" -lt "$runs" ]; do
        for way in "$@"; do
            # Options are words, so they are split.
            # shellcheck disable=SC2086
            result=$("$tidegate" bench engine $workload $way --state-dir "$work/state")
            eps=$(echo "$result" | sed 's/.*"eps":\([0-9.]*\).*/\1/')
            rss=$(echo "$result" | sed 's/.*"rss_mb":\([0-9.]*\).*/\1/')
            echo "$round|$way|$eps|$rss" >>"$work/rounds"
        done
        round=$((round + 1))
    done
    awk -F'|' '
        function sorted(list, n,   i, j, t) {
            for (i = 2; i <= n; i++)
                for (j = i; j > 1 && list[j - 1] > list[j]; j--) { t = list[j]; list[j] = list[j - 1]; list[j - 1] = t }
        }
        NR == 1 { first = $2 }
        $2 == first { base = $3 }
        { if (!($2 in n)) order[++ways] = $2; k = ++n[$2]; eps[$2, k] = $3; ratio[$2, k] = $3 / base; if ($4 > rss[$2]) rss[$2] = $4 }
        END {
            for (w = 1; w <= ways; w++) {
                way = order[w]; m = n[way]
                for (i = 1; i <= m; i++) { a[i] = eps[way, i]; b[i] = ratio[way, i] }
                sorted(a, m); sorted(b, m); mid = int((m + 1) / 2)
                printf "%-42s %12.0f events/s   ratio %5.2f [%.2f–%.2f]   %5.0f MB\n", (way == "" ? "(defaults)" : way), a[mid], b[mid], b[1], b[m], rss[way]
            }
        }' "$work/rounds"
}

compare "memory, Zipf keys, many repeats" \
    running-totals "$work/orders.csv.gz" --key customer --value amount --time-unit ms --max-lag 5s --regime memory
compare "memory, uniform keys" \
    running-totals "$work/uniform.csv" --time-unit us --regime memory
compare "page cache, uniform keys, values of 1,000 bytes" \
    last-value "$work/disk.csv" --value payload --time-unit us --regime cache
compare "disk, uniform keys, values of 1,000 bytes, direct reads" \
    last-value "$work/disk.csv" --value payload --time-unit us --regime disk
engine "running count in memory, 400,000 keys" "--n 10000000 --k 400000" \
    "--peer hashmap" "" "--workers 2" "--peer hashmap --workers 2"
engine "running count in memory, 2,000,000 keys" "--n 10000000 --k 2000000" \
    "--peer hashmap" "" "--workers 2" "--peer hashmap --workers 2"
engine "running count from disk, 100,000 keys of 1,000 B, 32 MiB, direct reads" \
    "--n 200000 --k 100000 --vsize 1000 --memory 80MiB --direct-io" \
    "--strategy per-record" "--strategy multiget" "--strategy threads" "--read-ahead off" "" "--no-io-uring" "--zipf"
engine "counts in windows of a second, 200,000 keys" "--workload w2 --n 5000000 --k 200000 --epms 500" \
    "" "--workers 2" "--strategy per-record"
echo
echo "== what the disk gives, 4 KiB blocks, direct reads"
"$tidegate" bench reads --depths 1,32 --dir "$work"
