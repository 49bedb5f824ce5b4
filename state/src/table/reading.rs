//! How the rows of a table get in: by single reads, by batched reads, or from reader threads.

use super::cells::Status;
use super::tail::fill;
use super::value::CellValue;
use super::{Table, value_error};
use crate::backend::BatchReadError;
use crate::codec::CodecError;
use crate::error::{BackendError, BackendErrorKind, StateError};
use crate::planner::ReadCall;
use crate::readers::Read;
use crate::row::Layout;
use crate::store::Store;
use std::time::{Duration, Instant};

/// A thread is handed so many keys at most, so that answers come in while others are still read.
const MOST_KEYS_A_READ: usize = 256;
/// Reads that are kept to be used again.
const MOST_SPARE_READS: usize = 8;
/// Rows declared ahead are handed to the threads when so many times the least that is worth a
/// thread have come together.
const READS_TO_START_WITH: usize = 8;
/// Below this, reading ahead could not fill a batch.
pub(super) const LEAST_ROWS_AHEAD: usize = 256;
const MOST_ROWS_AHEAD: usize = 65_536;
/// What was read ahead so many releases ago is given up: its record waits for long.
pub(super) const RELEASES_AHEAD: u32 = 64;

impl<L: Layout, V: CellValue> Table<L, V> {
    /// Reads the wanted rows, or hands them to reader threads where those are at work anyway.
    pub(super) fn start_reading(&mut self, store: &Store) -> Result<(), StateError> {
        self.count_release(store);
        if self.wanted.is_empty() {
            return Ok(());
        }
        if self.keeps_values {
            // Room first: what is read would come on top of what is kept.
            self.shrink(Some(self.release), store)?;
        }
        if self.ahead.policy.is_active() && self.wanted.len() >= self.ahead.least_keys {
            let wanted = std::mem::take(&mut self.wanted);
            self.sort(&wanted, store);
            self.hand_to_threads(&wanted, 0, store)?;
            self.awaited += wanted.len();
            self.wanted = wanted;
            self.wanted.clear();
            return Ok(());
        }
        let call = self.planner.borrow_mut().choose(self.wanted.len());
        match call {
            ReadCall::Gets => self.read_each(store)?,
            ReadCall::MultiGet => self.read_batch(store)?,
            ReadCall::Threads => self.read_by_threads(store)?,
        }
        self.wanted.clear();
        Ok(())
    }

    /// Counts what a release has asked for.
    fn count_release(&mut self, store: &Store) {
        if self.asked == 0 {
            return;
        }
        let (asked, distinct, wanted) = (self.asked, self.distinct, self.wanted.len() as u64);
        let (hits, wasted) = (self.ahead.hits, self.ahead.wasted);
        store.count(self.state, |statistics| {
            statistics.keys_asked += asked;
            statistics.keys_distinct += distinct;
            statistics.keys_at_hand += distinct.saturating_sub(wanted + hits);
            statistics.ahead_hits += hits;
            statistics.ahead_wasted += wasted;
        });
        self.ahead.policy.released(distinct, wanted + hits);
        (self.asked, self.distinct, self.ahead.hits, self.ahead.wasted) = (0, 0, 0, 0);
    }

    fn read_each(&mut self, store: &Store) -> Result<(), StateError> {
        let started = Instant::now();
        for index in 0..self.wanted.len() {
            self.read_one(self.wanted[index], store)?;
        }
        self.measured_read(ReadCall::Gets, self.wanted.len(), started.elapsed());
        Ok(())
    }

    pub(super) fn read_one(&mut self, slot: u32, store: &Store) -> Result<(), StateError> {
        let cell = self.cells.get_mut(slot);
        self.scratch.clear();
        L::encode(&cell.row, store.groups(), &mut self.scratch);
        let mut filled = Ok(false);
        let mut value_bytes = 0;
        let (found, _) = store.get(self.state, &self.scratch, &mut |bytes| {
            value_bytes = bytes.len();
            filled = fill(cell, Some(bytes));
        })?;
        if !found {
            filled = fill(cell, None);
        }
        if filled.map_err(|source| value_error(store, self.state, &self.scratch, source))? {
            self.changed.push(slot);
        }
        if found {
            self.measured(self.scratch.len(), value_bytes);
        }
        Ok(())
    }

    fn read_batch(&mut self, store: &Store) -> Result<(), StateError> {
        let started = Instant::now();
        let wanted = std::mem::take(&mut self.wanted);
        self.sort(&wanted, store);
        self.wanted = wanted;
        self.sorted.clear();
        for &(_, index) in &self.order {
            self.sorted.push(self.unsorted.get(index as usize));
        }
        self.read_sorted(store)?;
        self.measured_read(ReadCall::MultiGet, self.wanted.len(), started.elapsed());
        Ok(())
    }

