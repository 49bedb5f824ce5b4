//! The view of a release: it answers as single reads and writes would, whatever the strategy.

use proptest::prelude::*;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tidegate_state::backend::StateName;
use tidegate_state::batch::ChangeBatch;
use tidegate_state::error::StateError;
use tidegate_state::fault::{Faults, FaultyBackend};
use tidegate_state::group::KeyGroups;
use tidegate_state::memory::MemoryBackend;
use tidegate_state::readers::ReaderOptions;
use tidegate_state::rocks::{RocksBackend, RocksOptions};
use tidegate_state::row::{ByEntry, ByKey, Layout};
use tidegate_state::store::Store;
use tidegate_state::strategy::ReadStrategy;
use tidegate_state::table::{CacheBudget, ReadAhead, StateTable, Table};

fn memory_store() -> (Store, Arc<Faults>) {
    caching_store(0)
}

/// A store whose tables keep so many rows.
fn caching_store(rows: usize) -> (Store, Arc<Faults>) {
    let (backend, faults) = FaultyBackend::new(MemoryBackend::new());
    (Store::new(backend, KeyGroups::default()).with_cache(CacheBudget::rows(rows)), faults)
}

fn name() -> StateName {
    StateName::new("op", "s").unwrap()
}

fn commit<L: Layout>(table: &mut Table<L, i64>, store: &Store) {
    let mut batch = ChangeBatch::new();
    table.collect_changes(store, &mut batch).unwrap();
    store.commit(&mut batch).unwrap();
    table.end_release(store).unwrap();
}

#[test]
fn f01_six_questions_have_six_answers() {
    for strategy in ReadStrategy::ALL {
        let directory = tempfile::tempdir().unwrap();
        let backend = RocksBackend::open(directory.path(), &RocksOptions::default()).unwrap();
        let store = Store::new(backend, KeyGroups::default());
        let mut table = Table::<ByKey<String>, i64>::open(&store, &name(), strategy).unwrap();
        let write = |table: &mut Table<ByKey<String>, i64>, rows: &[(&str, i64)]| {
            for (key, value) in rows {
                let slot = table.request(&key.to_string());
                table.load(&store).unwrap();
                *table.get_mut(slot) = Some(*value);
            }
            commit(table, &store);
        };
        let ask = |table: &mut Table<ByKey<String>, i64>, layout: &str| {
            let slots: Vec<_> =
                ["b", "a", "b", "zz", "a", "b"].iter().map(|key| table.request(&key.to_string())).collect();
            table.load(&store).unwrap();
            let answers: Vec<_> = slots.iter().map(|&slot| table.get(slot).copied()).collect();
            assert_eq!(answers, [Some(2), Some(1), Some(2), None, Some(1), Some(2)], "{strategy}, {layout}");
            commit(table, &store);
        };
        write(&mut table, &[("a", 1), ("b", 2)]);
        ask(&mut table, "in memory");
        store.flush().unwrap();
        ask(&mut table, "flushed to one file, b its last key");
        write(&mut table, &[("b", 7)]);
        store.flush().unwrap();
        write(&mut table, &[("b", 2)]);
        ask(&mut table, "7 flushed, then 2 left in memory");
    }
}

#[test]
fn f02_read_delete_read_write_read_in_one_release() {
    for strategy in ReadStrategy::ALL {
        let (store, _) = memory_store();
        let mut table = Table::<ByKey<u64>, i64>::open(&store, &name(), strategy).unwrap();
        let slot = table.request(&1);
        table.load(&store).unwrap();
        *table.get_mut(slot) = Some(16);
        commit(&mut table, &store);

        let slots: Vec<_> = (0..5).map(|_| table.request(&1)).collect();
        table.load(&store).unwrap();
        assert_eq!(table.get(slots[0]), Some(&16));
        *table.get_mut(slots[1]) = None;
        assert_eq!(table.get(slots[2]), None);
        *table.get_mut(slots[3]) = Some(4);
        assert_eq!(table.get(slots[4]), Some(&4));
        commit(&mut table, &store);

        let slot = table.request(&1);
        table.load(&store).unwrap();
        assert_eq!(table.get(slot), Some(&4));
    }
}

