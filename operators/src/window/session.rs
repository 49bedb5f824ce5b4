//! Sessions: records of a key that follow each other closely.

use super::aggregate::Aggregate;
use super::operator::{LateValue, WindowRow};
use crate::event::{Event, Rank, Time};
use crate::frontier::Frontier;
use crate::logic::{Context, Fired, Logic, TableVisitor};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use tidegate_state::backend::StateName;
use tidegate_state::codec::StateValue;
use tidegate_state::error::StateError;
use tidegate_state::row::{ByKey, RowKey};
use tidegate_state::store::Store;
use tidegate_state::strategy::ReadStrategy;
use tidegate_state::table::{Slot, StateTable, Table, TimeTable};

/// So many keys are looked at together when sessions are due.
const KEYS_AT_ONCE: usize = 512;

/// How close records of a session are.
///
/// Two records of a key less than the gap apart are in one session. A session ends the gap after
/// its last record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sessions {
    gap: Time,
    allowed_lateness: Time,
}

/// Sessions that cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SessionsError {
    /// A gap that is none.
    #[error("the gap of sessions is {0}: it has to be at least 1")]
    Gap(Time),
    /// A lateness below zero.
    #[error("the allowed lateness is {0}: it has to be at least 0")]
    Lateness(Time),
}

impl Sessions {
    /// Sessions with this gap.
    ///
    /// # Errors
    /// [`SessionsError::Gap`] for a gap below 1.
    pub fn with_gap(gap: Time) -> Result<Self, SessionsError> {
        if gap < 1 { Err(SessionsError::Gap(gap)) } else { Ok(Sessions { gap, allowed_lateness: 0 }) }
    }

    /// The same sessions, whose results wait until the frontier is so far past their end.
    ///
    /// # Errors
    /// [`SessionsError::Lateness`] for less than 0.
    pub fn with_allowed_lateness(self, lateness: Time) -> Result<Self, SessionsError> {
        if lateness < 0 {
            return Err(SessionsError::Lateness(lateness));
        }
        Ok(Sessions { allowed_lateness: lateness, ..self })
    }

    /// Where a session with this last record ends.
    #[inline]
    fn end(&self, last: Time) -> Time {
        last.saturating_add(self.gap)
    }

    /// Whether a record belongs to a session: whether it belongs together with one of its records.
    fn belongs<V, C>(&self, time: Time, missed: Option<Time>, session: &Session<V, C>) -> bool {
        let end = self.end(time);
        if session.first >= end || time >= self.end(session.last) {
            return false;
        }
        let takes = |watermark: Option<Time>, earlier: Time| {
            watermark.is_none_or(|watermark| !self.is_closed(earlier, watermark))
        };
        // Records of a part follow each other closely, so whoever comes in between meets a later one.
        let meets_part = |part: &Part<C>| {
            part.first < end && time < self.end(part.last) && (time <= part.last || takes(missed, part.last))
        };
        let meets_late = |late: &LateValue<V>| {
            late.time < end
                && time < self.end(late.time)
                && (late.time >= time || takes(missed, late.time))
                && (late.time <= time || takes(late.rank.missed_watermark(), time))
        };
        session.parts.iter().any(meets_part) || session.late.iter().any(meets_late)
    }

    /// Whether a session with this last record is closed for whoever knows this watermark.
    #[inline]
    fn is_closed(&self, last: Time, watermark: Time) -> bool {
        self.end(last).saturating_add(self.allowed_lateness) <= watermark
    }
}

/// An open session of a key.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Session<V, C> {
    first: Time,
    last: Time,
    /// What sessions there would be without late records, in order; most often one.
    parts: Vec<Part<C>>,
    late: Vec<LateValue<V>>,
}

/// Records in time that follow each other closely.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Part<C> {
    first: Time,
    last: Time,
    accumulator: C,
}

impl<V, C> Session<V, C> {
    /// Takes up a later session, or one that overlaps.
    fn absorb(&mut self, other: Self) {
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
        self.parts.extend(other.parts);
        self.parts.sort_by_key(|part| part.last);
        self.late.extend(other.late);
    }
}

