//! Tables of lists that are appended to: what they read and write, and that nothing is lost.

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Duration;
use tidegate_state::backend::StateName;
use tidegate_state::batch::ChangeBatch;
use tidegate_state::codec;
use tidegate_state::fault::FaultyBackend;
use tidegate_state::group::KeyGroups;
use tidegate_state::memory::MemoryBackend;
use tidegate_state::readers::ReaderOptions;
use tidegate_state::row::{ByKey, Layout};
use tidegate_state::statistics::AccessStatistics;
use tidegate_state::store::Store;
use tidegate_state::strategy::ReadStrategy;
use tidegate_state::table::{Appended, CacheBudget, ReadAhead, StateTable, Table};

type Lists = Table<ByKey<u8>, Appended<u8>>;

fn open(store: &Store, strategy: ReadStrategy) -> Lists {
    Table::open(store, &StateName::new("op", "s").unwrap(), strategy).unwrap()
}

fn memory_store(rows: usize) -> Store {
    Store::new(MemoryBackend::new(), KeyGroups::default()).with_cache(CacheBudget::rows(rows))
}

fn push(table: &mut Lists, store: &Store, key: u8, value: u8) {
    table.append_to(&key, store).unwrap().elements.push(value);
}

fn commit(table: &mut Lists, store: &Store) {
    let mut batch = ChangeBatch::new();
    table.collect_changes(store, &mut batch).unwrap();
    store.commit(&mut batch).unwrap();
    table.end_release(store).unwrap();
}

fn read(table: &mut Lists, store: &Store, key: u8) -> Vec<u8> {
    let slot = table.fetch(&key, store).unwrap();
    table.get(slot).map_or_else(Vec::new, |list| list.elements.clone())
}

fn statistics(store: &Store) -> AccessStatistics {
    store.statistics().remove(0).1
}

/// What the store holds, each list with the number of its pieces.
fn stored(store: &Store, table: &Lists) -> BTreeMap<u8, (Vec<u8>, usize)> {
    let mut rows = BTreeMap::new();
    store
        .scan(table.state(), &[], None, &mut |row, value| {
            let mut elements = Vec::new();
            let pieces = codec::decode_pieces(value, &mut elements).unwrap();
            rows.insert(ByKey::<u8>::decode(row).unwrap(), (elements, pieces));
            ControlFlow::Continue(())
        })
        .unwrap();
    rows
}

#[test]
fn appends_and_clears_read_nothing() {
    for strategy in ReadStrategy::ALL {
        for rows in [0, 1, 10, 1000] {
            let store = memory_store(rows);
            let mut table = open(&store, strategy);
            for release in 0..50u8 {
                for key in 0..100u8 {
                    push(&mut table, &store, key, release);
                    if key % 10 == release % 10 {
                        table.remove(&key, &store).unwrap();
                    }
                }
                commit(&mut table, &store);
                if release == 30 {
                    table.flush(&store).unwrap();
                }
            }
            table.flush(&store).unwrap();
            let counted = statistics(&store);
            let reads = (counted.keys_read, counted.get_calls, counted.multi_get_calls, counted.scan_calls);
            assert_eq!(reads, (0, 0, 0, 0), "{strategy}, {rows} rows");
            assert_eq!((counted.keys_asked, counted.undeclared_reads), (0, 0));
            // Where all rows stay, they are written whole, twice.
            assert!(counted.appends > 3500 || counted.rows_given_up == 0 && rows == 1000, "{counted:?}");
            for (key, (list, _)) in stored(&store, &table) {
                let since = (0..50u8).rev().find(|release| release % 10 == key % 10).unwrap() + 1;
                assert_eq!(list, (since..50).collect::<Vec<u8>>(), "{strategy}, {rows} rows, key {key}");
            }
        }
    }
}

#[test]
fn a_tail_is_written_as_an_append_and_a_list_at_hand_as_a_whole() {
    let store = memory_store(1000);
    let mut table = open(&store, ReadStrategy::MultiGet);
    push(&mut table, &store, 1, 1);
    // Nothing was ever written, so the list is known to begin here.
    table.flush(&store).unwrap();
    assert_eq!((statistics(&store).puts, statistics(&store).appends), (1, 0));
    push(&mut table, &store, 2, 1);
    table.flush(&store).unwrap();
    assert_eq!((statistics(&store).puts, statistics(&store).appends), (1, 1));
    assert_eq!(table.len(), 1, "nothing is known of a row whose tail was written");
    push(&mut table, &store, 2, 2);
    assert_eq!(read(&mut table, &store, 2), [1, 2]);
    push(&mut table, &store, 2, 3);
    table.flush(&store).unwrap();
    assert_eq!((statistics(&store).puts, statistics(&store).appends), (2, 1));
    assert_eq!(stored(&store, &table), BTreeMap::from([(1, (vec![1], 1)), (2, (vec![1, 2, 3], 1))]));
}

