//! One suite, held against every backend: the contract of `tidegate_state::backend::Backend`,
//! with the faults that other systems shipped (F01, F13, F14 and F16 of the known faults).

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use tempfile::TempDir;
use tidegate_state::arena::KeyArena;
use tidegate_state::backend::{Backend, StateId, StateName};
use tidegate_state::batch::ChangeBatch;
use tidegate_state::memory::MemoryBackend;
use tidegate_state::rocks::{RocksBackend, RocksOptions};

/// A backend under test; the directory lives as long as the store in it.
struct Subject {
    name: &'static str,
    backend: Box<dyn Backend>,
    _directory: Option<TempDir>,
}

fn subjects() -> Vec<Subject> {
    let rocks = |direct_io, io_uring| {
        let directory = tempfile::tempdir().unwrap();
        let options = RocksOptions { memory_bytes: 8 << 20, direct_io, io_uring };
        let backend = RocksBackend::open(directory.path(), &options).unwrap();
        Subject {
            name: match (direct_io, io_uring) {
                (true, _) => "rocksdb, direct",
                (false, true) => "rocksdb",
                (false, false) => "rocksdb, io_uring refused",
            },
            backend: Box::new(backend),
            _directory: Some(directory),
        }
    };
    let memory = Subject { name: "memory", backend: Box::new(MemoryBackend::new()), _directory: None };
    vec![memory, rocks(false, true), rocks(true, true), rocks(false, false)]
}

fn open(subject: &mut Subject, state: &str) -> StateId {
    subject.backend.open_state(&StateName::new("op", state).unwrap()).unwrap()
}

fn put(backend: &mut dyn Backend, state: StateId, rows: &[(&[u8], &[u8])]) {
    let mut batch = ChangeBatch::new();
    for (key, value) in rows {
        batch.put(state, key, value);
    }
    batch.sort();
    backend.commit(&batch).unwrap();
}

fn get(backend: &dyn Backend, state: StateId, key: &[u8]) -> Option<Vec<u8>> {
    let mut value = None;
    let found = backend.get(state, key, &mut |bytes| value = Some(bytes.to_vec())).unwrap();
    assert_eq!(found, value.is_some());
    value
}

fn multi_get(backend: &dyn Backend, state: StateId, keys: &[Vec<u8>]) -> Vec<Option<Vec<u8>>> {
    let mut arena = KeyArena::new();
    keys.iter().for_each(|key| arena.push(key));
    let mut answers = Vec::new();
    backend
        .multi_get(state, &arena, &mut |index, value| {
            assert_eq!(index, answers.len(), "answers come in the order of the keys");
            answers.push(value.map(<[u8]>::to_vec));
        })
        .unwrap();
    assert_eq!(answers.len(), keys.len());
    if let Some(reader) = backend.reader(state) {
        let by_reader = std::thread::spawn(move || {
            let mut answers = Vec::new();
            reader.multi_get(&arena, &mut |_, value| answers.push(value.map(<[u8]>::to_vec))).unwrap();
            answers
        });
        assert_eq!(by_reader.join().unwrap(), answers, "another thread reads the same");
    }
    answers
}

fn scan(
    backend: &dyn Backend,
    state: StateId,
    lower: &[u8],
    upper: Option<&[u8]>,
) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut rows = Vec::new();
    backend
        .scan(state, lower, upper, &mut |key, value| {
            rows.push((key.to_vec(), value.to_vec()));
            ControlFlow::Continue(())
        })
        .unwrap();
    rows
}

/// The layouts in which the same rows can lie: in memory, in files, in one file.
fn in_each_layout(subject: &mut Subject, state: StateId, check: impl Fn(&dyn Backend, &str)) {
    let name = subject.name;
    check(&*subject.backend, &format!("{name}, as written"));
    subject.backend.flush().unwrap();
    check(&*subject.backend, &format!("{name}, flushed"));
    subject.backend.compact(state).unwrap();
    check(&*subject.backend, &format!("{name}, compacted"));
}