/// Aggregates the records of each session; issues each result once, when the session closes.
///
/// **Who is with whom.** Two records belong together if they are less than the gap apart; but a
/// late record does not belong with an earlier one whose session its own partition's watermark
/// had closed. What belongs together, directly or through others, is a session. As a session is
/// kept until no record can come that belongs with one of its own, sessions do not depend on the
/// order in which records come.
///
/// **In which order records are added.** Those in time as they are released, by (time, rank). A
/// late record may join sessions that were apart; their accumulators stay apart until the session
/// closes, and late values are added last. So that order too is a property of the input.
///
/// A key with open sessions has a timer that is not after the first of their ends. It is not moved
/// when a session grows, but set anew when it is due and the session is not.
pub struct SessionOperator<K: RowKey, V, A: Aggregate<V>> {
    sessions: Sessions,
    aggregate: A,
    open: Table<ByKey<K>, Vec<Session<V, A::Accumulator>>>,
    timers: TimeTable<K, ()>,
    /// Keys whose timer was due at this time, and that were not looked at yet.
    due: Vec<K>,
    due_at: Time,
    encoded: Vec<u8>,
}

impl<K, V, A> SessionOperator<K, V, A>
where
    K: RowKey,
    V: StateValue + Clone,
    A: Aggregate<V>,
{
    /// The operator of this name, with its states `sessions` and `timers`.
    ///
    /// # Errors
    /// Those of [`Store::open_state`], and of a first look at the states.
    pub fn open(
        store: &Store,
        operator: &str,
        strategy: ReadStrategy,
        sessions: Sessions,
        aggregate: A,
    ) -> Result<Self, StateError> {
        Ok(SessionOperator {
            sessions,
            aggregate,
            open: Table::open(store, &StateName::new(operator, "sessions")?, strategy)?,
            timers: TimeTable::open(store, &StateName::new(operator, "timers")?, strategy)?,
            due: Vec::new(),
            due_at: Time::MIN,
            encoded: Vec::new(),
        })
    }

    /// Adds a record that came in time: to the part that it follows closely, or as a new part of
    /// the session that it belongs to.
    fn add(&self, session: &mut Session<V, A::Accumulator>, time: Time, value: V) {
        match session.parts.last_mut() {
            Some(part) if time < self.sessions.end(part.last) => {
                part.last = part.last.max(time);
                self.aggregate.add(&mut part.accumulator, time, value);
            }
            _ => {
                let mut accumulator = self.aggregate.create();
                self.aggregate.add(&mut accumulator, time, value);
                session.parts.push(Part { first: time, last: time, accumulator });
            }
        }
    }

    /// Takes the timers of the next time that is due; tells whether there are any.
    fn take_timers(&mut self, frontier: Frontier, store: &Store) -> Result<bool, StateError> {
        let Some(time) = self.timers.first_time() else { return Ok(false) };
        if !frontier.is_past(time.saturating_add(self.sessions.allowed_lateness) - 1) {
            return Ok(false);
        }
        let mut scan = self.timers.scan_time(time);
        let due = &mut self.due;
        while self.timers.next_rows(&mut scan, usize::MAX, store, |key, ()| due.push(key.clone()))? {}
        self.timers.remove_time(time, store)?;
        self.due_at = time;
        Ok(true)
    }

    /// The result of a session.
    fn result(&self, session: Session<V, A::Accumulator>) -> A::Output {
        let Session { parts, mut late, .. } = session;
        let mut all = self.aggregate.create();
        for part in &parts {
            self.aggregate.merge(&mut all, &part.accumulator);
        }
        late.sort_by(|a, b| a.time.cmp(&b.time).then_with(|| a.rank.cmp(&b.rank)));
        for LateValue { time, value, .. } in late {
            self.aggregate.add(&mut all, time, value);
        }
        self.aggregate.result(&all)
    }

    /// Issues the sessions of a key that are closed, and sets its timer anew if others are open.
    fn close(
        &mut self,
        key: K,
        slot: Slot,
        frontier: Frontier,
        outputs: &mut Vec<Event<WindowRow<K, A::Output>>>,
    ) {
        if self.open.get(slot).is_none() {
            // Another timer of the key was there first.
            return;
        }
        let sessions = self.open.get_mut(slot).take().unwrap_or_default();
        let (mut still_open, mut next) = (Vec::new(), None::<Time>);
        for session in sessions {
            let end = self.sessions.end(session.last);
            if !frontier.is_past(end.saturating_add(self.sessions.allowed_lateness) - 1) {
                next = Some(next.map_or(end, |next| next.min(end)));
                still_open.push(session);
                continue;
            }
            let first = session.first;
            let result = self.result(session);
            self.encoded.clear();
            key.encode_into(&mut self.encoded);
            let rank = Rank::key(&self.encoded);
            outputs.push(Event { time: end - 1, rank, data: (first, end, key.clone(), result) });
        }
        if let Some(next) = next {
            *self.open.get_mut(slot) = Some(still_open);
            self.timers.put(&(next, key), ());
        }
    }
}

