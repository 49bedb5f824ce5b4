//! Process functions over value, list and map state: random programs, against plain maps.

use proptest::prelude::*;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::time::Duration;
use tidegate_operators::event::{Event, Time};
use tidegate_operators::frontier::Frontier;
use tidegate_operators::keyed::{Keyed, Progress};
use tidegate_operators::policy::BatchPolicy;
use tidegate_operators::process::{Emitter, Process, ProcessLogic};
use tidegate_state::backend::Backend;
use tidegate_state::error::StateError;
use tidegate_state::fault::FaultyBackend;
use tidegate_state::group::KeyGroups;
use tidegate_state::keyed::{ListState, MapState, States, ValueState};
use tidegate_state::memory::MemoryBackend;
use tidegate_state::readers::ReaderOptions;
use tidegate_state::rocks::{RocksBackend, RocksOptions};
use tidegate_state::store::Store;
use tidegate_state::strategy::ReadStrategy;
use tidegate_state::table::{CacheBudget, ReadAhead};

/// What a record tells the process function to do.
#[derive(Debug, Clone)]
enum Command {
    Add(i8),
    ClearValue,
    Push(u8),
    ClearList,
    Set(u8, u8),
    Remove(u8),
    Entries,
    ClearMap,
}

/// Does what records say, and shows all it can see after each.
struct Interpreter {
    value: ValueState<String, i64>,
    list: ListState<String, u8>,
    map: MapState<String, u8, u8>,
    /// Leaves out every n-th declaration; nothing may change by that but the statistics.
    forgetful: u8,
}

impl Process for Interpreter {
    type Key = String;
    type Input = Command;
    type Output = (String, String);

    fn declare(&self, _: &String, input: &Command, time: Time) {
        if time.rem_euclid(8) == i64::from(self.forgetful) {
            return;
        }
        self.value.declare();
        self.list.declare();
        if let Command::Set(entry, _) | Command::Remove(entry) = input {
            self.map.declare(entry);
        }
    }

    fn process(
        &mut self,
        key: &String,
        input: Command,
        out: &mut Emitter<'_, (String, String)>,
    ) -> Result<(), StateError> {
        match input {
            Command::Add(by) => self.value.update(|value| *value.get_or_insert(0) += i64::from(by))?,
            Command::ClearValue => self.value.clear()?,
            Command::Push(value) => self.list.push(value)?,
            Command::ClearList => self.list.clear()?,
            Command::Set(entry, value) => self.map.set(&entry, value)?,
            Command::Remove(entry) => self.map.remove(&entry)?,
            Command::Entries => {
                let entries = self.map.entries()?;
                out.emit((key.clone(), format!("entries {entries:?}")));
            }
            Command::ClearMap => self.map.clear()?,
        }
        let list = self.list.with(<[u8]>::to_vec)?;
        out.emit((key.clone(), format!("{:?} {list:?} {:?}", self.value.get()?, self.map.get(&1)?)));
        Ok(())
    }
}

#[derive(Default)]
struct ModelState {
    value: Option<i64>,
    list: Vec<u8>,
    map: BTreeMap<u8, u8>,
}

fn model(mut records: Vec<(i64, u64, String, Command)>) -> Vec<(i64, String, String)> {
    records.sort_by_key(|&(time, position, ..)| (time, position));
    let mut states: HashMap<String, ModelState> = HashMap::new();
    let mut rows = Vec::new();
    for (time, _, key, command) in records {
        let state = states.entry(key.clone()).or_default();
        match command {
            Command::Add(by) => state.value = Some(state.value.unwrap_or(0) + i64::from(by)),
            Command::ClearValue => state.value = None,
            Command::Push(value) => state.list.push(value),
            Command::ClearList => state.list.clear(),
            Command::Set(entry, value) => {
                state.map.insert(entry, value);
            }
            Command::Remove(entry) => {
                state.map.remove(&entry);
            }
            Command::Entries => {
                let entries: Vec<_> = state.map.clone().into_iter().collect();
                rows.push((time, key.clone(), format!("entries {entries:?}")));
            }
            Command::ClearMap => state.map.clear(),
        }
        rows.push((time, key, format!("{:?} {:?} {:?}", state.value, state.list, state.map.get(&1))));
    }
    rows
}

#[allow(clippy::too_many_arguments)]
fn run(
    backend: impl Backend + 'static,
    records: &[(i64, u64, String, Command)],
    steps: &[usize],
    strategy: ReadStrategy,
    keys_per_chunk: usize,
    forgetful: u8,
    cached_rows: usize,
    readers: ReaderOptions,
) -> Vec<(i64, String, String)> {
    let store = Store::new(backend, KeyGroups::default())
        .with_cache(CacheBudget::rows(cached_rows))
        .with_readers(readers);
    let store = Rc::new(store);
    let states = States::new(Rc::clone(&store), "interpreter", strategy);
    let logic = ProcessLogic::open(states, |states| {
        Ok(Interpreter {
            value: states.value("value")?,
            list: states.list("list")?,
            map: states.map("map")?,
            forgetful,
        })
    })
    .unwrap();
    let mut keyed = Keyed::new(logic, Rc::clone(&store), strategy, BatchPolicy { keys_per_chunk });
    let mut rows = Vec::new();
    // Goes on as far as it goes without waiting, or to the end.
    let mut advance = |keyed: &mut Keyed<_>, frontier, to_the_end: bool| {
        loop {
            let progress = keyed.advance(frontier, |events| {
                rows.extend(
                    events.drain(..).map(|Event { time, rank, data: (key, row) }| (time, rank, key, row)),
                );
            });
            if progress.unwrap() == Progress::Done || !to_the_end {
                return;
            }
        }
    };
    let mut arrived = 0;
    for &step in steps {
        let until = (arrived + step).min(records.len());
        accept(&mut keyed, &records[arrived..until]);
        arrived = until;
        // The frontier may go up to the least time that is still to come.
        match records[arrived..].iter().map(|&(time, ..)| time).min() {
            Some(least) => advance(&mut keyed, Frontier::At(least), step % 3 == 0),
            None => advance(&mut keyed, Frontier::Ended, true),
        }
    }
    accept(&mut keyed, &records[arrived..]);
    advance(&mut keyed, Frontier::Ended, true);
    // Stable: rows of one record stay in the order in which they were issued.
    rows.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
    rows.into_iter().map(|(time, _, key, row)| (time, key, row)).collect()
}

