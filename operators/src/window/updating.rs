//! The operator for windows whose results are updated: early, on time, and for late records.

use super::aggregate::Aggregate;
use super::firing::{Firing, Pane, UpdateKind, WindowUpdate};
use super::windows::Windows;
use crate::event::{Event, Rank, Time};
use crate::frontier::Frontier;
use crate::logic::{Context, Fired, Logic, TableVisitor};
use serde::{Deserialize, Serialize};
use tidegate_state::backend::StateName;
use tidegate_state::error::StateError;
use tidegate_state::row::RowKey;
use tidegate_state::store::Store;
use tidegate_state::strategy::ReadStrategy;
use tidegate_state::table::{Slot, TimeScan, TimeTable};

/// Results are handed on in pieces of about this many rows.
const ROWS_AT_ONCE: usize = 512;

/// Aggregates the records of each key and window, and issues results as [`Firing`] says.
///
/// # Contract
///
/// An event's time is when it **counts**: a record in time counts at its own time, and a late one at
/// the watermark of its partition that it missed, for by then its partition had come so far. The
/// record's own time lies beside its value. So the order in which records count is a property of the
/// input, and with it every result, early and late ones included. A result has the time at which it
/// came about: that of the record that asked for it, or the last time of its window.
///
/// Each window of a record is a row of its own: slices cannot be shared, as each window has results
/// of its own before it closes. So a record changes `size / slide` rows.
pub struct UpdatingWindowOperator<K: RowKey, A: Aggregate<V>, V> {
    windows: Windows,
    firing: Firing,
    aggregate: A,
    /// By start of window.
    rows: TimeTable<K, OpenWindow<A::Accumulator>>,
    /// Windows that start before this one have had their results on time.
    on_time_from: Time,
    /// The window that has them now.
    current: Option<(Time, TimeScan)>,
    encoded: Vec<u8>,
    input: std::marker::PhantomData<fn(V)>,
}

/// A key and window that may still change.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OpenWindow<C> {
    accumulator: C,
    /// Records since the last result.
    records: u64,
    /// When the last record counted.
    last: Option<Time>,
    /// Results so far, but for one on time that the row does not know of.
    panes: u32,
    /// Whether the row knows that its result on time was issued.
    on_time: bool,
    /// What the last result was made of, where it may have to be retracted.
    shown: Option<C>,
}

/// The rows that an event needs.
pub enum UpdatingReads {
    /// That of its only window.
    One(Time, Slot),
    /// Those of each of its windows, or of none.
    Many(Vec<(Time, Slot)>),
}