#[test]
fn f14_a_batch_of_any_size_equals_single_gets() {
    for mut subject in subjects() {
        for n in [0u32, 1, 9, 10, 18, 19, 23, 24, 29, 30, 31, 32, 33, 64, 1000, 100_000] {
            let state = open(&mut subject, &format!("n{n}"));
            let keys: Vec<Vec<u8>> = (0..n).map(|i| i.to_be_bytes().to_vec()).collect();
            let mut batch = ChangeBatch::new();
            keys.iter().for_each(|key| batch.put(state, key, key));
            subject.backend.commit(&batch).unwrap();
            let mut batch = ChangeBatch::new();
            keys.iter().step_by(3).for_each(|key| batch.delete(state, key));
            subject.backend.commit(&batch).unwrap();
            in_each_layout(&mut subject, state, |backend, layout| {
                let answers = multi_get(backend, state, &keys);
                for (index, (key, answer)) in keys.iter().zip(&answers).enumerate() {
                    let expected = (index % 3 != 0).then(|| key.clone());
                    assert_eq!(*answer, expected, "{layout}, n = {n}, key {index}");
                    if n <= 1000 || index % 97 == 0 {
                        assert_eq!(get(backend, state, key), expected, "{layout}, n = {n}, key {index}");
                    }
                }
            });
        }
    }
}

#[test]
fn f14_an_empty_value_is_a_value() {
    for mut subject in subjects() {
        let state = open(&mut subject, "s");
        put(&mut *subject.backend, state, &[(b"e", b"")]);
        in_each_layout(&mut subject, state, |backend, layout| {
            let answers = multi_get(backend, state, &[b"e".to_vec(), b"m".to_vec()]);
            assert_eq!(answers, [Some(vec![]), None], "{layout}");
            assert_eq!(get(backend, state, b"e"), Some(vec![]), "{layout}");
            assert_eq!(get(backend, state, b"m"), None, "{layout}");
        });
    }
}

#[test]
fn f14_states_are_apart() {
    for mut subject in subjects() {
        let (count, sum) = (open(&mut subject, "count"), open(&mut subject, "sum"));
        assert_ne!(count, sum);
        assert_eq!(open(&mut subject, "count"), count, "the same name is the same state");
        put(&mut *subject.backend, count, &[(b"k", b"3")]);
        put(&mut *subject.backend, sum, &[(b"j", b"9")]);
        in_each_layout(&mut subject, count, |backend, layout| {
            let keys = [b"j".to_vec(), b"k".to_vec()];
            assert_eq!(multi_get(backend, count, &keys), [None, Some(b"3".to_vec())], "{layout}");
            assert_eq!(multi_get(backend, sum, &keys), [Some(b"9".to_vec()), None], "{layout}");
            assert_eq!(scan(backend, sum, b"", None), [(b"j".to_vec(), b"9".to_vec())], "{layout}");
        });
    }
}

#[test]
fn f01_a_row_overwritten_in_memory_hides_the_one_in_the_file() {
    for mut subject in subjects() {
        let state = open(&mut subject, "s");
        put(&mut *subject.backend, state, &[(b"a", b"1"), (b"b", b"7")]);
        subject.backend.flush().unwrap();
        put(&mut *subject.backend, state, &[(b"b", b"2")]);
        let keys = [b"a".to_vec(), b"b".to_vec(), b"zz".to_vec()];
        in_each_layout(&mut subject, state, |backend, layout| {
            let answers = multi_get(backend, state, &keys);
            assert_eq!(answers, [Some(b"1".to_vec()), Some(b"2".to_vec()), None], "{layout}");
        });
    }
}

#[test]
fn ranges_are_removed_before_rows_are_set() {
    for mut subject in subjects() {
        let state = open(&mut subject, "s");
        put(&mut *subject.backend, state, &[(b"a", b"1"), (b"b", b"1"), (b"c", b"1"), (b"d", b"1")]);
        let mut batch = ChangeBatch::new();
        batch.put(state, b"c", b"2");
        batch.delete_range(state, b"b", b"d");
        batch.delete_range(state, b"z", b"a");
        batch.sort();
        subject.backend.commit(&batch).unwrap();
        let row = |key: &[u8], value: &[u8]| (key.to_vec(), value.to_vec());
        in_each_layout(&mut subject, state, |backend, layout| {
            let rows = scan(backend, state, b"", None);
            assert_eq!(rows, [row(b"a", b"1"), row(b"c", b"2"), row(b"d", b"1")], "{layout}");
        });
    }
}

