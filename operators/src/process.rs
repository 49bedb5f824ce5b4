//! Process functions: any logic over the states of the current key, with declared reads.

use crate::event::{Event, Rank, Time};
use crate::frontier::Frontier;
use crate::logic::{Context, Fired, Logic, TableVisitor};
use tidegate_state::error::StateError;
use tidegate_state::key::StateKey;
use tidegate_state::keyed::{StateParts, States};
use tidegate_state::row::RowKey;
use tidegate_state::store::Store;
use tidegate_state::strategy::ReadStrategy;

/// Where a process function's results go.
pub struct Emitter<'a, O> {
    time: Time,
    rank: &'a Rank,
    outputs: &'a mut Vec<Event<O>>,
}

impl<O> Emitter<'_, O> {
    /// The event time of the record or timer at hand.
    pub fn time(&self) -> Time {
        self.time
    }

    /// Issues a result at that time.
    pub fn emit(&mut self, data: O) {
        self.outputs.push(Event { time: self.time, rank: self.rank.clone(), data });
    }
}

/// Logic over keyed states.
///
/// # Contract
///
/// [`declare`](Self::declare) calls `declare` on every state that [`process`](Self::process)
/// will use for the record, as far as it can tell from the record alone; what it leaves out
/// still works, at the price of a get. Both are called with the record's key as the current key.
/// `process` keeps nothing between records but in states, and does nothing that depends on how
/// records are grouped into releases.
///
/// ```
/// # use tidegate_operators::{event::Time, process::{Emitter, Process}};
/// # use tidegate_operators::state::{error::StateError, keyed::{States, ValueState}};
/// /// Passes on the first record of each key.
/// struct FirstSeen {
///     seen: ValueState<String, ()>,
/// }
///
/// impl FirstSeen {
///     fn open(states: &mut States<String>) -> Result<Self, StateError> {
///         Ok(FirstSeen { seen: states.value("seen")? })
///     }
/// }
///
/// impl Process for FirstSeen {
///     type Key = String;
///     type Input = i64;
///     type Output = (String, i64);
///
///     fn declare(&self, _: &String, _: &i64, _: Time) {
///         self.seen.declare();
///     }
///
///     fn process(&mut self, key: &String, value: i64, out: &mut Emitter<'_, (String, i64)>) -> Result<(), StateError> {
///         if self.seen.get()?.is_none() {
///             self.seen.set(())?;
///             out.emit((key.clone(), value));
///         }
///         Ok(())
///     }
/// }
/// ```
pub trait Process {
    /// What records are grouped by.
    type Key: RowKey;
    /// The rest of a record.
    type Input;
    /// What comes out.
    type Output;

    /// Declares the states that the record will need.
    fn declare(&self, key: &Self::Key, input: &Self::Input, time: Time);

    /// Handles a record.
    ///
    /// # Errors
    /// Those of the states; they end the job.
    fn process(
        &mut self,
        key: &Self::Key,
        input: Self::Input,
        out: &mut Emitter<'_, Self::Output>,
    ) -> Result<(), StateError>;

    /// Declares the states that a timer will need.
    fn declare_timer(&self, _key: &Self::Key, _time: Time) {}

    /// Handles a timer of the key that was set for `time` (see
    /// [`Timers`](tidegate_state::keyed::Timers)). Results have the time at which it fires, which is
    /// later where it was set for a time that had passed.
    ///
    /// # Errors
    /// Those of the states; they end the job.
    fn on_timer(
        &mut self,
        _key: &Self::Key,
        _time: Time,
        _out: &mut Emitter<'_, Self::Output>,
    ) -> Result<(), StateError> {
        Ok(())
    }
}

/// Timers of so many keys fire between two commits, where no record of theirs comes after them.
const KEYS_AT_ONCE: usize = 1024;
/// And so many timers in all: each of them may set others.
const TIMERS_AT_ONCE: usize = 16_384;

/// A [`Process`] as the [`Logic`] of a keyed operator.
pub struct ProcessLogic<P: Process> {
    process: P,
    states: StateParts<P::Key>,
    encoded: Vec<u8>,
}

impl<P: Process> ProcessLogic<P> {
    /// Opens the process function's states and the function on them.
    ///
    /// # Errors
    /// Those of `open`.
    pub fn open(
        mut states: States<P::Key>,
        open: impl FnOnce(&mut States<P::Key>) -> Result<P, StateError>,
    ) -> Result<Self, StateError> {
        let process = open(&mut states)?;
        Ok(ProcessLogic { process, states: states.into_parts(), encoded: Vec::new() })
    }