#[test]
fn a_list_in_many_pieces_is_written_in_one_after_it_was_read() {
    for rows in [0, 1, 1000] {
        let store = memory_store(rows);
        let mut table = open(&store, ReadStrategy::MultiGet);
        // From here on, the store may hold rows.
        push(&mut table, &store, 0, 0);
        commit(&mut table, &store);
        table.flush(&store).unwrap();
        for value in 0..40u8 {
            push(&mut table, &store, 1, value);
            push(&mut table, &store, 2, value);
            commit(&mut table, &store);
            table.flush(&store).unwrap();
        }
        let before = stored(&store, &table);
        assert!(before[&1].1 >= 16, "{before:?}");
        table.request(&1);
        table.load(&store).unwrap();
        assert_eq!(read(&mut table, &store, 1), (0..40).collect::<Vec<u8>>());
        commit(&mut table, &store);
        table.flush(&store).unwrap();
        let after = stored(&store, &table);
        assert_eq!(after[&1], (before[&1].0.clone(), 1));
        assert_eq!(after[&2], before[&2], "what is not read is left as it is");
        let puts = statistics(&store).puts;
        table.request(&1);
        table.load(&store).unwrap();
        commit(&mut table, &store);
        table.flush(&store).unwrap();
        assert_eq!(statistics(&store).puts, puts, "what is in one piece is not written again");
    }
}

#[test]
fn a_damaged_row_is_named_and_a_tail_is_not_written_over_it() {
    let store = memory_store(0);
    let mut table = open(&store, ReadStrategy::MultiGet);
    let mut row = Vec::new();
    ByKey::<u8>::encode(&7, store.groups(), &mut row);
    let mut batch = ChangeBatch::new();
    batch.put(table.state(), &row, &[129, 200]);
    store.commit(&mut batch).unwrap();
    push(&mut table, &store, 7, 1);
    let error = table.fetch(&7, &store).unwrap_err().to_string();
    assert!(error.contains("op/s") && error.contains("a bad length"), "{error}");
}

#[test]
fn a_flush_writes_tails_of_rows_that_are_on_their_way() {
    let (backend, faults) = FaultyBackend::new(MemoryBackend::new());
    faults.set_longest_delay(Duration::from_millis(20));
    let readers = ReaderOptions { least_keys: 1, ..ReaderOptions::new(2, ReadAhead::On) };
    let store =
        Store::new(backend, KeyGroups::default()).with_cache(CacheBudget::rows(10)).with_readers(readers);
    let mut table = open(&store, ReadStrategy::Auto);
    let mut waited = 0;
    for round in 0..20u8 {
        // The first round is known to begin the list; the others know nothing of it.
        push(&mut table, &store, 1, round);
        table.request(&1);
        waited += u32::from(!table.start_load(&store).unwrap());
        table.flush(&store).unwrap();
        let expected: Vec<u8> = (0..=round).collect();
        assert_eq!(stored(&store, &table)[&1].0, expected);
        table.load(&store).unwrap();
        assert_eq!(read(&mut table, &store, 1), expected);
        commit(&mut table, &store);
        // Others take its place.
        for key in 2..=200u8 {
            push(&mut table, &store, key, 0);
        }
        commit(&mut table, &store);
    }
    assert!(waited > 10, "{waited} reads were waited for");
}

#[derive(Debug, Clone, Copy)]
enum Access {
    Push(u8, u8),
    Read(u8),
    Take(u8),
    Remove(u8),
}

#[derive(Debug, Clone)]
enum Turn {
    /// Rows declared ahead.
    Ahead(Vec<u8>),
    /// A release of accesses, each with whether it was declared.
    Release(Vec<(Access, bool)>),
    /// The same, and what is in memory is written in the midst of it.
    FlushedRelease(Vec<(Access, bool)>),
    Flush,
    Clear,
}