#[test]
fn a_cleared_state_is_empty_and_takes_new_rows() {
    // Few rows lie in memory, many also in files, and the two are cleared in different ways. The
    // last row is greater than any upper bound one could name.
    let greatest = vec![0xFF; 100];
    for rows in [1u32, 1000, 40_000] {
        for mut subject in subjects() {
            let (state, other) = (open(&mut subject, "s"), open(&mut subject, "other"));
            put(&mut *subject.backend, other, &[(b"k", b"stays")]);
            for round in 0..3u8 {
                let mut batch = ChangeBatch::new();
                for row in 0..rows {
                    batch.put(state, &row.to_be_bytes(), &[round; 100]);
                }
                if round == 1 {
                    batch.put(state, &greatest, b"");
                }
                subject.backend.commit(&batch).unwrap();
                if round == 2 {
                    subject.backend.flush().unwrap();
                }
                subject.backend.clear(state).unwrap();
                assert_eq!(scan(&*subject.backend, state, b"", None), [], "{}", subject.name);
                put(&mut *subject.backend, state, &[(b"", b"new"), (&[0, 0, 0, 0], &[round])]);
                in_each_layout(&mut subject, state, |backend, layout| {
                    let rows = scan(backend, state, b"", None);
                    let expected = [(vec![], b"new".to_vec()), (vec![0; 4], vec![round])];
                    assert_eq!(rows, expected, "{layout}, round {round}");
                    let keys = [vec![0; 4], vec![0, 0, 0, 1], greatest.clone()];
                    assert_eq!(multi_get(backend, state, &keys), [Some(vec![round]), None, None], "{layout}");
                    assert_eq!(get(backend, other, b"k"), Some(b"stays".to_vec()), "{layout}");
                });
            }
        }
    }
}

#[test]
fn a_cleared_state_stays_cleared_when_rocksdb_is_opened_again() {
    let directory = tempfile::tempdir().unwrap();
    let name = StateName::new("op", "s").unwrap();
    let options = RocksOptions { memory_bytes: 8 << 20, ..RocksOptions::default() };
    for rows in [10u32, 40_000] {
        {
            let mut backend = RocksBackend::open(directory.path(), &options).unwrap();
            let state = backend.open_state(&name).unwrap();
            let mut batch = ChangeBatch::new();
            (0..rows).for_each(|row| batch.put(state, &row.to_be_bytes(), &[1; 100]));
            backend.commit(&batch).unwrap();
            backend.flush().unwrap();
            backend.clear(state).unwrap();
            put(&mut backend, state, &[(b"after", b"1")]);
            backend.flush().unwrap();
        }
        let mut backend = RocksBackend::open(directory.path(), &options).unwrap();
        let state = backend.open_state(&name).unwrap();
        assert_eq!(scan(&backend, state, b"", None), [(b"after".to_vec(), b"1".to_vec())], "{rows} rows");
    }
}