fn accept(keyed: &mut Keyed<ProcessLogic<Interpreter>>, records: &[(i64, u64, String, Command)]) {
    let events = records.iter().map(|(time, position, key, command)| {
        Event::new(*time, 0, *position, (key.clone(), command.clone()))
    });
    keyed.accept_all(events, |_| panic!("no record is late")).unwrap();
}

/// No threads; threads that are worth it from the first key on; and rows read ahead.
fn readers() -> impl Strategy<Value = ReaderOptions> {
    prop_oneof![
        Just(ReaderOptions::default()),
        Just(ReaderOptions { least_keys: 1, ..ReaderOptions::new(2, ReadAhead::Off) }),
        Just(ReaderOptions { least_keys: 1, ..ReaderOptions::new(2, ReadAhead::On) }),
    ]
}

fn command() -> impl Strategy<Value = Command> {
    prop_oneof![
        any::<i8>().prop_map(Command::Add),
        Just(Command::ClearValue),
        any::<u8>().prop_map(Command::Push),
        Just(Command::ClearList),
        (0..4u8, any::<u8>()).prop_map(|(entry, value)| Command::Set(entry, value)),
        (0..4u8).prop_map(Command::Remove),
        Just(Command::Entries),
        Just(Command::ClearMap),
    ]
}

fn records() -> impl Strategy<Value = Vec<(i64, u64, String, Command)>> {
    let key = prop_oneof![Just(""), Just("a"), Just("aa"), Just("a\0"), Just("\0")];
    proptest::collection::vec((-6i64..6, key, command()), 0..60).prop_map(|records| {
        let numbered = records.into_iter().enumerate();
        numbered
            .map(|(position, (time, key, command))| (time, position as u64, key.to_string(), command))
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn a_process_function_equals_plain_maps(
        records in records(),
        steps in proptest::collection::vec(0usize..20, 0..10),
        keys_per_chunk in prop_oneof![1usize..6, Just(4096)],
        forgetful in 0u8..9,
        cached_rows in prop_oneof![Just(0usize), Just(1), Just(10), Just(1000)],
        readers in readers(),
    ) {
        let expected = model(records.clone());
        for strategy in ReadStrategy::ALL {
            let (backend, faults) = FaultyBackend::new(MemoryBackend::new());
            faults.set_longest_delay(Duration::from_micros(100));
            let rows =
                run(backend, &records, &steps, strategy, keys_per_chunk, forgetful, cached_rows, readers);
            prop_assert_eq!(&rows, &expected, "{} in memory", strategy);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]
    #[test]
    fn a_process_function_equals_plain_maps_in_rocksdb(
        records in records(),
        steps in proptest::collection::vec(0usize..20, 0..10),
        keys_per_chunk in prop_oneof![1usize..6, Just(4096)],
        forgetful in 0u8..9,
        cached_rows in prop_oneof![Just(0usize), Just(1), Just(10), Just(1000)],
        readers in readers(),
    ) {
        let expected = model(records.clone());
        for strategy in ReadStrategy::ALL {
            let directory = tempfile::tempdir().unwrap();
            let backend = RocksBackend::open(directory.path(), &RocksOptions::default()).unwrap();
            let rows =
                run(backend, &records, &steps, strategy, keys_per_chunk, forgetful, cached_rows, readers);
            prop_assert_eq!(&rows, &expected, "{} in RocksDB", strategy);
        }
    }
}

#[test]
fn f13_a_key_owns_its_own_entries() {
    // The keys of the report; the large time begins with the byte of the letter a.
    let large = 6_989_586_621_679_009_792i64;
    let store = Rc::new(Store::new(MemoryBackend::new(), KeyGroups::default()));
    let mut states = States::<String>::new(Rc::clone(&store), "op", ReadStrategy::MultiGet);
    let map = states.map::<i64, i64>("entries").unwrap();
    let scope = states.into_parts().scope;
    let put = |key: &str, time: i64| {
        scope.set_key(key.to_string());
        map.set(&time, time).unwrap();
    };
    for (key, time) in [("a", 1), ("aa", 1), ("a", large), ("aa", 2), ("", 1), ("\0", 1)] {
        put(key, time);
    }
    let entries = |key: &str| -> Vec<i64> {
        scope.set_key(key.to_string());
        map.entries()
            .unwrap()
            .into_iter()
            .map(|(time, value)| {
                assert_eq!(time, value);
                time
            })
            .collect()
    };
    assert_eq!(entries("a"), [1, large]);
    assert_eq!(entries("aa"), [1, 2]);
    assert_eq!((entries(""), entries("\0")), (vec![1], vec![1]));
    scope.set_key("a".to_string());
    map.clear().unwrap();
    assert_eq!(entries("a"), []);
    assert_eq!(entries("aa"), [1, 2]);
    assert_eq!((entries(""), entries("\0")), (vec![1], vec![1]));
}
