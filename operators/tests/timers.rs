//! Timers of process functions: random programs against a model that goes through each key alone, and
//! the cases of the known faults.

use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use tidegate_operators::event::{Event, Rank, Time};
use tidegate_operators::frontier::Frontier;
use tidegate_operators::keyed::{Keyed, Progress};
use tidegate_operators::policy::BatchPolicy;
use tidegate_operators::process::{Emitter, Process, ProcessLogic};
use tidegate_state::backend::Backend;
use tidegate_state::error::StateError;
use tidegate_state::group::KeyGroups;
use tidegate_state::keyed::{States, Timers, ValueState};
use tidegate_state::memory::MemoryBackend;
use tidegate_state::readers::ReaderOptions;
use tidegate_state::rocks::{RocksBackend, RocksOptions};
use tidegate_state::store::Store;
use tidegate_state::strategy::ReadStrategy;
use tidegate_state::table::{CacheBudget, ReadAhead};

/// What a record tells the process function to do, in this order: timers to set and to take back.
#[derive(Debug, Clone, Default)]
struct Command {
    set: Vec<Time>,
    delete: Vec<Time>,
}

/// A record: time, position, key, command.
type Record = (Time, u64, String, Command);

/// A result: its time, key, and what was seen.
type Seen = (Time, String, String);

/// Sets and deletes timers as records say. A timer whose time is a multiple of 3 sets one for the next
/// time, and one whose time is a multiple of 5 takes back that of 2 later.
struct Interpreter {
    timers: Timers<String>,
    /// Records and timers of the key so far.
    turns: ValueState<String, u32>,
    declares: bool,
}

impl Interpreter {
    fn open(states: &mut States<String>, declares: bool) -> Result<Self, StateError> {
        Ok(Interpreter { timers: states.timers()?, turns: states.value("turns")?, declares })
    }

    fn turn(&mut self) -> Result<u32, StateError> {
        self.turns.update(|turns| {
            let turns = turns.get_or_insert(0);
            *turns += 1;
            *turns
        })
    }
}

impl Process for Interpreter {
    type Key = String;
    type Input = Command;
    type Output = Seen;

    fn declare(&self, _: &String, _: &Command, _: Time) {
        if self.declares {
            self.turns.declare();
        }
    }

    fn process(
        &mut self,
        key: &String,
        input: Command,
        out: &mut Emitter<'_, Seen>,
    ) -> Result<(), StateError> {
        let turn = self.turn()?;
        input.set.iter().for_each(|&time| self.timers.set(time));
        input.delete.iter().for_each(|&time| self.timers.delete(time));
        out.emit((out.time(), key.clone(), format!("record, turn {turn}")));
        Ok(())
    }

    fn declare_timer(&self, _: &String, _: Time) {
        if self.declares {
            self.turns.declare();
        }
    }

    fn on_timer(&mut self, key: &String, time: Time, out: &mut Emitter<'_, Seen>) -> Result<(), StateError> {
        let turn = self.turn()?;
        if time % 3 == 0 {
            self.timers.set(time + 1);
        }
        if time % 5 == 0 {
            self.timers.delete(time + 2);
        }
        out.emit((out.time(), key.clone(), format!("timer {time}, turn {turn}")));
        Ok(())
    }
}

/// One key alone: its records in order, its timers as a sorted set.
fn model_of_key(key: &str, records: &[(Time, u64, Command)]) -> Vec<(Time, Option<u64>, Seen)> {
    fn set(timers: &mut BTreeSet<(Time, Time)>, time: Time, now: Time) {
        if !timers.iter().any(|&(_, set_for)| set_for == time) {
            timers.insert((time.max(now), time));
        }
    }
    let (mut timers, mut turn, mut rows) = (BTreeSet::new(), 0, Vec::new());
    let fire = |timers: &mut BTreeSet<(Time, Time)>,
                before: Option<Time>,
                turn: &mut u32,
                rows: &mut Vec<_>| {
        while let Some(&(fires_at, time)) = timers.first()
            && before.is_none_or(|before| fires_at < before)
        {
            timers.pop_first();
            *turn += 1;
            if time % 3 == 0 {
                set(timers, time + 1, fires_at);
            }
            if time % 5 == 0 {
                timers.retain(|&(_, set_for)| set_for != time + 2);
            }
            rows.push((fires_at, None, (fires_at, key.to_string(), format!("timer {time}, turn {turn}"))));
        }
    };
    for (time, position, command) in records {
        fire(&mut timers, Some(*time), &mut turn, &mut rows);
        turn += 1;
        command.set.iter().for_each(|&other| set(&mut timers, other, *time));
        command.delete.iter().for_each(|&other| timers.retain(|&(_, set_for)| set_for != other));
        rows.push((*time, Some(*position), (*time, key.to_string(), format!("record, turn {turn}"))));
    }
    fire(&mut timers, None, &mut turn, &mut rows);
    rows
}

