"""What tests/real_traces.rs expects, computed without the engine.

For each trace and pipeline: the number of rows, the number of late records, and a hash (FNV-1a,
64 bits) over all rows as the test writes them, sorted. Run with the directory of the traces:

    python3 examples/tests/expected_by_python.py DIR
"""
import csv, gzip, io, json, sys
from datetime import datetime, timezone

def flights(directory):
    with gzip.open(f"{directory}/flights/nyc_flights_2013.csv.gz", "rt") as file:
        for row in csv.DictReader(file):
            yield int(row["sched_dep_ms"]) * 1000, row["dest"], float(row["dep_delay_min"])

def wikipedia(directory):
    with gzip.open(f"{directory}/wikipedia/wikipedia_edits_2015-09-12.jsonl.gz", "rt") as file:
        for line in file:
            row = json.loads(line)
            time = datetime.strptime(row["time"], "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=timezone.utc)
            delta = time - datetime(1970, 1, 1, tzinfo=timezone.utc)
            micros = (delta.days * 86400 + delta.seconds) * 10**6 + delta.microseconds
            yield micros, row["channel"], float(row["added"])

def on_time(records, lag):
    """Records in event-time order, late ones left out, and how many those are."""
    kept, late, newest = [], 0, None
    for position, (time, key, value) in enumerate(records):
        if newest is not None and time < newest - lag:
            late += 1
        else:
            kept.append((time, position, key, value))
        newest = time if newest is None else max(newest, time)
    return sorted(kept), late

def running_totals(records):
    totals = {}
    for time, _, key, value in records:
        count, total = totals.get(key, (0, 0.0))
        totals[key] = (count + 1, total + value)
        yield f"{time},{key},{count + 1},{total + value!r}"

def first_seen(records):
    seen = set()
    for time, _, key, _ in records:
        if key not in seen:
            seen.add(key)
            yield f"{time},{key}"

def fnv(rows):
    digest = 0xcbf29ce484222325
    for row in sorted(rows):
        for byte in row.encode() + b"\n":
            digest = ((digest ^ byte) * 0x100000001b3) & (2**64 - 1)
    return digest

hours = 3600 * 10**6
for name, trace, lag in [("flights", flights, 22 * hours), ("flights", flights, 1 * hours), ("wikipedia", wikipedia, 0)]:
    kept, late = on_time(trace(sys.argv[1]), lag)
    for pipeline in (running_totals, first_seen):
        rows = list(pipeline(kept))
        print(f"{name} lag {lag // hours} h, {pipeline.__name__}: {len(rows)} rows, {late} late, {fnv(rows):#018x}")