#[test]
fn a_release_costs_one_call_and_one_commit() {
    let (store, faults) = memory_store();
    let mut table = Table::<ByKey<u64>, i64>::open(&store, &name(), ReadStrategy::MultiGet).unwrap();
    let slots: Vec<_> = (0..1000u64).map(|key| table.request(&(key % 300))).collect();
    table.load(&store).unwrap();
    for slot in slots {
        *table.get_mut(slot).get_or_insert(0) += 1;
    }
    commit(&mut table, &store);
    assert_eq!(faults.calls(), 2, "one batched read and one commit");
    let (_, statistics) = store.statistics().remove(0);
    assert_eq!((statistics.keys_asked, statistics.keys_distinct, statistics.keys_read), (1000, 300, 300));
    assert_eq!((statistics.multi_get_calls, statistics.get_calls), (1, 0));
    assert_eq!((statistics.puts, statistics.commits), (300, 1));
}

#[test]
fn what_is_only_read_is_not_written() {
    let (store, faults) = memory_store();
    let mut table = Table::<ByKey<u64>, i64>::open(&store, &name(), ReadStrategy::MultiGet).unwrap();
    let slot = table.request(&1);
    let gone = table.request(&2);
    table.load(&store).unwrap();
    assert_eq!(table.get(slot), None);
    // Set and taken away again: the store never had it, so there is nothing to delete.
    *table.get_mut(gone) = Some(1);
    *table.get_mut(gone) = None;
    commit(&mut table, &store);
    assert_eq!(faults.calls(), 1);
}

/// Adds 1 to some keys, in one release.
fn add_one(table: &mut Table<ByKey<u64>, i64>, store: &Store, keys: std::ops::Range<u64>) {
    let slots: Vec<_> = keys.map(|key| table.request(&key)).collect();
    table.load(store).unwrap();
    for slot in slots {
        *table.get_mut(slot).get_or_insert(0) += 1;
    }
    commit(table, store);
}

#[test]
fn rows_at_hand_do_not_touch_the_store() {
    let (store, faults) = caching_store(1000);
    let mut table = Table::<ByKey<u64>, i64>::open(&store, &name(), ReadStrategy::MultiGet).unwrap();
    let looked = faults.calls();
    for _ in 0..5 {
        add_one(&mut table, &store, 0..500);
    }
    // Nothing was ever written, so rows that are not at hand are known to be absent.
    assert_eq!(faults.calls(), looked);
    table.flush(&store).unwrap();
    assert_eq!(faults.calls(), looked + 1, "a flush is one commit");
    table.flush(&store).unwrap();
    assert_eq!(faults.calls(), looked + 1, "what is written is not written again");
    add_one(&mut table, &store, 0..500);
    assert_eq!(faults.calls(), looked + 1);
    // Now the store holds rows, and only it knows which of the others.
    add_one(&mut table, &store, 500..501);
    assert_eq!(faults.calls(), looked + 2);
    let (_, statistics) = store.statistics().remove(0);
    assert_eq!((statistics.keys_distinct, statistics.keys_at_hand, statistics.keys_read), (3001, 3000, 1));
}

#[test]
fn rows_that_are_given_up_are_written_first_and_read_again() {
    let (store, _) = caching_store(100);
    let mut table = Table::<ByKey<u64>, i64>::open(&store, &name(), ReadStrategy::MultiGet).unwrap();
    for _ in 0..3 {
        for start in (0..1000).step_by(50) {
            add_one(&mut table, &store, start..start + 50);
            assert!(table.len() <= 100, "{} rows are kept", table.len());
        }
    }
    let slots: Vec<_> = (0..1000u64).map(|key| table.request(&key)).collect();
    table.load(&store).unwrap();
    assert!(slots.into_iter().all(|slot| table.get(slot) == Some(&3)));
    let (_, statistics) = store.statistics().remove(0);
    assert!(statistics.rows_given_up >= 2900 && statistics.puts == statistics.rows_given_up);
}

