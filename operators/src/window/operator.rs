//! The operator: slices in state, windows that close.

use super::aggregate::Aggregate;
use super::windows::Windows;
use crate::event::{Event, Rank, Time};
use crate::frontier::Frontier;
use crate::logic::{Context, Fired, Logic, TableVisitor};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, hash_map};
use tidegate_state::backend::StateName;
use tidegate_state::codec::StateValue;
use tidegate_state::error::StateError;
use tidegate_state::row::RowKey;
use tidegate_state::store::Store;
use tidegate_state::strategy::ReadStrategy;
use tidegate_state::table::{Slot, TimeScan, TimeTable};

/// A window's result: start, end (not included), key, and what the aggregate gives.
pub type WindowRow<K, O> = (Time, Time, K, O);

/// Results of a window are handed on in pieces of about this many rows.
const ROWS_AT_ONCE: usize = 512;

/// Aggregates the records of each key and window; issues each result once, when the window closes.
///
/// A record in time changes one row, that of its key and slice. A window that closes goes through
/// its slices in order, and what no later window needs is removed. A record that came too late for
/// its partition's watermark, but not for every window, may count in some windows of its slice and
/// not in others, and whether it was released before or after others is chance: so it is set aside
/// for each window that still takes it, and added when that window closes, in the order of
/// (time, rank) among its like.
pub struct WindowOperator<K: RowKey, V, A: Aggregate<V>> {
    windows: Windows,
    aggregate: A,
    slices: TimeTable<K, A::Accumulator>,
    /// By start of window.
    late: TimeTable<K, Vec<LateValue<V>>>,
    /// Windows that start before this one have closed.
    open_from: Time,
    closing: Option<Closing<K, V, A::Accumulator>>,
    encoded: Vec<u8>,
}

/// A record's value that waits for its window to close.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LateValue<V> {
    pub(super) time: Time,
    pub(super) rank: Rank,
    pub(super) value: V,
}

/// Late values of one window.
type LateValues<K, V> = HashMap<K, Vec<LateValue<V>>>;

/// A window that is being closed.
struct Closing<K, V, C> {
    start: Time,
    late: LateValues<K, V>,
    rows: ClosingRows<K, C>,
}

/// What is left of the window's rows.
enum ClosingRows<K, C> {
    /// Of the only slice.
    Slice(TimeScan),
    /// Merged from several slices, or left from late values alone.
    Merged(hash_map::IntoIter<K, C>),
}

/// What an event needs.
pub enum WindowReads {
    /// The row of its slice.
    Slice(Slot),
    /// The late values of each window that still takes it.
    Late(Vec<Slot>),
    /// It lies between windows.
    Nothing,
}