fn model(records: &[Record]) -> Vec<Seen> {
    let mut keys: BTreeMap<&str, Vec<(Time, u64, Command)>> = BTreeMap::new();
    for (time, position, key, command) in records {
        keys.entry(key).or_default().push((*time, *position, command.clone()));
    }
    let mut rows = Vec::new();
    for (key, mut records) in keys {
        records.sort_by_key(|&(time, position, _)| (time, position));
        rows.extend(model_of_key(key, &records));
    }
    // At one time: records as they came, then timers by key.
    rows.sort_by(|a, b| {
        let place = |row: &(Time, Option<u64>, Seen)| (row.0, row.1.is_none(), row.1);
        place(a)
            .cmp(&place(b))
            .then_with(|| if a.1.is_none() { a.2.1.cmp(&b.2.1) } else { std::cmp::Ordering::Equal })
    });
    rows.into_iter().map(|(_, _, seen)| seen).collect()
}

/// An operator under test, with what it has issued and what it has promised.
struct Driven {
    keyed: Keyed<ProcessLogic<Interpreter>>,
    rows: Vec<(Time, Rank, Seen)>,
    /// No result may come before it; none where nothing may come.
    held: Option<Time>,
}

impl Driven {
    fn new(store: &Rc<Store>, strategy: ReadStrategy, keys_per_chunk: usize, declares: bool) -> Self {
        let states = States::new(Rc::clone(store), "op", strategy);
        let logic = ProcessLogic::open(states, |states| Interpreter::open(states, declares)).unwrap();
        let keyed = Keyed::new(logic, Rc::clone(store), strategy, BatchPolicy { keys_per_chunk });
        let held = keyed.earliest_result();
        Driven { keyed, rows: Vec::new(), held }
    }

    fn accept(&mut self, records: &[Record]) {
        let earliest = records.iter().map(|&(time, ..)| time).min();
        self.held = self.held.into_iter().chain(earliest).min();
        let events = records.iter().map(|(time, position, key, command)| {
            Event::new(*time, 0, *position, (key.clone(), command.clone()))
        });
        self.keyed.accept_all(events, |_| panic!("no record is late")).unwrap();
    }

    /// Goes on as far as it goes without waiting, or to the end.
    fn advance(&mut self, frontier: Frontier, to_the_end: bool) {
        loop {
            let (rows, held) = (&mut self.rows, self.held);
            let progress = self.keyed.advance(frontier, |events| {
                for Event { time, rank, data } in events.drain(..) {
                    assert!(held.is_some_and(|held| held <= time), "a result at {time} behind {held:?}");
                    rows.push((time, rank, data));
                }
            });
            self.held = self.keyed.earliest_result();
            if progress.unwrap() == Progress::Done || !to_the_end {
                return;
            }
        }
    }

    /// Rows so far, in the order of (time, rank); those that agree in both as they came.
    fn take_rows(&mut self) -> Vec<Seen> {
        let mut rows = std::mem::take(&mut self.rows);
        rows.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        rows.into_iter().map(|(_, _, seen)| seen).collect()
    }

    fn timers_fired(&mut self) -> Vec<Time> {
        let rows = self.take_rows().into_iter().filter_map(|(_, _, text)| {
            let timer = text.strip_prefix("timer ")?;
            timer.split_once(',').map(|(time, _)| time.parse().unwrap())
        });
        rows.collect()
    }
}