#[test]
fn the_account_follows_the_size_of_values() {
    for value_bytes in [10usize, 1000, 100_000] {
        let limit = 10_000_000;
        let backend = MemoryBackend::new();
        let store = Store::new(backend, KeyGroups::default()).with_cache(CacheBudget::bytes(limit));
        let mut table = Table::<ByKey<u64>, Vec<u8>>::open(&store, &name(), ReadStrategy::MultiGet).unwrap();
        for key in 0..20_000_000 / value_bytes as u64 {
            let slot = table.request(&key);
            table.load(&store).unwrap();
            *table.get_mut(slot) = Some(vec![7; value_bytes]);
            if key % 10 == 9 {
                let mut batch = ChangeBatch::new();
                table.collect_changes(&store, &mut batch).unwrap();
                assert!(batch.is_empty());
                table.end_release(&store).unwrap();
            }
        }
        let held = table.len() * value_bytes;
        assert!(held <= limit, "{held} bytes of values are held");
        if value_bytes >= 1000 {
            assert!(held >= limit / 2, "only {held} bytes of values are held");
        }
        drop(table);
        assert_eq!(store.cache_budget().used_bytes(), 0);
    }
}

#[test]
fn an_undeclared_read_is_one_get_and_is_counted() {
    let (store, _) = memory_store();
    let mut table = Table::<ByKey<u64>, i64>::open(&store, &name(), ReadStrategy::MultiGet).unwrap();
    let declared = table.request(&1);
    table.request(&2);
    table.load(&store).unwrap();
    assert_eq!(table.fetch(&1, &store).unwrap(), declared);
    let undeclared = table.fetch(&3, &store).unwrap();
    assert_eq!(table.get(undeclared), None);
    let (_, statistics) = store.statistics().remove(0);
    assert_eq!((statistics.undeclared_reads, statistics.get_calls), (1, 1));
}

#[test]
fn f15_a_failed_read_names_state_and_key_and_changes_nothing() {
    for strategy in ReadStrategy::ALL {
        let (store, faults) = memory_store();
        let mut table = Table::<ByKey<u64>, i64>::open(&store, &name(), strategy).unwrap();
        let mut key = Vec::new();
        ByKey::<u64>::encode(&7, store.groups(), &mut key);
        faults.set_unreadable_key(Some(key.clone()));
        for key in [6, 7, 8] {
            table.request(&key);
        }
        let error = table.load(&store).unwrap_err();
        assert!(matches!(error, StateError::Read { .. }), "{strategy}: {error}");
        let message = error.to_string();
        assert!(message.contains("op/s") && message.contains(&tidegate_state::error::hex(&key)), "{message}");
    }
}

#[test]
fn a_stored_value_of_another_type_is_an_error() {
    for strategy in ReadStrategy::ALL {
        let (store, _) = memory_store();
        let mut table = Table::<ByKey<u64>, i64>::open(&store, &name(), strategy).unwrap();
        let mut batch = ChangeBatch::new();
        let mut key = Vec::new();
        ByKey::<u64>::encode(&7, store.groups(), &mut key);
        batch.put(table.state(), &key, &[1, 2, 3, 4]);
        store.commit(&mut batch).unwrap();
        for key in 0..20 {
            table.request(&key);
        }
        let message = table.load(&store).unwrap_err().to_string();
        assert!(message.contains("op/s") && message.contains("left over"), "{message}");
    }
}

#[derive(Debug, Clone)]
enum Access {
    Read(u8),
    Add(u8, i8),
    Delete(u8),
}

fn access() -> impl Strategy<Value = Access> {
    prop_oneof![
        (0..12u8).prop_map(Access::Read),
        (0..12u8, any::<i8>()).prop_map(|(key, by)| Access::Add(key, by)),
        (0..12u8).prop_map(Access::Delete),
    ]
}