impl<K, V, A> WindowOperator<K, V, A>
where
    K: RowKey,
    V: StateValue + Clone,
    A: Aggregate<V>,
{
    /// The operator of this name, with its states `slices` and `late`.
    ///
    /// # Errors
    /// Those of [`Store::open_state`], and of a first look at the states.
    pub fn open(
        store: &Store,
        operator: &str,
        strategy: ReadStrategy,
        windows: Windows,
        aggregate: A,
    ) -> Result<Self, StateError> {
        Ok(WindowOperator {
            windows,
            aggregate,
            slices: TimeTable::open(store, &StateName::new(operator, "slices")?, strategy)?,
            late: TimeTable::open(store, &StateName::new(operator, "late")?, strategy)?,
            open_from: Time::MIN,
            closing: None,
            encoded: Vec::new(),
        })
    }

    /// Whether a window is closed for whoever knows this watermark.
    fn is_closed(&self, start: Time, watermark: Time) -> bool {
        self.windows.end(start).saturating_add(self.windows.allowed_lateness()) <= watermark
    }

    /// The start of the earliest window that has anything and is not closed.
    fn next_start(&self) -> Option<Time> {
        let slice = self.slices.first_time().map(|slice| self.windows.first_start(slice).max(self.open_from));
        slice.into_iter().chain(self.late.first_time()).min()
    }

    /// Takes up the next window that is due.
    fn begin(&mut self, start: Time, store: &Store) -> Result<(), StateError> {
        let mut late = LateValues::new();
        let mut scan = self.late.scan_time(start);
        let mut more = true;
        while more {
            more = self.late.next_rows(&mut scan, ROWS_AT_ONCE, store, |key, values| {
                let mut values = values.clone();
                values.sort_by(|a, b| a.time.cmp(&b.time).then_with(|| a.rank.cmp(&b.rank)));
                late.insert(key.clone(), values);
            })?;
        }
        let rows = if self.windows.is_one_slice() {
            ClosingRows::Slice(self.slices.scan_time(start))
        } else {
            ClosingRows::Merged(self.merged(start, store)?.into_iter())
        };
        self.closing = Some(Closing { start, late, rows });
        Ok(())
    }

    /// The rows of a window of several slices.
    fn merged(&mut self, start: Time, store: &Store) -> Result<HashMap<K, A::Accumulator>, StateError> {
        let mut merged = HashMap::new();
        let times: Vec<_> = self.slices.times(start..self.windows.end(start)).collect();
        for slice in times {
            let mut scan = self.slices.scan_time(slice);
            let aggregate = &self.aggregate;
            while self.slices.next_rows(&mut scan, usize::MAX, store, |key, accumulator| {
                let sum = merged.entry(key.clone()).or_insert_with(|| aggregate.create());
                aggregate.merge(sum, accumulator);
            })? {}
        }
        Ok(merged)
    }
}

/// What makes rows of a window's accumulators.
struct Emitter<'a, 'b, K: RowKey, V, A: Aggregate<V>> {
    windows: Windows,
    aggregate: &'a A,
    start: Time,
    late: &'a mut LateValues<K, V>,
    encoded: &'a mut Vec<u8>,
    outputs: &'b mut Vec<Event<WindowRow<K, A::Output>>>,
}

impl<K: RowKey, V, A: Aggregate<V>> Emitter<'_, '_, K, V, A> {
    /// The row of a key that has an accumulator; what came late for it is added first.
    #[inline]
    fn emit(&mut self, key: &K, accumulator: &A::Accumulator) {
        let result = match self.late.is_empty() {
            true => self.aggregate.result(accumulator),
            false => {
                let mut all = self.aggregate.create();
                self.aggregate.merge(&mut all, accumulator);
                self.add_late(key, &mut all);
                self.aggregate.result(&all)
            }
        };
        self.push(key.clone(), result);
    }

    /// The rows of keys that have nothing but late values.
    fn emit_late_alone(&mut self) {
        let mut keys: Vec<K> = self.late.keys().cloned().collect();
        for key in keys.drain(..) {
            let mut all = self.aggregate.create();
            self.add_late(&key, &mut all);
            let result = self.aggregate.result(&all);
            self.push(key, result);
        }
    }

    fn add_late(&mut self, key: &K, accumulator: &mut A::Accumulator) {
        for late in self.late.remove(key).into_iter().flatten() {
            self.aggregate.add(accumulator, late.time, late.value);
        }
    }

    fn push(&mut self, key: K, result: A::Output) {
        self.encoded.clear();
        key.encode_into(self.encoded);
        let end = self.windows.end(self.start);
        let rank = Rank::key(self.encoded);
        self.outputs.push(Event { time: end - 1, rank, data: (self.start, end, key, result) });
    }
}

