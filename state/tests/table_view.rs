//! The view of a release: it answers as single reads and writes would, whatever the strategy.

use proptest::prelude::*;
use std::collections::HashMap;
use std::rc::Rc;
use tidegate_state::backend::StateName;
use tidegate_state::batch::ChangeBatch;
use tidegate_state::error::StateError;
use tidegate_state::fault::{Faults, FaultyBackend};
use tidegate_state::group::KeyGroups;
use tidegate_state::memory::MemoryBackend;
use tidegate_state::rocks::{RocksBackend, RocksOptions};
use tidegate_state::row::{ByEntry, ByKey, Layout};
use tidegate_state::store::Store;
use tidegate_state::strategy::ReadStrategy;
use tidegate_state::table::{StateTable, Table};

fn memory_store() -> (Store, Rc<Faults>) {
    let (backend, faults) = FaultyBackend::new(MemoryBackend::new());
    (Store::new(backend, KeyGroups::default()), faults)
}

fn name() -> StateName {
    StateName::new("op", "s").unwrap()
}

fn commit<L: Layout>(table: &mut Table<L, i64>, store: &Store) {
    let mut batch = ChangeBatch::new();
    table.collect_changes(store, &mut batch).unwrap();
    store.commit(&mut batch).unwrap();
    table.end_release();
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
    assert_eq!(faults.calls.get(), 2, "one batched read and one commit");
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
    assert_eq!(faults.calls.get(), 1);
}

#[test]
fn an_undeclared_read_is_one_get_and_is_counted() {
    let (store, _) = memory_store();
    let mut table = Table::<ByKey<u64>, i64>::open(&store, &name(), ReadStrategy::MultiGet).unwrap();
    let declared = table.request(&1);
    table.load(&store).unwrap();
    assert_eq!(table.fetch(&1, &store).unwrap(), declared);
    let undeclared = table.fetch(&2, &store).unwrap();
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
        *faults.unreadable_key.borrow_mut() = Some(key.clone());
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
    ) {
        type Entries = ByEntry<u8, u8>;
        let run = |strategy: ReadStrategy| {
            let (store, _) = memory_store();
            let mut table = Table::<Entries, i64>::open(&store, &name(), strategy).unwrap();
            let mut answers = Vec::new();
            for release in &releases {
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
                commit(&mut table, &store);
            }
            answers
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
            prop_assert_eq!(run(strategy), expected.clone());
        }
    }
}