    /// Reads the keys in `self.sorted` in one call: the first ones of `self.order`.
    fn read_sorted(&mut self, store: &Store) -> Result<(), StateError> {
        if self.sorted.is_empty() {
            return Ok(());
        }
        let (cells, wanted, order) = (&mut self.cells, &self.wanted, &self.order);
        let changed = &mut self.changed;
        let mut failed: Option<(usize, CodecError)> = None;
        let (mut found, mut value_bytes) = (0, 0);
        store.multi_get(self.state, &self.sorted, &mut |index, bytes| {
            found += usize::from(bytes.is_some());
            value_bytes += bytes.map_or(0, <[u8]>::len);
            let slot = wanted[order[index].1 as usize];
            match fill(cells.get_mut(slot), bytes) {
                Ok(false) => {}
                Ok(true) => changed.push(slot),
                Err(error) => {
                    failed.get_or_insert((index, error));
                }
            }
        })?;
        if let Some(mean) = value_bytes.checked_div(found) {
            self.measured(self.sorted.total_bytes() / self.sorted.len(), mean);
        }
        match failed {
            Some((index, source)) => Err(value_error(store, self.state, self.sorted.get(index), source)),
            None => Ok(()),
        }
    }

    /// Encodes the rows in these cells into `self.unsorted`; `self.order` says in which order
    /// they are sorted.
    fn sort(&mut self, slots: &[u32], store: &Store) {
        self.unsorted.clear();
        for &slot in slots {
            let row = &self.cells.get(slot).row;
            self.unsorted.push_with(|bytes| L::encode(row, store.groups(), bytes));
        }
        self.unsorted.sorted_order(&mut self.order);
    }

    /// Splits the wanted rows over the reader threads and this one, and waits for all of them.
    fn read_by_threads(&mut self, store: &Store) -> Result<(), StateError> {
        let started = Instant::now();
        let wanted = std::mem::take(&mut self.wanted);
        self.sort(&wanted, store);
        // The worker takes a share as well, as it would have to wait anyway.
        let own = wanted.len() / (store.readers().threads() + 1);
        self.hand_to_threads(&wanted, own, store)?;
        self.awaited += wanted.len() - own;
        self.wanted = wanted;
        self.sorted.clear();
        for &(_, index) in &self.order[..own] {
            self.sorted.push(self.unsorted.get(index as usize));
        }
        self.read_sorted(store)?;
        self.wait_for_all(store)?;
        self.measured_read(ReadCall::Threads, self.wanted.len(), started.elapsed());
        Ok(())
    }

    /// Hands all but the first `own` of the rows to reader threads, in the order that `sort` gave
    /// them.
    fn hand_to_threads(&mut self, slots: &[u32], own: usize, store: &Store) -> Result<(), StateError> {
        store.check_poison()?;
        let readers = store.readers();
        let order = &self.order[own..];
        let each = order.len().div_ceil(readers.threads().max(1));
        for part in order.chunks(each.clamp(self.ahead.least_keys, MOST_KEYS_A_READ)) {
            let mut read = self.ahead.spare.pop().unwrap_or_default();
            read.clear();
            read.era = self.ahead.era;
            for &(_, index) in part {
                let slot = slots[index as usize];
                read.keys.push(self.unsorted.get(index as usize));
                read.tags.push(slot);
                self.cells.get_mut(slot).status = Status::Requested;
            }
            let handed = match &self.ahead.reader {
                Some(reader) => readers.submit(read, reader, &self.ahead.reply, self.ahead.waker.as_ref()),
                None => Err(read),
            };
            if let Err(mut read) = handed {
                let failure = read.failure.take().unwrap_or_else(no_threads);
                return Err(store.batch_error(self.state, &read.keys, failure));
            }
        }
        Ok(())
    }

    /// Hands the rows that were declared ahead to the threads, once they are worth a read.
    pub(super) fn submit_ahead(&mut self, store: &Store) -> Result<(), StateError> {
        if self.ahead.wanted.len() < READS_TO_START_WITH * self.ahead.least_keys {
            return Ok(());
        }
        let mut slots = std::mem::take(&mut self.ahead.wanted);
        // A release that came first has asked for some of them itself.
        slots.retain(|&slot| {
            let cell = self.cells.get(slot);
            cell.status == Status::Wanted && cell.ahead
        });
        // A cell that was freed and taken anew since then is in the list twice.
        slots.sort_unstable();
        slots.dedup();
        self.sort(&slots, store);
        self.hand_to_threads(&slots, 0, store)?;
        let handed = slots.len() as u64;
        store.count(self.state, |statistics| statistics.keys_ahead += handed);
        slots.clear();
        self.ahead.wanted = slots;
        Ok(())
    }