impl<K, A, V> UpdatingWindowOperator<K, A, V>
where
    K: RowKey,
    V: Clone + 'static,
    A: Aggregate<V>,
    A::Accumulator: Clone,
{
    /// The operator of this name, with its state `windows`.
    ///
    /// # Errors
    /// Those of [`Store::open_state`], and of a first look at the state.
    pub fn open(
        store: &Store,
        operator: &str,
        strategy: ReadStrategy,
        windows: Windows,
        aggregate: A,
        firing: Firing,
    ) -> Result<Self, StateError> {
        Ok(UpdatingWindowOperator {
            windows,
            firing,
            aggregate,
            rows: TimeTable::open(store, &StateName::new(operator, "windows")?, strategy)?,
            on_time_from: Time::MIN,
            current: None,
            encoded: Vec::new(),
            input: std::marker::PhantomData,
        })
    }

    /// Whether a window takes no record any more that counts at `time`.
    fn is_closed(&self, start: Time, time: Time) -> bool {
        self.windows.end(start).saturating_add(self.windows.allowed_lateness()) <= time
    }

    /// The earliest window that has not had its results on time.
    fn next_start(&self) -> Option<Time> {
        self.rows.times(self.on_time_from..).next()
    }

    /// Counts a record in one of its windows.
    fn count(
        &mut self,
        (start, slot): (Time, Slot),
        event: &Event<(K, (Time, V))>,
        outputs: &mut Vec<Event<WindowUpdate<K, A::Output>>>,
    ) {
        let Event { time, rank, data: (key, (record_time, value)) } = event;
        let end = self.windows.end(start);
        let row = self.rows.get_mut(slot);
        let is_new = row.is_none();
        let row = row.get_or_insert_with(|| OpenWindow::new(self.aggregate.create()));
        let mut issue = Issue {
            aggregate: &self.aggregate,
            firing: self.firing,
            window: (start, end),
            key,
            encoded: &mut self.encoded,
            outputs,
        };
        let is_late = end <= *time;
        if is_late && !row.on_time {
            // The result on time comes before any late one, also where the frontier passes both at
            // once. A key without records has none.
            if start >= self.on_time_from && !is_new {
                issue.on_time(row);
            }
            if !is_new {
                row.shown_now(self.firing);
            }
            row.on_time = true;
        }
        row.records += 1;
        self.aggregate.add(&mut row.accumulator, *record_time, value.clone());
        let before = row.last.replace(*time);
        if is_late {
            issue.caused(row, Pane::Late, *time, rank);
        } else if self.firing.is_early_due(row.records, before, *time) {
            issue.caused(row, Pane::Early, *time, rank);
        }
    }

    /// Issues a piece of the results on time of a window.
    fn fire_on_time(
        &mut self,
        start: Time,
        mut scan: TimeScan,
        context: &mut Context<'_, WindowUpdate<K, A::Output>>,
    ) -> Result<Fired, StateError> {
        let window = (start, self.windows.end(start));
        let (aggregate, firing, encoded) = (&self.aggregate, self.firing, &mut self.encoded);
        let outputs = &mut *context.outputs;
        let more = self.rows.next_rows(&mut scan, ROWS_AT_ONCE, context.store, |key, row| {
            if !row.on_time {
                Issue { aggregate, firing, window, key, encoded, outputs }.on_time(row);
            }
        })?;
        if more {
            self.current = Some((start, scan));
            return Ok(Fired::Part);
        }
        self.on_time_from = start.saturating_add(1);
        if self.windows.allowed_lateness() == 0 {
            self.rows.remove_time(start, context.store)?;
        }
        Ok(Fired::Settle)
    }
}

impl<K, A, V> Logic for UpdatingWindowOperator<K, A, V>
where
    K: RowKey,
    V: Clone + 'static,
    A: Aggregate<V>,
    A::Accumulator: Clone,
{
    type Key = K;
    type Input = (Time, V);
    type Output = WindowUpdate<K, A::Output>;
    type Reads = UpdatingReads;

    fn is_too_late(&self, event: &Event<(K, (Time, V))>, _: Time) -> bool {
        let (record_time, _) = event.data.1;
        self.windows.last_start(record_time).is_some_and(|start| self.is_closed(start, event.time))
    }

    fn declare(&mut self, event: &Event<(K, (Time, V))>) -> UpdatingReads {
        let (key, (record_time, _)) = &event.data;
        if self.windows.is_one_slice() {
            return match self.windows.last_start(*record_time) {
                Some(start) => UpdatingReads::One(start, self.rows.request(&(start, key.clone()))),
                None => UpdatingReads::Many(Vec::new()),
            };
        }
        let starts = self.windows.starts_of(*record_time);
        let open: Vec<_> = starts.filter(|&start| !self.is_closed(start, event.time)).collect();
        let rows = &mut self.rows;
        UpdatingReads::Many(
            open.into_iter().map(|start| (start, rows.request(&(start, key.clone())))).collect(),
        )
    }

    fn apply(
        &mut self,
        event: Event<(K, (Time, V))>,
        reads: UpdatingReads,
        context: &mut Context<'_, Self::Output>,
    ) -> Result<(), StateError> {
        match reads {
            UpdatingReads::One(start, slot) => self.count((start, slot), &event, context.outputs),
            UpdatingReads::Many(slots) => {
                slots.into_iter().for_each(|slot| self.count(slot, &event, context.outputs));
            }
        }
        Ok(())
    }

    fn earliest_due(&self) -> Option<Time> {
        let current = self.current.as_ref().map(|(start, _)| *start);
        current
            .or_else(|| self.rows.times(self.on_time_from..).next())
            .map(|start| self.windows.end(start) - 1)
    }

    fn fire(
        &mut self,
        frontier: Frontier,
        context: &mut Context<'_, Self::Output>,
    ) -> Result<Fired, StateError> {
        if let Some((start, scan)) = self.current.take() {
            return self.fire_on_time(start, scan, context);
        }
        if let Some(start) = self.next_start()
            && frontier.is_past(self.windows.end(start) - 1)
        {
            let scan = self.rows.scan_time(start);
            return self.fire_on_time(start, scan, context);
        }
        if let Some(start) = self.rows.first_time()
            && start < self.on_time_from
            && frontier.is_past(self.windows.end(start).saturating_add(self.windows.allowed_lateness()) - 1)
        {
            self.rows.remove_time(start, context.store)?;
            return Ok(Fired::Settle);
        }
        Ok(Fired::Nothing)
    }

    fn for_each_table(&mut self, visit: &mut TableVisitor<'_>) -> Result<(), StateError> {
        visit(self.rows.as_state_table())
    }
}