impl<K, V, A> Logic for SessionOperator<K, V, A>
where
    K: RowKey,
    V: StateValue + Clone,
    A: Aggregate<V>,
{
    type Key = K;
    type Input = V;
    type Output = WindowRow<K, A::Output>;
    type Reads = Slot;

    fn is_too_late(&self, event: &Event<(K, V)>, watermark: Time) -> bool {
        self.sessions.is_closed(event.time, watermark)
    }

    fn allowed_lateness(&self) -> Time {
        self.sessions.allowed_lateness
    }

    #[inline]
    fn declare(&mut self, event: &Event<(K, V)>) -> Slot {
        self.open.request(&event.data.0)
    }

    fn apply(
        &mut self,
        event: Event<(K, V)>,
        slot: Slot,
        _: &mut Context<'_, Self::Output>,
    ) -> Result<(), StateError> {
        let Event { time, rank, data: (key, value) } = event;
        let missed = rank.missed_watermark();
        let (sessions, end) = (self.sessions, self.sessions.end(time));
        let mut open = self.open.get_mut(slot).take().unwrap_or_default();
        let mut joined = open.extract_if(.., |session| sessions.belongs(time, missed, session));
        let mut session = match joined.next() {
            Some(first) => joined.fold(first, |mut session, other| {
                session.absorb(other);
                session
            }),
            None => {
                drop(joined);
                self.timers.put(&(end, key), ());
                Session { first: time, last: time, parts: Vec::new(), late: Vec::new() }
            }
        };
        (session.first, session.last) = (session.first.min(time), session.last.max(time));
        match missed {
            None => self.add(&mut session, time, value),
            Some(_) => session.late.push(LateValue { time, rank, value }),
        }
        open.push(session);
        *self.open.get_mut(slot) = Some(open);
        Ok(())
    }

    fn earliest_due(&self) -> Option<Time> {
        let due = (!self.due.is_empty()).then_some(self.due_at);
        due.into_iter().chain(self.timers.first_time()).min().map(|end| end - 1)
    }

    fn fire(
        &mut self,
        frontier: Frontier,
        context: &mut Context<'_, Self::Output>,
    ) -> Result<Fired, StateError> {
        if self.due.is_empty() && !self.take_timers(frontier, context.store)? {
            return Ok(Fired::Nothing);
        }
        let keys: Vec<K> = self.due.drain(self.due.len().saturating_sub(KEYS_AT_ONCE)..).collect();
        let slots: Vec<Slot> = keys.iter().map(|key| self.open.request(key)).collect();
        self.open.load(context.store)?;
        for (key, slot) in keys.into_iter().zip(slots) {
            self.close(key, slot, frontier, context.outputs);
        }
        Ok(Fired::Settle)
    }

    fn for_each_table(&mut self, visit: &mut TableVisitor<'_>) -> Result<(), StateError> {
        visit(&mut self.open as &mut dyn StateTable)?;
        visit(self.timers.as_state_table())
    }
}
