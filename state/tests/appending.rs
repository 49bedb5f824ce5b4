//! Appends, held against every backend: any order of puts, deletes, appends and clears leaves what a
//! plain map would hold, wherever RocksDB keeps the pieces.

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use tidegate_state::arena::KeyArena;
use tidegate_state::backend::{Backend, StateId, StateName};
use tidegate_state::batch::ChangeBatch;
use tidegate_state::fault::FaultyBackend;
use tidegate_state::memory::MemoryBackend;
use tidegate_state::rocks::{RocksBackend, RocksOptions};

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

const KEYS: u8 = 6;

fn name(state: &str) -> StateName {
    StateName::new("op", state).unwrap()
}

fn open_rocks(directory: &Path, io_uring: bool) -> Box<dyn Backend> {
    let options = RocksOptions { memory_bytes: 8 << 20, io_uring, ..RocksOptions::default() };
    Box::new(RocksBackend::open(directory, &options).unwrap())
}

/// Everything that a backend says of a state, by each way to ask for it.
fn check(backend: &dyn Backend, state: StateId, model: &Rows) -> Result<(), TestCaseError> {
    let keys: Vec<Vec<u8>> = (0..KEYS).map(|key| vec![key; usize::from(key)]).collect();
    let mut arena = KeyArena::new();
    keys.iter().for_each(|key| arena.push(key));
    let mut answers = Vec::new();
    backend.multi_get(state, &arena, &mut |_, value| answers.push(value.map(<[u8]>::to_vec))).unwrap();
    let expected: Vec<_> = keys.iter().map(|key| model.get(key).cloned()).collect();
    prop_assert_eq!(&answers, &expected);
    if let Some(reader) = backend.reader(state) {
        let mut answers = Vec::new();
        reader.multi_get(&arena, &mut |_, value| answers.push(value.map(<[u8]>::to_vec))).unwrap();
        prop_assert_eq!(&answers, &expected);
    }
    for (key, expected) in keys.iter().zip(&expected) {
        let mut value = None;
        backend.get(state, key, &mut |bytes| value = Some(bytes.to_vec())).unwrap();
        prop_assert_eq!(&value, expected);
    }
    let mut rows = Rows::new();
    backend
        .scan(state, &[], None, &mut |key, value| {
            rows.insert(key.to_vec(), value.to_vec());
            ControlFlow::Continue(())
        })
        .unwrap();
    prop_assert_eq!(&rows, model);
    Ok(())
}

#[derive(Debug, Clone)]
enum Change {
    Put(Vec<u8>),
    Delete,
    Append(Vec<u8>),
}

#[derive(Debug, Clone)]
enum Step {
    Commit(Vec<(u8, Change)>, Option<(u8, u8)>),
    Flush,
    Compact,
    Clear,
    Reopen,
}

fn change() -> impl Strategy<Value = Change> {
    let bytes = || proptest::collection::vec(any::<u8>(), 0..4);
    prop_oneof![
        1 => bytes().prop_map(Change::Put),
        1 => Just(Change::Delete),
        4 => bytes().prop_map(Change::Append),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let changes = proptest::collection::vec((0..KEYS, change()), 0..60);
    let range = proptest::option::weighted(0.2, (0..KEYS, 0..KEYS));
    prop_oneof![
        10 => (changes, range).prop_map(|(changes, range)| Step::Commit(changes, range)),
        2 => Just(Step::Flush),
        1 => Just(Step::Compact),
        1 => Just(Step::Clear),
        1 => Just(Step::Reopen),
    ]
}

fn commit(backend: &mut dyn Backend, state: StateId, model: &mut Rows, step: &Step) {
    let Step::Commit(changes, range) = step else { return };
    let row = |key: u8| vec![key; usize::from(key)];
    let mut batch = ChangeBatch::new();
    if let Some((lower, upper)) = range {
        let (lower, upper) = (row(*lower), row(*upper));
        batch.delete_range(state, &lower, &upper);
        model.retain(|key, _| !(lower <= *key && *key < upper));
    }
    for (key, change) in changes {
        let key = row(*key);
        match change {
            Change::Put(value) => {
                batch.put(state, &key, value);
                model.insert(key, value.clone());
            }
            Change::Delete => {
                batch.delete(state, &key);
                model.remove(&key);
            }
            Change::Append(bytes) => {
                batch.append(state, &key, bytes);
                model.entry(key).or_default().extend(bytes);
            }
        }
    }
    batch.sort();
    backend.commit(&batch).unwrap();
}

/// Plays the steps on a backend that `open` makes, and makes again over what it has stored.
fn play(steps: &[Step], reopens: bool, open: &dyn Fn() -> Box<dyn Backend>) -> Result<(), TestCaseError> {
    let mut backend = open();
    let mut state = backend.open_state(&name("s")).unwrap();
    let mut model = Rows::new();
    for step in steps {
        match step {
            Step::Commit(..) => commit(&mut *backend, state, &mut model, step),
            Step::Flush => backend.flush().unwrap(),
            Step::Compact => backend.compact(state).unwrap(),
            Step::Clear => {
                backend.clear(state).unwrap();
                model.clear();
            }
            Step::Reopen if reopens => {
                backend.flush().unwrap();
                drop(backend);
                backend = open();
                state = backend.open_state(&name("s")).unwrap();
            }
            Step::Reopen => {}
        }
        check(&*backend, state, &model)?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn a_store_in_memory_appends_as_a_map_would(steps in proptest::collection::vec(step(), 1..20)) {
        play(&steps, false, &|| Box::new(MemoryBackend::new()))?;
        play(&steps, false, &|| Box::new(FaultyBackend::new(MemoryBackend::new()).0))?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn rocksdb_appends_as_a_map_would(steps in proptest::collection::vec(step(), 1..20)) {
        for io_uring in [true, false] {
            let directory = tempfile::tempdir().unwrap();
            play(&steps, true, &|| open_rocks(directory.path(), io_uring))?;
        }
    }
}

#[test]
fn many_appends_to_one_row_are_one_value_wherever_they_lie() {
    let directory = tempfile::tempdir().unwrap();
    let mut backend = open_rocks(directory.path(), true);
    let state = backend.open_state(&name("s")).unwrap();
    let mut model = Rows::new();
    for round in 0..6u32 {
        for append in 0..300u32 {
            // One change alone takes another way than a batch does.
            let change = Change::Append((round * 300 + append).to_be_bytes().to_vec());
            let other = (append % 2 == 0).then_some((2, Change::Append(vec![7])));
            let changes = [(1, change)].into_iter().chain(other).collect();
            commit(&mut *backend, state, &mut model, &Step::Commit(changes, None));
        }
        check(&*backend, state, &model).unwrap();
        backend.flush().unwrap();
        check(&*backend, state, &model).unwrap();
    }
    // A state that had to be cleared by a new column family appends as well.
    let large = (0..40_000u32).map(|row| (row.to_be_bytes(), [1; 100]));
    let mut batch = ChangeBatch::new();
    large.for_each(|(row, value)| batch.put(state, &row, &value));
    backend.commit(&batch).unwrap();
    backend.flush().unwrap();
    backend.clear(state).unwrap();
    let appends = vec![(1, Change::Append(vec![3])), (1, Change::Append(vec![4]))];
    model.clear();
    commit(&mut *backend, state, &mut model, &Step::Commit(appends, None));
    check(&*backend, state, &model).unwrap();
}