fn run(
    backend: impl Backend + 'static,
    records: &[Record],
    steps: &[usize],
    strategy: ReadStrategy,
    (keys_per_chunk, cached_rows, declares): (usize, usize, bool),
    readers: ReaderOptions,
) -> Vec<Seen> {
    let store = Store::new(backend, KeyGroups::default());
    let store = Rc::new(store.with_cache(CacheBudget::rows(cached_rows)).with_readers(readers));
    let mut driven = Driven::new(&store, strategy, keys_per_chunk, declares);
    let mut arrived = 0;
    for &step in steps {
        let until = (arrived + step).min(records.len());
        driven.accept(&records[arrived..until]);
        arrived = until;
        if let Some(least) = records[arrived..].iter().map(|&(time, ..)| time).min() {
            driven.advance(Frontier::At(least), step % 3 == 0);
        }
    }
    driven.accept(&records[arrived..]);
    driven.advance(Frontier::Ended, true);
    assert_eq!(driven.keyed.earliest_result(), None, "nothing is left to come");
    let rows = driven.take_rows();
    driven.keyed.flush().unwrap();
    drop(driven);
    for (name, statistics) in store.statistics() {
        if name.to_string().contains("turns") && declares {
            assert_eq!(statistics.undeclared_reads, 0, "reads for timers that were known join a batch");
        }
    }
    rows
}

fn records() -> impl Strategy<Value = Vec<Record>> {
    let times = || proptest::collection::vec(-30i64..40, 0..4);
    let command = (times(), times()).prop_map(|(set, delete)| Command { set, delete });
    let key = prop_oneof![Just(""), Just("a"), Just("aa"), Just("b")];
    proptest::collection::vec((-20i64..30, key, command), 0..30).prop_map(|records| {
        let numbered = records.into_iter().enumerate();
        numbered.map(|(n, (time, key, command))| (time, n as u64, key.to_string(), command)).collect()
    })
}

fn readers() -> impl Strategy<Value = ReaderOptions> {
    prop_oneof![
        Just(ReaderOptions::default()),
        Just(ReaderOptions { least_keys: 1, ..ReaderOptions::new(2, ReadAhead::On) }),
    ]
}