impl<K, V, A> Logic for WindowOperator<K, V, A>
where
    K: RowKey,
    V: StateValue + Clone,
    A: Aggregate<V>,
{
    type Key = K;
    type Input = V;
    type Output = WindowRow<K, A::Output>;
    type Reads = WindowReads;

    fn is_too_late(&self, event: &Event<(K, V)>, watermark: Time) -> bool {
        self.windows.last_start(event.time).is_some_and(|start| self.is_closed(start, watermark))
    }

    fn allowed_lateness(&self) -> Time {
        self.windows.allowed_lateness()
    }

    #[inline]
    fn declare(&mut self, event: &Event<(K, V)>) -> WindowReads {
        let key = &event.data.0;
        if let Some(watermark) = event.rank.missed_watermark() {
            let starts =
                self.windows.starts_of(event.time).filter(|&start| !self.is_closed(start, watermark));
            let starts: Vec<_> = starts.collect();
            return WindowReads::Late(
                starts.into_iter().map(|start| self.late.request(&(start, key.clone()))).collect(),
            );
        }
        match self.windows.slice_of(event.time) {
            Some(slice) => WindowReads::Slice(self.slices.request(&(slice, key.clone()))),
            None => WindowReads::Nothing,
        }
    }

    #[inline]
    fn apply(
        &mut self,
        event: Event<(K, V)>,
        reads: WindowReads,
        _: &mut Context<'_, Self::Output>,
    ) -> Result<(), StateError> {
        let Event { time, rank, data: (_, value) } = event;
        match reads {
            WindowReads::Slice(slot) => {
                let accumulator = self.slices.get_mut(slot).get_or_insert_with(|| self.aggregate.create());
                self.aggregate.add(accumulator, time, value);
            }
            WindowReads::Late(slots) => {
                for slot in slots {
                    let late = LateValue { time, rank: rank.clone(), value: value.clone() };
                    self.late.get_mut(slot).get_or_insert_default().push(late);
                }
            }
            WindowReads::Nothing => {}
        }
        Ok(())
    }

    fn earliest_due(&self) -> Option<Time> {
        let closing = self.closing.as_ref().map(|closing| closing.start);
        closing.or_else(|| self.next_start()).map(|start| self.windows.end(start) - 1)
    }

    fn fire(
        &mut self,
        frontier: Frontier,
        context: &mut Context<'_, Self::Output>,
    ) -> Result<Fired, StateError> {
        if self.closing.is_none() {
            let Some(start) = self.next_start() else { return Ok(Fired::Nothing) };
            let last = self.windows.end(start).saturating_add(self.windows.allowed_lateness()) - 1;
            if !frontier.is_past(last) {
                return Ok(Fired::Nothing);
            }
            self.begin(start, context.store)?;
        }
        // It was there, or has just been begun.
        let Some(mut closing) = self.closing.take() else { return Ok(Fired::Nothing) };
        let mut emitter = Emitter {
            windows: self.windows,
            aggregate: &self.aggregate,
            start: closing.start,
            late: &mut closing.late,
            encoded: &mut self.encoded,
            outputs: context.outputs,
        };
        let more = match &mut closing.rows {
            ClosingRows::Slice(scan) => {
                let emit = |key: &K, accumulator: &A::Accumulator| emitter.emit(key, accumulator);
                self.slices.next_rows(scan, ROWS_AT_ONCE, context.store, emit)?
            }
            ClosingRows::Merged(rows) => {
                for (key, accumulator) in rows.by_ref().take(ROWS_AT_ONCE) {
                    emitter.emit(&key, &accumulator);
                }
                rows.len() > 0
            }
        };
        if more {
            self.closing = Some(closing);
            return Ok(Fired::Part);
        }
        emitter.emit_late_alone();
        self.close(closing.start, context.store)?;
        Ok(Fired::Settle)
    }

    fn for_each_table(&mut self, visit: &mut TableVisitor<'_>) -> Result<(), StateError> {
        visit(self.slices.as_state_table())?;
        visit(self.late.as_state_table())
    }
}

impl<K: RowKey, V: StateValue, A: Aggregate<V>> WindowOperator<K, V, A> {
    /// Removes what no later window needs.
    fn close(&mut self, start: Time, store: &Store) -> Result<(), StateError> {
        self.open_from = self.windows.next_start(start);
        self.late.remove_time(start, store)?;
        while let Some(slice) = self.slices.first_time()
            && slice < self.open_from
        {
            self.slices.remove_time(slice, store)?;
        }
        Ok(())
    }
}
