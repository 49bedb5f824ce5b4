//! Whole jobs on Timely, on several workers, against a model that shares no code with them.

mod common;

use common::{Input, Record, in_memory, rows, run_collecting};
use proptest::prelude::*;
use std::collections::HashMap;
use tidegate::config::{JobConfig, StateBackend};
use tidegate::job::Job;
use tidegate::sink::Row;
use tidegate_operators::policy::BatchPolicy;
use tidegate_state::strategy::ReadStrategy;

/// Appends every value to its key's text, twice in a row: the second fold is keyed by what the
/// first one made, and depends on the order of records that came from several workers.
fn build(job: &Job<'_>, input: &Input) {
    let source = job.source("records", input.partitions_of(job.worker(), job.workers()));
    let first = source.fold_with_late("first", String::new, |text, value: i64| {
        text.push_str(&format!("{value};"));
        text.clone()
    });
    first.late.sink("late", &["key", "value"]);
    first.results.clone().sink("first", &["key", "text"]);
    first
        .results
        .map(|(key, text)| (text.len() % 3, format!("{key}{text}")))
        .fold("second", u64::default, |hash, text: String| {
            // A polynomial over all characters so far: any change of order changes it.
            for character in text.chars() {
                *hash = hash.wrapping_mul(1_000_003).wrapping_add(u64::from(u32::from(character)));
            }
            *hash
        })
        .sink("second", &["key", "hash"]);
}

fn model(input: &Input) -> Vec<Row> {
    let (on_time, late) = input.by_the_rules();
    let mut all = rows("late", late.into_iter().map(|(time, key, value)| (time, format!("{key},{value}"))));
    let mut texts: HashMap<String, String> = HashMap::new();
    let mut hashes: HashMap<usize, u64> = HashMap::new();
    for (time, _, _, key, value) in on_time {
        let text = texts.entry(key.clone()).or_default();
        text.push_str(&format!("{value};"));
        all.extend(rows("first", [(time, format!("{key},{text}"))]));
        let group = text.len() % 3;
        let hash = hashes.entry(group).or_default();
        for character in format!("{key}{text}").chars() {
            *hash = hash.wrapping_mul(1_000_003).wrapping_add(u64::from(u32::from(character)));
        }
        all.extend(rows("second", [(time, format!("{group},{hash}"))]));
    }
    all.sort();
    all
}

fn record() -> impl Strategy<Value = Record> {
    let time = prop_oneof![-30i64..30, -3i64..3];
    let key = prop_oneof![
        Just("a"),
        Just("b"),
        Just("c"),
        Just(""),
        Just("a\u{0}"),
        Just("long key of more than twenty-four bytes")
    ];
    (time, key.prop_map(str::to_string), -9i64..10)
}

fn input() -> impl Strategy<Value = Input> {
    (
        proptest::collection::vec(proptest::collection::vec(record(), 0..25), 0..4),
        prop_oneof![Just(0i64), 1i64..40, Just(i64::MAX)],
        prop_oneof![Just(1i64), 2i64..20],
        1usize..12,
    )
        .prop_map(|(partitions, max_lag, epoch, chunk)| Input { partitions, max_lag, epoch, chunk })
}

/// None, one row or so, some rows, and all.
fn cache_bytes() -> impl Strategy<Value = Option<usize>> {
    prop_oneof![Just(Some(0)), Just(Some(1)), Just(Some(400)), Just(None)]
}

fn run(config: JobConfig, input: &Input) -> Vec<Row> {
    let input = input.clone();
    run_collecting(config, move |job| build(job, &input)).unwrap().0
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn jobs_equal_the_model_in_memory(
        input in input(),
        keys_per_chunk in prop_oneof![1usize..4, Just(4096)],
        cache_bytes in cache_bytes(),
    ) {
        let expected = model(&input);
        for workers in [1, 2, 3, 4] {
            for strategy in ReadStrategy::ALL {
                let config = JobConfig {
                    strategy, batch: BatchPolicy { keys_per_chunk }, cache_bytes, ..in_memory(workers)
                };
                prop_assert_eq!(&run(config, &input), &expected, "{} on {} workers", strategy, workers);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]
    #[test]
    fn jobs_equal_the_model_in_rocksdb(
        input in input(),
        keys_per_chunk in prop_oneof![1usize..4, Just(4096)],
        cache_bytes in cache_bytes(),
    ) {
        let expected = model(&input);
        for workers in [1, 2] {
            for strategy in ReadStrategy::ALL {
                let config = JobConfig {
                    strategy,
                    workers,
                    backend: StateBackend::RocksDb,
                    batch: BatchPolicy { keys_per_chunk },
                    memory_bytes: 16 << 20,
                    cache_bytes,
                    ..JobConfig::default()
                };
                prop_assert_eq!(&run(config, &input), &expected, "{} on {} workers", strategy, workers);
            }
        }
    }
}