    fn set_current(&self, key: &P::Key, time: Time) {
        self.states.scope.set_key(key.clone());
        if let Some(timers) = &self.states.timers {
            timers.borrow_mut().set_now(time);
        }
    }

    /// Lets the key's due timers fire, those before a time or all of them, but `most` at most; gives
    /// how many did.
    fn fire_timers(
        &mut self,
        key: &P::Key,
        before: Option<Time>,
        most: usize,
        outputs: &mut Vec<Event<P::Output>>,
    ) -> Result<usize, StateError> {
        let Some(timers) = self.states.timers.clone() else { return Ok(0) };
        let mut fired = 0;
        while fired < most {
            // Not held while the function runs, as it may set others.
            let Some((fires_at, set_for)) = timers.borrow_mut().take(key, before) else { break };
            if fired == 0 {
                self.encoded.clear();
                key.encode_into(&mut self.encoded);
            }
            fired += 1;
            self.set_current(key, fires_at);
            let rank = Rank::key(&self.encoded);
            let mut emitter = Emitter { time: fires_at, rank: &rank, outputs };
            self.process.on_timer(key, set_for, &mut emitter)?;
        }
        Ok(fired)
    }

    /// Declares what the key's due timers will need, those before a time or all of them.
    fn declare_timers(&self, key: &P::Key, before: Option<Time>) {
        let Some(timers) = &self.states.timers else { return };
        for (fires_at, set_for) in timers.borrow().due_of(key) {
            if before.is_none_or(|before| fires_at < before) {
                self.process.declare_timer(key, set_for);
            }
        }
    }
}

impl<P: Process> Logic for ProcessLogic<P> {
    type Key = P::Key;
    type Input = P::Input;
    type Output = P::Output;
    type Reads = ();

    fn begin(&mut self, frontier: Frontier, store: &Store) -> Result<Frontier, StateError> {
        let Some(timers) = &self.states.timers else { return Ok(frontier) };
        let end = match frontier {
            Frontier::At(time) => Some(time),
            Frontier::Ended => None,
        };
        Ok(timers.borrow_mut().begin(end, store)?.map_or(Frontier::Ended, Frontier::At))
    }

    fn declare(&mut self, event: &Event<(P::Key, P::Input)>) {
        let (key, input) = &event.data;
        self.states.scope.set_key(key.clone());
        self.process.declare(key, input, event.time);
        self.declare_timers(key, Some(event.time));
    }

    fn apply(
        &mut self,
        event: Event<(P::Key, P::Input)>,
        (): (),
        context: &mut Context<'_, P::Output>,
    ) -> Result<(), StateError> {
        let Event { time, rank, data: (key, input) } = event;
        self.fire_timers(&key, Some(time), usize::MAX, context.outputs)?;
        self.set_current(&key, time);
        let mut emitter = Emitter { time, rank: &rank, outputs: context.outputs };
        self.process.process(&key, input, &mut emitter)
    }

    fn earliest_due(&self) -> Option<Time> {
        self.states.timers.as_ref().and_then(|timers| timers.borrow().earliest())
    }

    fn fire(&mut self, _: Frontier, context: &mut Context<'_, P::Output>) -> Result<Fired, StateError> {
        let Some(timers) = self.states.timers.clone() else { return Ok(Fired::Nothing) };
        let most = if self.states.strategy == ReadStrategy::PerRecord { 1 } else { KEYS_AT_ONCE };
        let keys = timers.borrow().due_keys(most);
        if keys.is_empty() {
            return Ok(Fired::Nothing);
        }
        for key in &keys {
            self.states.scope.set_key(key.clone());
            self.declare_timers(key, None);
        }
        self.for_each_table(&mut |table| table.load(context.store))?;
        let mut left = TIMERS_AT_ONCE;
        for key in &keys {
            left -= self.fire_timers(key, None, left, context.outputs)?;
        }
        Ok(Fired::Settle)
    }

    fn for_each_table(&mut self, visit: &mut TableVisitor<'_>) -> Result<(), StateError> {
        for table in &self.states.tables {
            visit(&mut *table.borrow_mut())?;
        }
        match &self.states.timers {
            Some(timers) => visit(timers.borrow_mut().as_state_table()),
            None => Ok(()),
        }
    }
}
