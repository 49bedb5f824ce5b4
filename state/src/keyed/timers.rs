//! Timers of keys: times at which logic is called without a record.

use super::Scope;
use crate::error::StateError;
use crate::row::RowKey;
use crate::store::Store;
use crate::table::{StateTable, TimeTable};
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

/// The current key's timers, for logic that is called at event times without a record.
///
/// A timer is a key and a time: setting one twice sets one. It fires when the frontier is past its
/// time, in the order of times among the key's records, after those of equal time. One that is set
/// for a time before the record or timer at hand fires right after it.
pub struct Timers<K: RowKey> {
    pub(super) scope: Rc<Scope<K>>,
    pub(super) queue: Rc<RefCell<TimerQueue<K>>>,
}

impl<K: RowKey> Timers<K> {
    /// Sets a timer. This reads nothing.
    pub fn set(&self, time: i64) {
        self.queue.borrow_mut().set(&self.scope.key(), time);
    }

    /// Takes a timer back, if it is set. This reads nothing.
    pub fn delete(&self, time: i64) {
        self.queue.borrow_mut().delete(&self.scope.key(), time);
    }
}

/// When a timer fires, and the time that it was set for.
pub type DueTimer = (i64, i64);

/// Timers are taken out of the state in pieces of about so many.
const MOST_DUE: usize = 65_536;

/// All timers of an operator, for its driver.
///
/// They lie in a state by time and key. What a release is past is taken out by one scan and one range
/// deletion, and is due: it waits here by key. So neither looking for what is due nor setting a timer
/// reads a row, and nothing ever steps over timers that have fired.
///
/// # Contract
///
/// The driver calls [`begin`](Self::begin) before each release, and takes every due timer before the
/// next one.
pub struct TimerQueue<K: RowKey> {
    /// By (time, key), each for its own time.
    pending: TimeTable<K, ()>,
    due: HashMap<K, BTreeSet<DueTimer>>,
    /// No due timer fires before it.
    due_from: i64,
    /// Timers before it are due, all if there is none.
    end: Option<i64>,
    /// The time of the record or timer at hand.
    now: i64,
}

impl<K: RowKey> TimerQueue<K> {
    /// A queue with what its table has.
    pub fn new(pending: TimeTable<K, ()>) -> Self {
        TimerQueue { pending, due: HashMap::new(), due_from: i64::MAX, end: Some(i64::MIN), now: i64::MIN }
    }

    /// Takes up what fires before `end` (everything, if there is none), or a first part of it if it is
    /// much: then it gives the time before which all of it is due. The timers of one time are one part.
    ///
    /// # Errors
    /// [`StateError`] where state cannot be read or written.
    pub fn begin(&mut self, end: Option<i64>, store: &Store) -> Result<Option<i64>, StateError> {
        if self.due.is_empty() {
            self.due_from = i64::MAX;
        }
        let (due, due_from) = (&mut self.due, &mut self.due_from);
        let left = self.pending.take_before(end, MOST_DUE, store, &mut |time, key, ()| {
            *due_from = (*due_from).min(time);
            match due.get_mut(key) {
                Some(timers) => _ = timers.insert((time, time)),
                None => _ = due.insert(key.clone(), BTreeSet::from([(time, time)])),
            }
        })?;
        self.end = left.or(end);
        Ok(self.end)
    }

    /// Says which time the record or timer at hand has.
    pub fn set_now(&mut self, now: i64) {
        self.now = now;
    }

    fn set(&mut self, key: &K, time: i64) {
        let fires_at = time.max(self.now);
        if self.end.is_some_and(|end| fires_at >= end) {
            // It is not due in the release under way, so it is not for a time before the one at hand.
            self.pending.put(&(fires_at, key.clone()), ());
            return;
        }
        self.due_from = self.due_from.min(fires_at);
        let timers = self.due.entry(key.clone()).or_default();
        if !timers.iter().any(|&(_, set_for)| set_for == time) {
            timers.insert((fires_at, time));
        }
    }

    fn delete(&mut self, key: &K, time: i64) {
        if self.end.is_some_and(|end| time >= end) {
            self.pending.remove(&(time, key.clone()));
        } else if let Some(timers) = self.due.get_mut(key) {
            timers.retain(|&(_, set_for)| set_for != time);
        }
    }

    /// The key's next due timer that fires before `before`, or whichever is next.
    pub fn take(&mut self, key: &K, before: Option<i64>) -> Option<DueTimer> {
        if self.due.is_empty() {
            return None;
        }
        let timers = self.due.get_mut(key)?;
        match timers.first() {
            Some(&(fires_at, _)) if before.is_none_or(|before| fires_at < before) => timers.pop_first(),
            Some(_) => None,
            None => {
                self.due.remove(key);
                None
            }
        }
    }

    /// The key's due timers.
    pub fn due_of(&self, key: &K) -> impl Iterator<Item = DueTimer> {
        self.due.get(key).into_iter().flatten().copied()
    }

    /// Some keys that have due timers.
    pub fn due_keys(&self, most: usize) -> Vec<K> {
        self.due.keys().take(most).cloned().collect()
    }

    /// No timer fires before it; none where none is set.
    pub fn earliest(&self) -> Option<i64> {
        let due = (!self.due.is_empty()).then_some(self.due_from);
        due.into_iter().chain(self.pending.first_time()).min()
    }

    /// The state as drivers see it.
    pub fn as_state_table(&mut self) -> &mut dyn StateTable {
        self.pending.as_state_table()
    }
}