    /// Puts an answer into its cells.
    pub(super) fn take_answer(&mut self, mut answer: Box<Read>, store: &Store) -> Result<(), StateError> {
        if answer.era != self.ahead.era {
            let stale = answer.tags.len() as u64;
            store.count(self.state, |statistics| statistics.ahead_stale += stale);
            self.put_by(answer);
            return Ok(());
        }
        if let Some(failure) = answer.failure.take() {
            return Err(store.batch_error(self.state, &answer.keys, failure));
        }
        let mut found = 0;
        for (index, (&slot, bytes)) in answer.tags.iter().zip(answer.values.iter()).enumerate() {
            found += u64::from(bytes.is_some());
            let cell = self.cells.get_mut(slot);
            debug_assert!(cell.status == Status::Requested, "an answer that nobody waits for");
            if cell.release == self.release && !cell.ahead {
                self.awaited -= 1;
            }
            let filled = fill(cell, bytes);
            if filled.map_err(|source| value_error(store, self.state, answer.keys.get(index), source))? {
                self.changed.push(slot);
            }
        }
        let (keys, value_bytes) = (answer.keys.len() as u64, answer.values.total_bytes() as u64);
        store.count_batch(self.state, keys, found, value_bytes);
        store.count(self.state, |statistics| statistics.thread_read_ns += answer.took.as_nanos() as u64);
        if let (Some(mean_key), Some(mean)) =
            (answer.keys.total_bytes().checked_div(answer.keys.len()), value_bytes.checked_div(found))
        {
            self.measured(mean_key, mean as usize);
        }
        self.ahead.policy.measured(answer.keys.len(), answer.took);
        self.put_by(answer);
        Ok(())
    }

    /// Keeps a read that is back for the next one, unless there are enough of them.
    fn put_by(&mut self, read: Box<Read>) {
        if self.ahead.spare.len() < MOST_SPARE_READS {
            self.ahead.spare.push(read);
        }
    }

    /// Waits for all rows that the release awaits.
    pub(super) fn wait_for_all(&mut self, store: &Store) -> Result<(), StateError> {
        self.wait_while(store, |table| table.awaited > 0)
    }

    /// Waits for one row that is on its way.
    pub(super) fn wait_for(&mut self, slot: u32, store: &Store) -> Result<(), StateError> {
        self.wait_while(store, |table| table.cells.get(slot).status == Status::Requested)
    }

    fn wait_while(&mut self, store: &Store, waits: impl Fn(&Self) -> bool) -> Result<(), StateError> {
        if !waits(self) {
            return Ok(());
        }
        let started = Instant::now();
        while waits(self) {
            // We hold a sender ourselves, and every read that was handed over is answered.
            let answer = self.ahead.answers.recv().expect("reader threads answer every read");
            self.take_answer(answer, store)?;
        }
        let took = started.elapsed();
        store.count(self.state, |statistics| statistics.read_ns += took.as_nanos() as u64);
        Ok(())
    }

    fn measured_read(&mut self, call: ReadCall, keys: usize, took: Duration) {
        self.planner.borrow_mut().measured(call, keys, took);
        self.ahead.policy.measured(keys, took);
    }

    /// How many rows a chunk may need, and how many may be read ahead.
    pub(super) fn rows_in_share(&self) -> usize {
        (self.budget.bytes_at_once() / self.row_bytes()).max(LEAST_ROWS_AHEAD)
    }

    /// Takes what has come in meanwhile, and looks how much may be read ahead from here on.
    pub(super) fn settle_ahead(&mut self, store: &Store) -> Result<(), StateError> {
        if !self.ahead.policy.is_active() && self.ahead.rows == 0 {
            return Ok(());
        }
        while let Ok(answer) = self.ahead.answers.try_recv() {
            self.take_answer(answer, store)?;
        }
        self.ahead.most_rows = self.rows_in_share().min(MOST_ROWS_AHEAD);
        Ok(())
    }
}

/// What a read that no thread took has failed of.
fn no_threads() -> BatchReadError {
    let message = "there are no reader threads".to_string();
    BatchReadError { index: None, error: BackendError { kind: BackendErrorKind::Other, message } }
}