#[test]
fn clearing_a_large_state_gives_its_room_on_the_disk_back() {
    let directory = tempfile::tempdir().unwrap();
    let options = RocksOptions { memory_bytes: 8 << 20, ..RocksOptions::default() };
    let mut backend = RocksBackend::open(directory.path(), &options).unwrap();
    let state = backend.open_state(&StateName::new("op", "s").unwrap()).unwrap();
    // Values that do not compress: digits of the golden ratio's multiples.
    let mut value = [0u8; 1000];
    for start in (0..20_000u64).step_by(1000) {
        let mut batch = ChangeBatch::new();
        for row in start..start + 1000 {
            for (place, bytes) in value.chunks_exact_mut(8).enumerate() {
                let number = (row * 125 + place as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                bytes.copy_from_slice(&number.to_be_bytes());
            }
            batch.put(state, &row.to_be_bytes(), &value);
        }
        backend.commit(&batch).unwrap();
    }
    backend.flush().unwrap();
    let files_bytes = || -> u64 {
        let files = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().path());
        let tables = files.filter(|path| path.extension().is_some_and(|extension| extension == "sst"));
        // A file may go between the listing and the look at it.
        tables.map(|path| path.metadata().map_or(0, |metadata| metadata.len())).sum()
    };
    assert!(files_bytes() > 15 << 20, "{} bytes", files_bytes());
    backend.clear(state).unwrap();
    // A compaction that is under way holds its files until it is done; they go with the next flush
    // after that.
    for _ in 0..1000 {
        put(&mut backend, state, &[(b"k", b"v")]);
        backend.flush().unwrap();
        if files_bytes() < 1 << 20 {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("{} bytes are left", files_bytes());
}

#[test]
fn a_scan_keeps_its_bounds_and_stops_when_told() {
    for mut subject in subjects() {
        let state = open(&mut subject, "s");
        let keys: Vec<[u8; 1]> = (0..=255u8).map(|key| [key]).collect();
        let rows: Vec<(&[u8], &[u8])> = keys.iter().map(|key| (&key[..], &key[..])).collect();
        put(&mut *subject.backend, state, &rows);
        in_each_layout(&mut subject, state, |backend, layout| {
            let keys = |lower: &[u8], upper: Option<&[u8]>| -> Vec<u8> {
                scan(backend, state, lower, upper).into_iter().map(|(key, _)| key[0]).collect()
            };
            assert_eq!(keys(&[3], Some(&[6])), [3, 4, 5], "{layout}");
            assert_eq!(keys(&[3, 0], Some(&[6, 0])), [4, 5, 6], "{layout}");
            assert_eq!(keys(&[254], None), [254, 255], "{layout}");
            assert_eq!(keys(&[6], Some(&[3])), [], "{layout}");
            assert_eq!(keys(&[6], Some(&[6])), [], "{layout}");
            let mut first = None;
            backend
                .scan(state, &[7], None, &mut |key, _| {
                    assert!(first.replace(key.to_vec()).is_none(), "{layout}: the scan went on");
                    ControlFlow::Break(())
                })
                .unwrap();
            assert_eq!(first, Some(vec![7]));
        });
    }
}

#[test]
fn rocksdb_finds_its_states_again() {
    let directory = tempfile::tempdir().unwrap();
    let name = |state| StateName::new("op", state).unwrap();
    {
        let mut backend = RocksBackend::open(directory.path(), &RocksOptions::default()).unwrap();
        let a = backend.open_state(&name("a")).unwrap();
        let b = backend.open_state(&name("b")).unwrap();
        put(&mut backend, a, &[(b"k", b"in a")]);
        put(&mut backend, b, &[(b"k", b"in b")]);
        backend.flush().unwrap();
    }
    let mut backend = RocksBackend::open(directory.path(), &RocksOptions::default()).unwrap();
    // Opened in another order, and one of them not at all.
    let b = backend.open_state(&name("b")).unwrap();
    assert_eq!(get(&backend, b, b"k"), Some(b"in b".to_vec()));
}

#[test]
fn a_store_that_is_open_elsewhere_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let _first = RocksBackend::open(directory.path(), &RocksOptions::default()).unwrap();
    let Err(error) = RocksBackend::open(directory.path(), &RocksOptions::default()) else {
        panic!("a locked store was opened twice");
    };
    let message = error.to_string();
    assert!(message.contains("another job has it open"), "{message}");
    assert!(message.contains(&directory.path().display().to_string()), "{message}");
}

#[test]
fn f15_an_unreadable_file_is_an_error_not_an_absent_row() {
    let directory = tempfile::tempdir().unwrap();
    let name = StateName::new("op", "s").unwrap();
    let rows: Vec<Vec<u8>> = (0..2000u32).map(|i| i.to_be_bytes().to_vec()).collect();
    {
        let mut backend = RocksBackend::open(directory.path(), &RocksOptions::default()).unwrap();
        let state = backend.open_state(&name).unwrap();
        let value = [7u8; 100];
        let pairs: Vec<(&[u8], &[u8])> = rows.iter().map(|key| (&key[..], &value[..])).collect();
        put(&mut backend, state, &pairs);
        backend.flush().unwrap();
    }
    for entry in std::fs::read_dir(directory.path()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "sst") {
            // The head of the file holds data blocks; its tail, with the index, stays whole.
            let mut bytes = std::fs::read(&path).unwrap();
            let half = bytes.len() / 2;
            bytes[..half].iter_mut().for_each(|byte| *byte ^= 0x5A);
            std::fs::write(&path, bytes).unwrap();
        }
    }
    for (direct_io, io_uring) in [(false, true), (true, true), (false, false)] {
        let options = RocksOptions { direct_io, io_uring, ..RocksOptions::default() };
        let mut backend = RocksBackend::open(directory.path(), &options).unwrap();
        let state = backend.open_state(&name).unwrap();
        let error = backend.get(state, &rows[0], &mut |_| {}).unwrap_err();
        assert!(error.to_string().to_lowercase().contains("corrupt"), "{error}");
        let mut arena = KeyArena::new();
        rows.iter().for_each(|key| arena.push(key));
        let failure = backend.multi_get(state, &arena, &mut |_, _| {}).unwrap_err();
        assert_eq!(failure.index, Some(0));
        let reader = backend.reader(state).unwrap();
        assert_eq!(reader.multi_get(&arena, &mut |_, _| {}).unwrap_err().index, Some(0));
        assert!(backend.scan(state, b"", None, &mut |_, _| ControlFlow::Continue(())).is_err());
    }
}

