//! Whole jobs whose state is read by other threads, and ahead, with answers that come late and
//! out of order: the same rows, byte for byte.

mod common;

use common::{Input, Record, in_memory};
use proptest::prelude::*;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tidegate::config::JobConfig;
use tidegate::job::Job;
use tidegate::run::Runner;
use tidegate::sink::{Output, OutputOptions, Row};
use tidegate_state::fault::FaultyBackend;
use tidegate_state::group::KeyGroups;
use tidegate_state::memory::MemoryBackend;
use tidegate_state::readers::ReaderOptions;
use tidegate_state::rocks::{RocksBackend, RocksOptions};
use tidegate_state::store::Store;
use tidegate_state::strategy::ReadStrategy;
use tidegate_state::table::{CacheBudget, ReadAhead};

/// Two folds in a row, the second keyed by what the first one made.
fn build(job: &Job<'_>, input: &Input) {
    let source = job.source("records", input.partitions_of(job.worker(), job.workers()));
    let first = source.fold("first", String::new, |text, value: i64| {
        text.push_str(&format!("{value};"));
        text.clone()
    });
    first.clone().sink("first", &["key", "text"]);
    first
        .map(|(key, text)| (text.len() % 5, key))
        .fold("second", String::new, |text, key: String| {
            text.push_str(&key);
            text.clone()
        })
        .sink("second", &["key", "text"]);
}

/// Who answers.
#[derive(Debug, Clone, Copy)]
enum Answers {
    /// A store in memory, each read up to so many microseconds late.
    Late(u64),
    /// RocksDB in a directory of its own; with io_uring, or as if it were refused.
    Rocks { io_uring: bool },
}

fn run(
    config: JobConfig,
    input: &Input,
    answers: Answers,
    cached_rows: usize,
    readers: ReaderOptions,
) -> Vec<Row> {
    let rows = Arc::new(Mutex::new(Vec::new()));
    let output = OutputOptions { output: Output::Collect(Arc::clone(&rows)), ..OutputOptions::default() };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_path_buf();
    let input = input.clone();
    Runner::new(config, output)
        .with_stores(move |worker, _| {
            let groups = KeyGroups::default();
            let store = match answers {
                Answers::Late(us) => {
                    let (backend, faults) = FaultyBackend::new(MemoryBackend::new());
                    faults.set_longest_delay(Duration::from_micros(us));
                    Store::new(backend, groups)
                }
                Answers::Rocks { io_uring } => {
                    let options =
                        RocksOptions { memory_bytes: 16 << 20, io_uring, ..RocksOptions::default() };
                    Store::new(RocksBackend::open(&path.join(worker.to_string()), &options)?, groups)
                }
            };
            Ok(store.with_cache(CacheBudget::rows(cached_rows)).with_readers(readers))
        })
        .run(move |job| build(job, &input))
        .unwrap();
    let mut rows = std::mem::take(&mut *rows.lock().unwrap());
    rows.sort();
    rows
}

fn record() -> impl Strategy<Value = Record> {
    (-20i64..20, "[a-f]{1,2}", -9i64..10)
}

fn input() -> impl Strategy<Value = Input> {
    (
        proptest::collection::vec(proptest::collection::vec(record(), 0..40), 1..4),
        prop_oneof![Just(5i64), Just(i64::MAX)],
        prop_oneof![Just(1i64), 2i64..20],
        1usize..12,
    )
        .prop_map(|(partitions, max_lag, epoch, chunk)| Input { partitions, max_lag, epoch, chunk })
}

/// Runs a job without threads, which other tests hold against a model, and then with them.
fn same_rows(input: &Input, answers: Answers, strategies: &[ReadStrategy]) -> Result<(), TestCaseError> {
    let expected = run(in_memory(1), input, Answers::Late(0), 0, ReaderOptions::default());
    for workers in [1, 2] {
        for ahead in [ReadAhead::Off, ReadAhead::On] {
            for cached_rows in [0, 1, 10] {
                for &strategy in strategies {
                    let config = JobConfig { strategy, ..in_memory(workers) };
                    let readers = ReaderOptions { least_keys: 1, ..ReaderOptions::new(2, ahead) };
                    let rows = run(config, input, answers, cached_rows, readers);
                    prop_assert_eq!(
                        &rows,
                        &expected,
                        "{} on {} workers, {} rows cached, read ahead {}",
                        strategy,
                        workers,
                        cached_rows,
                        ahead
                    );
                }
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(25))]
    #[test]
    fn f02_late_answers_change_nothing(input in input(), late_us in prop_oneof![Just(0u64), Just(50), Just(400)]) {
        same_rows(&input, Answers::Late(late_us), &[ReadStrategy::MultiGet, ReadStrategy::Threads, ReadStrategy::Auto])?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2))]
    #[test]
    fn reader_threads_on_rocksdb_change_nothing(input in input()) {
        same_rows(&input, Answers::Rocks { io_uring: true }, &[ReadStrategy::Threads, ReadStrategy::Auto])?;
    }

    #[test]
    fn nor_do_they_where_io_uring_is_refused(input in input()) {
        same_rows(&input, Answers::Rocks { io_uring: false }, &[ReadStrategy::MultiGet, ReadStrategy::Auto])?;
    }
}