proptest! {
    #[test]
    fn releases_of_accesses_equal_a_plain_map(
        releases in proptest::collection::vec(proptest::collection::vec(access(), 0..30), 1..8),
        forget_to_declare in any::<u8>(),
        flush_after in any::<u8>(),
    ) {
        type Entries = ByEntry<u8, u8>;
        let run = |strategy: ReadStrategy, rows: usize| {
            let (store, _) = caching_store(rows);
            let mut table = Table::<Entries, i64>::open(&store, &name(), strategy).unwrap();
            let mut answers = Vec::new();
            for (number, release) in releases.iter().enumerate() {
                let row = |key: u8| (key % 3, key);
                for (index, access) in release.iter().enumerate() {
                    let (Access::Read(key) | Access::Add(key, _) | Access::Delete(key)) = access;
                    if index as u8 % 8 != forget_to_declare {
                        table.request(&row(*key));
                    }
                }
                table.load(&store).unwrap();
                for access in release {
                    let (Access::Read(key) | Access::Add(key, _) | Access::Delete(key)) = access;
                    let slot = table.fetch(&row(*key), &store).unwrap();
                    match access {
                        Access::Read(_) => {}
                        Access::Add(_, by) => *table.get_mut(slot).get_or_insert(0) += i64::from(*by),
                        Access::Delete(_) => *table.get_mut(slot) = None,
                    }
                    answers.push(table.get(slot).copied());
                }
                if number as u8 % 4 == flush_after {
                    table.flush(&store).unwrap();
                }
                commit(&mut table, &store);
            }
            // After a flush the store alone must hold what the table holds.
            table.flush(&store).unwrap();
            let mut left = HashMap::new();
            store.scan(table.state(), &[], None, &mut |row, value| {
                let (_, key) = Entries::decode(row).unwrap();
                left.insert(key, tidegate_state::codec::decode::<i64>(value).unwrap());
                std::ops::ControlFlow::Continue(())
            }).unwrap();
            (answers, left)
        };
        let mut model: HashMap<u8, i64> = HashMap::new();
        let mut expected = Vec::new();
        for access in releases.iter().flatten() {
            let (Access::Read(key) | Access::Add(key, _) | Access::Delete(key)) = access;
            match access {
                Access::Read(_) => {}
                Access::Add(_, by) => *model.entry(*key).or_default() += i64::from(*by),
                Access::Delete(_) => { model.remove(key); }
            }
            expected.push(model.get(key).copied());
        }
        for strategy in ReadStrategy::ALL {
            for rows in [0, 1, 10, 1000] {
                prop_assert_eq!(run(strategy, rows), (expected.clone(), model.clone()));
            }
        }
    }
}

fn request_all<L: Layout>(table: &mut Table<L, i64>, rows: impl IntoIterator<Item = L::Row>) {
    for row in rows {
        table.request(&row);
    }
}

/// One step of a table's life under a reader pool.
#[derive(Debug, Clone)]
enum Turn {
    /// Rows declared ahead.
    Ahead(Vec<u8>),
    /// A release of accesses, some of which were not declared.
    Release(Vec<(Access, bool)>),
    Flush,
    Clear,
}

fn turn() -> impl Strategy<Value = Turn> {
    prop_oneof![
        3 => proptest::collection::vec(0..12u8, 1..20).prop_map(Turn::Ahead),
        3 => proptest::collection::vec((access(), proptest::bool::weighted(0.9)), 0..20).prop_map(Turn::Release),
        1 => Just(Turn::Flush),
        1 => Just(Turn::Clear),
    ]
}

