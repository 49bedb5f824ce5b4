//! Lists that are appended to without being read: random programs, against plain vectors.

use proptest::prelude::*;
use std::collections::HashMap;
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
use tidegate_state::keyed::{AppendState, States};
use tidegate_state::memory::MemoryBackend;
use tidegate_state::readers::ReaderOptions;
use tidegate_state::rocks::{RocksBackend, RocksOptions};
use tidegate_state::store::Store;
use tidegate_state::strategy::ReadStrategy;
use tidegate_state::table::{CacheBudget, ReadAhead};

/// What a record tells the process function to do with its key's list.
#[derive(Debug, Clone, Copy)]
enum Command {
    Push(u8),
    PushMany(u8),
    Read,
    Take,
    Clear,
    PushAndRead(u8),
    ReadAndPush(u8),
    ClearAndPush(u8),
    TakeAndPush(u8),
}

impl Command {
    fn reads(self) -> bool {
        !matches!(self, Command::Push(_) | Command::PushMany(_) | Command::Clear | Command::ClearAndPush(_))
    }
}

/// Does what records say, and shows what it was shown.
struct Interpreter {
    list: AppendState<u8, u8>,
    /// Gets what the other one gets, and is never read but at the end of the list.
    other: AppendState<u8, String>,
    /// Leaves out every n-th declaration; nothing may change by that but the statistics.
    forgetful: u8,
}

impl Process for Interpreter {
    type Key = u8;
    type Input = Command;
    type Output = (u8, String);

    fn declare(&self, _: &u8, input: &Command, time: Time) {
        if input.reads() && time.rem_euclid(8) != i64::from(self.forgetful) {
            self.list.declare();
        }
    }

    fn process(
        &mut self,
        key: &u8,
        input: Command,
        out: &mut Emitter<'_, (u8, String)>,
    ) -> Result<(), StateError> {
        let mut show = |values: &[u8]| out.emit((*key, format!("{values:?}")));
        match input {
            Command::Push(value) => self.list.push(value)?,
            Command::PushMany(count) => (0..count).try_for_each(|value| self.list.push(value))?,
            Command::Read => self.list.with(&mut show)?,
            Command::Take => show(&self.list.take()?),
            Command::Clear => self.list.clear()?,
            Command::PushAndRead(value) => {
                self.list.push(value)?;
                self.list.with(&mut show)?;
            }
            Command::ReadAndPush(value) => {
                self.list.with(&mut show)?;
                self.list.push(value)?;
            }
            Command::ClearAndPush(value) => {
                self.list.clear()?;
                self.list.push(value)?;
            }
            Command::TakeAndPush(value) => {
                show(&self.list.take()?);
                self.list.push(value)?;
            }
        }
        self.other.push(format!("{input:?}"))?;
        if let Command::Take = input {
            let all = self.other.with(<[String]>::to_vec)?;
            out.emit((*key, all.join(" ")));
        }
        Ok(())
    }
}

type Records = Vec<(i64, u64, u8, Command)>;

fn model(mut records: Records) -> Vec<(i64, u8, String)> {
    records.sort_by_key(|&(time, position, ..)| (time, position));
    let mut lists: HashMap<u8, Vec<u8>> = HashMap::new();
    let mut others: HashMap<u8, Vec<String>> = HashMap::new();
    let mut rows = Vec::new();
    for (time, _, key, command) in records {
        let list = lists.entry(key).or_default();
        if let Command::PushAndRead(value) = command {
            list.push(value);
        }
        if command.reads() {
            rows.push((time, key, format!("{list:?}")));
        }
        match command {
            Command::Push(value) | Command::ReadAndPush(value) => list.push(value),
            Command::PushMany(count) => list.extend(0..count),
            Command::Read | Command::PushAndRead(_) => {}
            Command::Take | Command::Clear => list.clear(),
            Command::ClearAndPush(value) | Command::TakeAndPush(value) => *list = vec![value],
        }
        let other = others.entry(key).or_default();
        other.push(format!("{command:?}"));
        if let Command::Take = command {
            rows.push((time, key, other.join(" ")));
        }
    }
    rows
}

