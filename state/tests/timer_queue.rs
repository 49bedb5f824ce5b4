//! F16 of the known faults for timers: what has fired costs nothing.

use rocksdb::perf::{PerfContext, PerfMetric, PerfStatsLevel, set_perf_stats};
use std::rc::Rc;
use tidegate_state::batch::ChangeBatch;
use tidegate_state::group::KeyGroups;
use tidegate_state::keyed::{StateParts, States};
use tidegate_state::rocks::{RocksBackend, RocksOptions};
use tidegate_state::store::Store;
use tidegate_state::strategy::ReadStrategy;
use tidegate_state::table::CacheBudget;

const ROUNDS: i64 = 100;
const TIMERS: i64 = 10_000;

/// Entries that RocksDB has stepped over without showing them.
fn skipped() -> u64 {
    let counters = PerfContext::default();
    counters.metric(PerfMetric::InternalKeySkippedCount)
        + counters.metric(PerfMetric::InternalDeleteSkippedCount)
        + counters.metric(PerfMetric::NextOnMemtableCount)
}

fn rounds(cached_rows: usize) {
    set_perf_stats(PerfStatsLevel::EnableCount);
    let directory = tempfile::tempdir().unwrap();
    let options = RocksOptions { memory_bytes: 8 << 20, ..RocksOptions::default() };
    let backend = RocksBackend::open(directory.path(), &options).unwrap();
    let store = Rc::new(Store::new(backend, KeyGroups::default()).with_cache(CacheBudget::rows(cached_rows)));
    let mut states = States::<u64>::new(Rc::clone(&store), "op", ReadStrategy::Auto);
    let timers = states.timers().unwrap();
    let StateParts { scope, timers: queue, .. } = states.into_parts();
    let queue = queue.unwrap();
    let mut steps = Vec::new();
    for round in 0..ROUNDS {
        let (start, end) = (round * TIMERS, (round + 1) * TIMERS);
        assert_eq!(queue.borrow_mut().begin(Some(start), &store).unwrap(), Some(start));
        for time in start..end {
            // Every third is taken back, and some of those are set anew.
            scope.set_key(time as u64 % 7);
            timers.set(time);
            if time % 3 == 0 {
                timers.delete(time);
            }
            if time % 6 == 0 {
                timers.set(time);
            }
        }
        let mut changes = ChangeBatch::new();
        let mut queue = queue.borrow_mut();
        queue.as_state_table().collect_changes(&store, &mut changes).unwrap();
        store.commit(&mut changes).unwrap();
        queue.as_state_table().end_release(&store).unwrap();
        let before = skipped();
        assert_eq!(queue.begin(Some(end), &store).unwrap(), Some(end));
        steps.push(skipped() - before);
        let mut fired = Vec::new();
        for key in 0..7 {
            while let Some((fires_at, set_for)) = queue.take(&key, None) {
                assert_eq!((fires_at, set_for as u64 % 7), (set_for, key));
                fired.push(set_for);
            }
        }
        fired.sort_unstable();
        assert_eq!(fired, (start..end).filter(|time| time % 3 != 0 || time % 6 == 0).collect::<Vec<_>>());
        assert_eq!(queue.earliest(), None, "nothing is pending");
    }
    let (first, last): (u64, u64) = (steps[1..11].iter().sum(), steps[90..].iter().sum());
    assert!(last <= 2 * first, "{last} steps in the last ten rounds, {first} in the first: {steps:?}");
}

#[test]
fn f16_a_million_timers_in_the_store() {
    rounds(0);
}

#[test]
fn f16_a_million_timers_of_which_a_part_is_in_memory() {
    rounds(5000);
}