fn setting() -> impl Strategy<Value = (usize, usize, bool)> {
    (
        prop_oneof![1usize..6, Just(4096)],
        prop_oneof![Just(0usize), Just(1), Just(10), Just(1000)],
        any::<bool>(),
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn timers_equal_a_sorted_set_of_each_key(
        records in records(),
        steps in proptest::collection::vec(0usize..10, 0..8),
        setting in setting(),
        readers in readers(),
    ) {
        let expected = model(&records);
        for strategy in ReadStrategy::ALL {
            let rows = run(MemoryBackend::new(), &records, &steps, strategy, setting, readers);
            prop_assert_eq!(&rows, &expected, "{} in memory", strategy);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]
    #[test]
    fn timers_equal_a_sorted_set_of_each_key_in_rocksdb(
        records in records(),
        steps in proptest::collection::vec(0usize..10, 0..8),
        setting in setting(),
        readers in readers(),
    ) {
        let expected = model(&records);
        for strategy in ReadStrategy::ALL {
            let directory = tempfile::tempdir().unwrap();
            let backend = RocksBackend::open(directory.path(), &RocksOptions::default()).unwrap();
            let rows = run(backend, &records, &steps, strategy, setting, readers);
            prop_assert_eq!(&rows, &expected, "{} in RocksDB", strategy);
        }
    }
}

fn in_memory() -> Rc<Store> {
    Rc::new(Store::new(MemoryBackend::new(), KeyGroups::default()))
}

fn in_rocksdb(directory: &std::path::Path, cached_rows: usize) -> Rc<Store> {
    let options = RocksOptions { memory_bytes: 8 << 20, ..RocksOptions::default() };
    let store = Store::new(RocksBackend::open(directory, &options).unwrap(), KeyGroups::default());
    Rc::new(store.with_cache(CacheBudget::rows(cached_rows)))
}

fn record(time: Time, key: &str, set: &[Time], delete: &[Time]) -> Record {
    (time, 0, key.to_string(), Command { set: set.to_vec(), delete: delete.to_vec() })
}

#[test]
fn f04_a_timer_set_while_timers_fire_takes_its_place() {
    for strategy in ReadStrategy::ALL {
        let mut driven = Driven::new(&in_memory(), strategy, 4096, true);
        // The timer for 9 sets one for 10, which sets none.
        driven.accept(&[record(0, "k", &[9, 11], &[])]);
        driven.advance(Frontier::At(20), true);
        driven.advance(Frontier::At(20), true);
        assert_eq!(driven.timers_fired(), [9, 10, 11], "{strategy}");
    }
}

#[test]
fn f05_timers_keep_numeric_order_fire_once_and_can_be_taken_back() {
    let directory = tempfile::tempdir().unwrap();
    for (strategy, store) in
        [(ReadStrategy::MultiGet, in_memory()), (ReadStrategy::Auto, in_rocksdb(directory.path(), 0))]
    {
        let mut driven = Driven::new(&store, strategy, 4096, true);
        driven.accept(&[record(-5, "k", &[256, 1, 65_536, 253, 253, -1], &[65_536])]);
        driven.advance(Frontier::At(300), true);
        assert_eq!(driven.timers_fired(), [-1, 1, 253, 256]);
        driven.accept(&[record(300, "k", &[2], &[])]);
        driven.advance(Frontier::At(301), true);
        assert_eq!(driven.timers_fired(), [2], "a past timer fires once, at the time at hand");
        driven.advance(Frontier::At(100_000), true);
        assert_eq!(driven.timers_fired(), []);
        assert_eq!(driven.keyed.earliest_result(), None);
    }
}

#[test]
fn f17_timers_of_a_closed_store_fire_without_another_record() {
    for cached_rows in [0, 1000] {
        let directory = tempfile::tempdir().unwrap();
        let store = in_rocksdb(directory.path(), cached_rows);
        let mut driven = Driven::new(&store, ReadStrategy::Auto, 4096, true);
        driven.accept(&[record(0, "a", &[10, 20], &[]), record(4, "b", &[10], &[])]);
        driven.advance(Frontier::At(9), true);
        driven.keyed.flush().unwrap();
        store.flush().unwrap();
        drop((driven, store));
        let store = in_rocksdb(directory.path(), cached_rows);
        let mut driven = Driven::new(&store, ReadStrategy::Auto, 4096, true);
        assert_eq!(driven.keyed.earliest_result(), Some(10));
        driven.advance(Frontier::At(15), true);
        let text = |key: &str, turn: u32| (10, key.to_string(), format!("timer 10, turn {turn}"));
        assert_eq!(driven.take_rows(), [text("a", 2), text("b", 2)]);
        assert_eq!(driven.keyed.earliest_result(), Some(20));
    }
}

#[test]
fn more_timers_than_are_taken_up_at_once_fire_in_order_with_their_records() {
    let directory = tempfile::tempdir().unwrap();
    let store = in_rocksdb(directory.path(), 0);
    let mut driven = Driven::new(&store, ReadStrategy::Auto, 4096, true);
    let keys: Vec<String> = (0..200).map(|key| format!("{key:03}")).collect();
    let mut records = Vec::new();
    for key in &keys {
        // None of the times sets another one or takes one back.
        let times: Vec<Time> = (0..1000).map(|n| 1 + 15 * n).collect();
        records.push(record(0, key, &times, &[]));
        records.push(record(7_502, key, &[], &[]));
    }
    driven.accept(&records);
    driven.advance(Frontier::At(1), true);
    driven.advance(Frontier::Ended, true);
    let rows = driven.take_rows();
    assert_eq!(rows.len(), keys.len() * 1002);
    let of_key: Vec<_> = rows.iter().filter(|(_, key, _)| *key == keys[77]).collect();
    assert!(of_key.is_sorted_by_key(|(time, ..)| *time));
    // The record at 7,502 comes after the timers up to 7,501: turn 502 after the first record's.
    assert!(of_key.iter().any(|(time, _, text)| *time == 7_502 && text == "record, turn 503"), "{of_key:?}");
}