#[derive(Debug, Clone)]
struct Way {
    steps: Vec<usize>,
    keys_per_chunk: usize,
    forgetful: u8,
    cached_rows: usize,
    readers: ReaderOptions,
}

fn accept(keyed: &mut Keyed<ProcessLogic<Interpreter>>, records: &[(i64, u64, u8, Command)]) {
    let events =
        records.iter().map(|&(time, position, key, command)| Event::new(time, 0, position, (key, command)));
    keyed.accept_all(events, |_| panic!("no record is late")).unwrap();
}

fn run(
    backend: impl Backend + 'static,
    records: &[(i64, u64, u8, Command)],
    way: &Way,
    strategy: ReadStrategy,
) -> Vec<(i64, u8, String)> {
    let store = Store::new(backend, KeyGroups::default())
        .with_cache(CacheBudget::rows(way.cached_rows))
        .with_readers(way.readers);
    let store = Rc::new(store);
    let states = States::new(Rc::clone(&store), "interpreter", strategy);
    let logic = ProcessLogic::open(states, |states| {
        Ok(Interpreter {
            list: states.append("list")?,
            other: states.append("other")?,
            forgetful: way.forgetful,
        })
    })
    .unwrap();
    let policy = BatchPolicy { keys_per_chunk: way.keys_per_chunk };
    let mut keyed = Keyed::new(logic, store, strategy, policy);
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
    for &step in &way.steps {
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

fn command() -> impl Strategy<Value = Command> {
    prop_oneof![
        6 => any::<u8>().prop_map(Command::Push),
        1 => (0..40u8).prop_map(Command::PushMany),
        3 => Just(Command::Read),
        1 => Just(Command::Take),
        1 => Just(Command::Clear),
        1 => any::<u8>().prop_map(Command::PushAndRead),
        1 => any::<u8>().prop_map(Command::ReadAndPush),
        1 => any::<u8>().prop_map(Command::ClearAndPush),
        1 => any::<u8>().prop_map(Command::TakeAndPush),
    ]
}

/// Times that mostly go up, so that rows are released, given up and asked for again.
fn records() -> impl Strategy<Value = Records> {
    proptest::collection::vec((-3i64..3, 0..14u8, command()), 0..150).prop_map(|records| {
        let numbered = records.into_iter().enumerate();
        numbered
            .map(|(position, (jitter, key, command))| {
                (position as i64 / 8 + jitter, position as u64, key, command)
            })
            .collect()
    })
}

/// How records arrive, what is declared, what is kept, and who reads.
fn way() -> impl Strategy<Value = Way> {
    let readers = prop_oneof![
        Just(ReaderOptions::default()),
        Just(ReaderOptions { least_keys: 1, ..ReaderOptions::new(2, ReadAhead::Off) }),
        Just(ReaderOptions { least_keys: 1, ..ReaderOptions::new(2, ReadAhead::On) }),
    ];
    (
        proptest::collection::vec(0usize..40, 0..12),
        prop_oneof![1usize..6, Just(4096)],
        0u8..9,
        prop_oneof![Just(0usize), Just(1), Just(10), Just(1000)],
        readers,
    )
        .prop_map(|(steps, keys_per_chunk, forgetful, cached_rows, readers)| Way {
            steps,
            keys_per_chunk,
            forgetful,
            cached_rows,
            readers,
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn appended_lists_equal_plain_vectors(records in records(), way in way()) {
        let expected = model(records.clone());
        for strategy in ReadStrategy::ALL {
            let (backend, faults) = FaultyBackend::new(MemoryBackend::new());
            faults.set_longest_delay(Duration::from_micros(100));
            let rows = run(backend, &records, &way, strategy);
            prop_assert_eq!(&rows, &expected, "{} in memory", strategy);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn appended_lists_equal_plain_vectors_in_rocksdb(records in records(), way in way()) {
        let expected = model(records.clone());
        for strategy in ReadStrategy::ALL {
            let directory = tempfile::tempdir().unwrap();
            let backend = RocksBackend::open(directory.path(), &RocksOptions::default()).unwrap();
            let rows = run(backend, &records, &way, strategy);
            prop_assert_eq!(&rows, &expected, "{} in RocksDB", strategy);
        }
    }
}