/// Plays turns on a table whose rows come from reader threads, and gives every value that the
/// accesses saw.
fn play(turns: &[Turn], strategy: ReadStrategy, rows: usize, delay_us: u64) -> (Vec<Option<i64>>, u64) {
    let (backend, faults) = FaultyBackend::new(MemoryBackend::new());
    faults.set_longest_delay(Duration::from_micros(delay_us));
    let readers = ReaderOptions { least_keys: 1, ..ReaderOptions::new(3, ReadAhead::On) };
    let store =
        Store::new(backend, KeyGroups::default()).with_cache(CacheBudget::rows(rows)).with_readers(readers);
    let mut table = Table::<ByKey<u8>, i64>::open(&store, &name(), strategy).unwrap();
    let mut answers = Vec::new();
    for turn in turns {
        match turn {
            Turn::Ahead(keys) => {
                if table.reads_ahead() {
                    table.begin_ahead();
                    request_all(&mut table, keys.iter().copied());
                    table.end_ahead(&store).unwrap();
                }
            }
            Turn::Flush => table.flush(&store).unwrap(),
            Turn::Clear => table.clear(&store).unwrap(),
            Turn::Release(accesses) => {
                for (Access::Read(key) | Access::Add(key, _) | Access::Delete(key), declared) in accesses {
                    if *declared {
                        table.request(key);
                    }
                }
                if !table.start_load(&store).unwrap() {
                    while !table.continue_load(&store).unwrap() {
                        std::thread::yield_now();
                    }
                }
                for (access, _) in accesses {
                    let (Access::Read(key) | Access::Add(key, _) | Access::Delete(key)) = access;
                    let slot = table.fetch(key, &store).unwrap();
                    match access {
                        Access::Read(_) => {}
                        Access::Add(_, by) => *table.get_mut(slot).get_or_insert(0) += i64::from(*by),
                        Access::Delete(_) => *table.get_mut(slot) = None,
                    }
                    answers.push(table.get(slot).copied());
                }
                commit(&mut table, &store);
            }
        }
    }
    let (_, statistics) = store.statistics().remove(0);
    (answers, statistics.ahead_hits)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    /// F02: what an earlier release writes wins over what was read ahead, however late it comes.
    #[test]
    fn f02_rows_read_ahead_never_show_an_old_value(
        turns in proptest::collection::vec(turn(), 1..12),
        delay_us in prop_oneof![Just(0u64), Just(20), Just(150)],
    ) {
        let mut model: HashMap<u8, i64> = HashMap::new();
        let mut expected = Vec::new();
        for turn in &turns {
            let accesses = match turn {
                Turn::Release(accesses) => accesses,
                Turn::Clear => {
                    model.clear();
                    continue;
                }
                Turn::Ahead(_) | Turn::Flush => continue,
            };
            for (access, _) in accesses {
                let (Access::Read(key) | Access::Add(key, _) | Access::Delete(key)) = access;
                match access {
                    Access::Read(_) => {}
                    Access::Add(_, by) => *model.entry(*key).or_default() += i64::from(*by),
                    Access::Delete(_) => { model.remove(key); }
                }
                expected.push(model.get(key).copied());
            }
        }
        for strategy in [ReadStrategy::Threads, ReadStrategy::Auto] {
            for rows in [0, 1, 4, 1000] {
                let (answers, _) = play(&turns, strategy, rows, delay_us);
                prop_assert_eq!(&answers, &expected, "{} with {} rows cached", strategy, rows);
            }
        }
    }
}

#[test]
fn rows_that_are_read_ahead_are_hits_and_those_that_nobody_wants_are_counted() {
    let readers = ReaderOptions { least_keys: 1, ..ReaderOptions::new(1, ReadAhead::On) };
    let (backend, _) = FaultyBackend::new(MemoryBackend::new());
    let store = Store::new(backend, KeyGroups::default()).with_readers(readers);
    let mut table = Table::<ByKey<u64>, i64>::open(&store, &name(), ReadStrategy::Auto).unwrap();
    let mut release = |keys: std::ops::Range<u64>, ahead: std::ops::Range<u64>| {
        table.begin_ahead();
        request_all(&mut table, ahead);
        table.end_ahead(&store).unwrap();
        let slots: Vec<_> = keys.map(|key| table.request(&key)).collect();
        table.load(&store).unwrap();
        slots.iter().for_each(|&slot| *table.get_mut(slot).get_or_insert(0) += 1);
        commit(&mut table, &store);
    };
    release(0..50, 0..100);
    for _ in 0..100 {
        release(0..1, 0..0);
    }
    let (_, statistics) = store.statistics().remove(0);
    assert_eq!((statistics.keys_ahead, statistics.ahead_hits, statistics.ahead_wasted), (100, 50, 50));
    assert_eq!(statistics.keys_read, 200);
}

#[test]
fn f15_a_failed_read_in_a_reader_thread_names_state_and_key() {
    for (strategy, ahead) in [
        (ReadStrategy::Threads, ReadAhead::Off),
        (ReadStrategy::Auto, ReadAhead::On),
        (ReadStrategy::MultiGet, ReadAhead::On),
    ] {
        let (backend, faults) = FaultyBackend::new(MemoryBackend::new());
        let readers = ReaderOptions { least_keys: 1, ..ReaderOptions::new(2, ahead) };
        let store = Store::new(backend, KeyGroups::default()).with_readers(readers);
        let mut table = Table::<ByKey<u64>, i64>::open(&store, &name(), strategy).unwrap();
        let mut key = Vec::new();
        ByKey::<u64>::encode(&77, store.groups(), &mut key);
        faults.set_unreadable_key(Some(key.clone()));
        request_all(&mut table, 0..100);
        let message = table.load(&store).unwrap_err().to_string();
        assert!(message.contains("op/s") && message.contains(&tidegate_state::error::hex(&key)), "{message}");
    }
}
