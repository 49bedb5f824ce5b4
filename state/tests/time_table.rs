//! Tables by time: what is gone costs nothing (F16 of the known faults), and nothing is lost between
//! memory and store.

use rocksdb::perf::{PerfContext, PerfMetric};
use std::collections::BTreeMap;
use tidegate_state::backend::StateName;
use tidegate_state::batch::ChangeBatch;
use tidegate_state::group::KeyGroups;
use tidegate_state::rocks::{RocksBackend, RocksOptions};
use tidegate_state::store::Store;
use tidegate_state::strategy::ReadStrategy;
use tidegate_state::table::{CacheBudget, TimeTable};

const ROUNDS: i64 = 1000;
const KEYS: u64 = 100;

fn steps() -> u64 {
    let counters = PerfContext::default();
    counters.metric(PerfMetric::InternalKeySkippedCount)
        + counters.metric(PerfMetric::InternalDeleteSkippedCount)
        + counters.metric(PerfMetric::NextOnMemtableCount)
}

fn name() -> StateName {
    StateName::new("window", "slices").unwrap()
}

fn store(directory: &std::path::Path, cached_rows: usize) -> Store {
    let options = RocksOptions { memory_bytes: 8 << 20, ..RocksOptions::default() };
    let backend = RocksBackend::open(directory, &options).unwrap();
    Store::new(backend, KeyGroups::default()).with_cache(CacheBudget::rows(cached_rows))
}

fn put(table: &mut TimeTable<u64, u64>, store: &Store, time: i64) {
    let slots: Vec<_> = (0..KEYS).map(|key| table.request(&(time, key))).collect();
    table.as_state_table().load(store).unwrap();
    for (key, slot) in (0..KEYS).zip(slots) {
        *table.get_mut(slot) = Some(key.wrapping_add(time as u64));
    }
    settle(table, store);
}

fn settle(table: &mut TimeTable<u64, u64>, store: &Store) {
    let mut changes = ChangeBatch::new();
    table.as_state_table().collect_changes(store, &mut changes).unwrap();
    store.commit(&mut changes).unwrap();
    table.as_state_table().end_release(store).unwrap();
}

fn rows_of(table: &mut TimeTable<u64, u64>, store: &Store, time: i64, most: usize) -> BTreeMap<u64, u64> {
    let mut rows = BTreeMap::new();
    let mut scan = table.scan_time(time);
    while table
        .next_rows(&mut scan, most, store, |&key, &value| {
            assert_eq!(rows.insert(key, value), None, "a row is shown once");
        })
        .unwrap()
    {}
    rows
}

#[test]
fn f16_times_that_are_gone_cost_nothing() {
    for cached_rows in [0, 10, 1_000_000] {
        let directory = tempfile::tempdir().unwrap();
        let store = store(directory.path(), cached_rows);
        let mut table = TimeTable::open(&store, &name(), ReadStrategy::Auto).unwrap();
        let mut costs = Vec::new();
        put(&mut table, &store, 0);
        for time in 0..ROUNDS {
            put(&mut table, &store, time + 1);
            let before = steps();
            assert_eq!(table.first_time(), Some(time));
            assert_eq!(rows_of(&mut table, &store, time, 7).len(), KEYS as usize);
            table.remove_time(time, &store).unwrap();
            costs.push(steps() - before);
        }
        let (early, late): (u64, u64) = (costs[1..11].iter().sum(), costs[990..].iter().sum());
        // Each of the 15 looks of a round steps once over the deletion ranges of a write buffer,
        // of which there are at most 256.
        let free = 10 * 15 * 2 * 256;
        assert!(2 * late <= 3 * early + free, "{cached_rows} rows kept: {costs:?}");
        let (_, statistics) = store.statistics().remove(0);
        if cached_rows > ROUNDS as usize {
            // The one look for times when the table was opened.
            assert_eq!((statistics.calls(), statistics.scan_calls), (1, 1), "nothing was ever written");
        }
    }
}

#[test]
fn rows_at_hand_and_rows_in_the_store_are_shown_once_each_as_they_are_now() {
    for cached_rows in [0, 1, 30, 150, 1_000] {
        let directory = tempfile::tempdir().unwrap();
        let store = store(directory.path(), cached_rows);
        let mut table = TimeTable::open(&store, &name(), ReadStrategy::MultiGet).unwrap();
        put(&mut table, &store, 1);
        put(&mut table, &store, -1);
        // Some rows change again, and some are taken away.
        for key in (0..KEYS).step_by(3) {
            let slot = table.request(&(1, key));
            table.as_state_table().load(&store).unwrap();
            *table.get_mut(slot) = (key % 2 == 0).then_some(1000 + key);
            settle(&mut table, &store);
        }
        let expected: BTreeMap<u64, u64> = (0..KEYS)
            .filter_map(|key| match (key % 3, key % 2) {
                (0, 0) => Some((key, 1000 + key)),
                (0, _) => None,
                _ => Some((key, key + 1)),
            })
            .collect();
        for most in [1, 10, usize::MAX] {
            assert_eq!(rows_of(&mut table, &store, 1, most), expected, "{cached_rows} rows kept");
        }
        assert_eq!(table.times(i64::MIN..i64::MAX).collect::<Vec<_>>(), [-1, 1]);
        table.as_state_table().flush(&store).unwrap();
        drop(table);
        drop(store);
        // A table that is opened again knows its times.
        let store = self::store(directory.path(), cached_rows);
        let mut table = TimeTable::<u64, u64>::open(&store, &name(), ReadStrategy::MultiGet).unwrap();
        assert_eq!(table.times(i64::MIN..i64::MAX).collect::<Vec<_>>(), [-1, 1]);
        assert_eq!(rows_of(&mut table, &store, 1, 10), expected);
        table.remove_time(1, &store).unwrap();
        assert_eq!((table.first_time(), rows_of(&mut table, &store, -1, 10).len()), (Some(-1), 100));
    }
}