fn turn() -> impl Strategy<Value = Turn> {
    let access = || {
        prop_oneof![
            5 => (0..12u8, any::<u8>()).prop_map(|(key, value)| Access::Push(key, value)),
            3 => (0..12u8).prop_map(Access::Read),
            1 => (0..12u8).prop_map(Access::Take),
            1 => (0..12u8).prop_map(Access::Remove),
        ]
    };
    let accesses = move || proptest::collection::vec((access(), any::<bool>()), 0..20);
    prop_oneof![
        4 => proptest::collection::vec(0..12u8, 1..20).prop_map(Turn::Ahead),
        5 => accesses().prop_map(Turn::Release),
        1 => accesses().prop_map(Turn::FlushedRelease),
        1 => Just(Turn::Flush),
        1 => Just(Turn::Clear),
    ]
}

/// Plays turns on a table whose rows come from reader threads that dawdle; gives every list that
/// was seen, and what the store holds in the end.
fn play(
    turns: &[Turn],
    strategy: ReadStrategy,
    rows: usize,
    delay_us: u64,
) -> (Vec<Vec<u8>>, BTreeMap<u8, Vec<u8>>) {
    let (backend, faults) = FaultyBackend::new(MemoryBackend::new());
    faults.set_longest_delay(Duration::from_micros(delay_us));
    let readers = ReaderOptions { least_keys: 1, ..ReaderOptions::new(3, ReadAhead::On) };
    let store =
        Store::new(backend, KeyGroups::default()).with_cache(CacheBudget::rows(rows)).with_readers(readers);
    let mut table = open(&store, strategy);
    let mut seen = Vec::new();
    for turn in turns {
        match turn {
            Turn::Ahead(keys) => {
                if table.reads_ahead() {
                    table.begin_ahead();
                    keys.iter().for_each(|key| {
                        table.request(key);
                    });
                    table.end_ahead(&store).unwrap();
                }
            }
            Turn::Flush => table.flush(&store).unwrap(),
            Turn::Clear => table.clear(&store).unwrap(),
            Turn::Release(accesses) | Turn::FlushedRelease(accesses) => {
                for (access, declared) in accesses {
                    let (Access::Push(key, _) | Access::Read(key) | Access::Take(key) | Access::Remove(key)) =
                        access;
                    if *declared {
                        table.request(key);
                    }
                }
                if !table.start_load(&store).unwrap() {
                    while !table.continue_load(&store).unwrap() {
                        std::thread::yield_now();
                    }
                }
                for (number, &(access, _)) in accesses.iter().enumerate() {
                    match access {
                        Access::Push(key, value) => push(&mut table, &store, key, value),
                        Access::Read(key) => seen.push(read(&mut table, &store, key)),
                        Access::Take(key) => {
                            let slot = table.fetch(&key, &store).unwrap();
                            seen.push(table.get_mut(slot).take().map_or_else(Vec::new, |list| list.elements));
                        }
                        Access::Remove(key) => table.remove(&key, &store).unwrap(),
                    }
                    if matches!(turn, Turn::FlushedRelease(_)) && number % 5 == 2 {
                        table.flush(&store).unwrap();
                    }
                }
                commit(&mut table, &store);
            }
        }
    }
    table.flush(&store).unwrap();
    let left = stored(&store, &table).into_iter().map(|(key, (list, _))| (key, list));
    (seen, left.collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn lists_are_what_was_appended_whoever_reads_them_when(
        turns in proptest::collection::vec(turn(), 1..16),
        delay_us in prop_oneof![Just(0u64), Just(20), Just(150)],
    ) {
        let mut lists: BTreeMap<u8, Vec<u8>> = BTreeMap::new();
        let mut expected = Vec::new();
        for turn in &turns {
            let accesses = match turn {
                Turn::Release(accesses) | Turn::FlushedRelease(accesses) => accesses,
                Turn::Clear => {
                    lists.clear();
                    continue;
                }
                Turn::Ahead(_) | Turn::Flush => continue,
            };
            for &(access, _) in accesses {
                match access {
                    Access::Push(key, value) => lists.entry(key).or_default().push(value),
                    Access::Read(key) => expected.push(lists.get(&key).cloned().unwrap_or_default()),
                    Access::Take(key) => expected.push(lists.remove(&key).unwrap_or_default()),
                    Access::Remove(key) => {
                        lists.remove(&key);
                    }
                }
            }
        }
        for strategy in [ReadStrategy::MultiGet, ReadStrategy::Threads, ReadStrategy::Auto] {
            for rows in [0, 1, 10, 1000] {
                let (seen, left) = play(&turns, strategy, rows, delay_us);
                prop_assert_eq!(&seen, &expected, "{} with {} rows cached", strategy, rows);
                prop_assert_eq!(&left, &lists, "{} with {} rows cached", strategy, rows);
            }
        }
    }
}
