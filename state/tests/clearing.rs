//! Clearing from the front again and again must not make the next look slower and slower (F16 of
//! the known faults). What a look costs is taken from RocksDB's own counters, as entries that it
//! stepped over; times would tell more about the machine.

use rocksdb::perf::{PerfContext, PerfMetric};
use std::ops::ControlFlow;
use tempfile::TempDir;
use tidegate_state::backend::{Backend, StateId, StateName};
use tidegate_state::batch::ChangeBatch;
use tidegate_state::memory::MemoryBackend;
use tidegate_state::rocks::{RocksBackend, RocksOptions};

const ROUNDS: u64 = 100;

/// Small write buffers, so that rows and marks get into files, and large ones, so that they do not.
fn subjects() -> Vec<(Box<dyn Backend>, StateId, Option<TempDir>)> {
    let name = StateName::new("op", "s").unwrap();
    let mut subjects: Vec<(Box<dyn Backend>, StateId, Option<TempDir>)> = Vec::new();
    let mut memory = MemoryBackend::new();
    let state = memory.open_state(&name).unwrap();
    subjects.push((Box::new(memory), state, None));
    for memory_bytes in [8 << 20, 256 << 20] {
        let directory = tempfile::tempdir().unwrap();
        let options = RocksOptions { memory_bytes, ..RocksOptions::default() };
        let mut backend = RocksBackend::open(directory.path(), &options).unwrap();
        let state = backend.open_state(&name).unwrap();
        subjects.push((Box::new(backend), state, Some(directory)));
    }
    subjects
}

fn steps() -> u64 {
    let counters = PerfContext::default();
    counters.metric(PerfMetric::InternalKeySkippedCount)
        + counters.metric(PerfMetric::InternalDeleteSkippedCount)
        + counters.metric(PerfMetric::NextOnMemtableCount)
}

fn first(backend: &dyn Backend, state: StateId, lower: &[u8], upper: Option<&[u8]>) -> Option<Vec<u8>> {
    let mut first = None;
    backend
        .scan(state, lower, upper, &mut |key, _| {
            first = Some(key.to_vec());
            ControlFlow::Break(())
        })
        .unwrap();
    first
}

fn key(parts: &[u64]) -> Vec<u8> {
    parts.iter().flat_map(|part| part.to_be_bytes()).collect()
}

/// Runs the rounds, and holds the steps of the last ten against those of rounds 2 to 11.
fn the_cost_does_not_grow(mut round: impl FnMut(&mut dyn Backend, StateId, u64)) {
    for (mut backend, state, _directory) in subjects() {
        let mut costs = Vec::new();
        for number in 0..ROUNDS {
            let before = steps();
            round(&mut *backend, state, number);
            costs.push(steps() - before);
        }
        let (early, late): (u64, u64) = (costs[1..11].iter().sum(), costs[90..].iter().sum());
        // A look after a new range deletion steps once more over those of the same write buffer,
        // of which there are at most 256; 10,000 rows a round would be far beyond that.
        let free = 10 * 2 * 256;
        assert!(2 * late <= 3 * early + free, "{}: {costs:?}", backend.location());
    }
}

#[test]
fn f16_rows_removed_one_by_one() {
    const ROWS: u64 = 10_000;
    the_cost_does_not_grow(|backend, state, round| {
        let mut batch = ChangeBatch::new();
        let keys = || (round * ROWS..(round + 1) * ROWS).map(|row| key(&[row]));
        keys().for_each(|key| batch.put(state, &key, b"some value"));
        backend.commit(&batch).unwrap();
        batch.clear();
        keys().for_each(|key| batch.delete(state, &key));
        backend.commit(&batch).unwrap();
        assert_eq!(first(backend, state, b"", None), None);
    });
}

#[test]
fn f16_rows_removed_by_a_rising_bound_in_front_of_others() {
    const KEYS: u64 = 100;
    const TIMES: u64 = 100;
    let put = |batch: &mut ChangeBatch, state, round: u64| {
        for time in round * TIMES..(round + 1) * TIMES {
            (0..KEYS).for_each(|row| batch.put(state, &key(&[time, row]), b"some value"));
        }
    };
    the_cost_does_not_grow(|backend, state, round| {
        let mut batch = ChangeBatch::new();
        if round == 0 {
            put(&mut batch, state, 0);
        }
        put(&mut batch, state, round + 1);
        backend.commit(&batch).unwrap();
        batch.clear();
        batch.delete_range(state, b"", &key(&[(round + 1) * TIMES]));
        backend.commit(&batch).unwrap();
        assert_eq!(first(backend, state, b"", None), Some(key(&[(round + 1) * TIMES, 0])));
    });
}

#[test]
fn f16_rows_of_many_groups_removed_by_a_rising_bound_in_each() {
    const GROUPS: u64 = 256;
    const TIMES: u64 = 40;
    the_cost_does_not_grow(|backend, state, round| {
        let times = || round * TIMES..(round + 1) * TIMES;
        let mut batch = ChangeBatch::new();
        for group in 0..GROUPS {
            times().for_each(|time| batch.put(state, &key(&[group, time]), b"some value"));
        }
        backend.commit(&batch).unwrap();
        batch.clear();
        for group in 0..GROUPS {
            batch.delete_range(state, &key(&[group]), &key(&[group, (round + 1) * TIMES]));
        }
        // One row stays, and another comes in front of what is empty by now.
        batch.put(state, &key(&[7, round * TIMES]), b"left");
        backend.commit(&batch).unwrap();
        for group in 0..GROUPS {
            let found = first(backend, state, &key(&[group]), Some(&key(&[group + 1])));
            assert_eq!(found, (group == 7).then(|| key(&[7, round * TIMES])));
        }
        assert_eq!(first(backend, state, b"", None), Some(key(&[7, round * TIMES])));
    });
}

#[test]
fn a_row_put_where_nothing_was_is_found() {
    for (mut backend, state, _directory) in subjects() {
        let mut batch = ChangeBatch::new();
        (0..1000).for_each(|row| batch.put(state, &key(&[row]), b"v"));
        backend.commit(&batch).unwrap();
        batch.clear();
        (0..1000).for_each(|row| batch.delete(state, &key(&[row])));
        backend.commit(&batch).unwrap();
        // Found out by a look, and looked up the second time.
        for _ in 0..2 {
            assert_eq!(first(&*backend, state, b"", None), None);
            assert_eq!(first(&*backend, state, &key(&[400]), Some(&key(&[600]))), None);
        }
        // One row alone, and several at once, each in front of those before.
        for rows in [&[900u64][..], &[700, 800], &[500], &[0]] {
            batch.clear();
            rows.iter().for_each(|&row| batch.put(state, &key(&[row]), b"v"));
            backend.commit(&batch).unwrap();
            assert_eq!(first(&*backend, state, b"", None), Some(key(&[rows[0]])));
        }
        for (lower, found) in
            [(1u64, Some(500u64)), (501, Some(700)), (701, Some(800)), (801, Some(900)), (901, None)]
        {
            assert_eq!(first(&*backend, state, &key(&[lower]), None), found.map(|row| key(&[row])));
        }
        // What a batch removes and puts again is there.
        batch.clear();
        batch.delete_range(state, b"", &key(&[1000]));
        batch.put(state, &key(&[300]), b"v");
        backend.commit(&batch).unwrap();
        assert_eq!(first(&*backend, state, b"", None), Some(key(&[300])));
        assert_eq!(first(&*backend, state, &key(&[301]), None), None);
        backend.clear(state).unwrap();
        assert_eq!(first(&*backend, state, b"", None), None);
    }
}