#[derive(Debug, Clone)]
enum Step {
    Commit(Vec<(u8, Option<u8>)>, Option<(u8, u8)>),
    Flush,
    Compact,
    Clear,
}

fn step() -> impl Strategy<Value = Step> {
    let change = (0..24u8, proptest::option::weighted(0.7, any::<u8>()));
    let range = proptest::option::weighted(0.2, (0..24u8, 0..24u8));
    prop_oneof![
        8 => (proptest::collection::vec(change, 0..12), range).prop_map(|(changes, range)| Step::Commit(changes, range)),
        1 => Just(Step::Flush),
        1 => Just(Step::Compact),
        1 => Just(Step::Clear),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn every_backend_is_an_ordered_map(steps in proptest::collection::vec(step(), 1..20)) {
        for mut subject in subjects() {
            let state = open(&mut subject, "s");
            let other = open(&mut subject, "other");
            let mut model: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
            for step in &steps {
                match step {
                    Step::Flush => subject.backend.flush().unwrap(),
                    Step::Compact => subject.backend.compact(state).unwrap(),
                    Step::Clear => {
                        subject.backend.clear(state).unwrap();
                        model.clear();
                    }
                    Step::Commit(changes, range) => {
                        // A batch changes a row once: the last change counts.
                        let changes: BTreeMap<u8, Option<u8>> = changes.iter().copied().collect();
                        let mut batch = ChangeBatch::new();
                        for (&key, value) in changes.iter().rev() {
                            match value {
                                Some(value) => batch.put(state, &[key], &[*value]),
                                None => batch.delete(state, &[key]),
                            }
                        }
                        if let Some((lower, upper)) = range {
                            batch.delete_range(state, &[*lower], &[*upper]);
                            model.retain(|key, _| !(*lower <= key[0] && key[0] < *upper));
                        }
                        for (&key, value) in &changes {
                            match value {
                                Some(value) => { model.insert(vec![key], vec![*value]); }
                                None => { model.remove(&vec![key]); }
                            }
                        }
                        batch.sort();
                        subject.backend.commit(&batch).unwrap();
                    }
                }
                let keys: Vec<Vec<u8>> = (0..24u8).map(|key| vec![key]).collect();
                let expected: Vec<_> = keys.iter().map(|key| model.get(key).cloned()).collect();
                prop_assert_eq!(multi_get(&*subject.backend, state, &keys), expected.clone());
                for (key, value) in keys.iter().zip(expected) {
                    prop_assert_eq!(get(&*subject.backend, state, key), value);
                }
                let rows: Vec<_> = model.clone().into_iter().collect();
                prop_assert_eq!(scan(&*subject.backend, state, b"", None), rows);
                prop_assert_eq!(scan(&*subject.backend, other, b"", None), vec![]);
            }
        }
    }
}