impl<C: Clone> OpenWindow<C> {
    fn new(accumulator: C) -> Self {
        OpenWindow { accumulator, records: 0, last: None, panes: 0, on_time: false, shown: None }
    }

    /// Notes that a result was issued of what there is now.
    fn shown_now(&mut self, firing: Firing) {
        self.panes = self.panes.saturating_add(1);
        self.records = 0;
        if firing.retracts() {
            self.shown = Some(self.accumulator.clone());
        }
    }
}

/// Makes the results of one key and window.
struct Issue<'a, K, A, O> {
    aggregate: &'a A,
    firing: Firing,
    window: (Time, Time),
    key: &'a K,
    encoded: &'a mut Vec<u8>,
    outputs: &'a mut Vec<Event<WindowUpdate<K, O>>>,
}

impl<K: RowKey, A, O> Issue<'_, K, A, O> {
    /// The result on time of what there is.
    fn on_time<C, V>(&mut self, row: &OpenWindow<C>)
    where
        A: Aggregate<V, Accumulator = C, Output = O>,
    {
        self.encoded.clear();
        self.key.encode_into(self.encoded);
        let rank = Rank::key(self.encoded);
        self.issue(row, Pane::OnTime, self.window.1 - 1, &rank);
    }

    /// A result that a record caused, and which the row remembers.
    fn caused<C: Clone, V>(&mut self, row: &mut OpenWindow<C>, pane: Pane, time: Time, rank: &Rank)
    where
        A: Aggregate<V, Accumulator = C, Output = O>,
    {
        let mut rank = rank.clone();
        // Whatever the record was late for, its result is in time where it comes.
        rank.forgive(time);
        self.issue(row, pane, time, &rank);
        row.shown_now(self.firing);
    }

    fn issue<C, V>(&mut self, row: &OpenWindow<C>, pane: Pane, time: Time, rank: &Rank)
    where
        A: Aggregate<V, Accumulator = C, Output = O>,
    {
        let shown = row.shown.as_ref().filter(|_| self.firing.retracts());
        let retraction = shown.map(|shown| (UpdateKind::Retract, self.aggregate.result(shown)));
        let insertion = (UpdateKind::Insert, self.aggregate.result(&row.accumulator));
        for (kind, output) in retraction.into_iter().chain([insertion]) {
            let (start, end) = self.window;
            let mut rank = rank.clone();
            if self.firing.retracts() {
                // What is taken back goes before what takes its place, wherever the two go.
                rank.branch_off(2, u16::from(kind == UpdateKind::Insert));
            }
            let data =
                WindowUpdate { start, end, key: self.key.clone(), output, pane, index: row.panes, kind };
            self.outputs.push(Event { time, rank, data });
        }
    }
}
