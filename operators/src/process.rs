//! Process functions: any logic over the states of the current key, with declared reads.

use crate::event::{Event, Rank, Time};
use crate::logic::{Context, Logic, TableVisitor};
use std::rc::Rc;
use tidegate_state::error::StateError;
use tidegate_state::keyed::{Scope, SharedTable, States};
use tidegate_state::row::RowKey;

/// Where a process function's results go.
pub struct Emitter<'a, O> {
    time: Time,
    rank: &'a Rank,
    outputs: &'a mut Vec<Event<O>>,
}

impl<O> Emitter<'_, O> {
    /// The event time of the record at hand.
    pub fn time(&self) -> Time {
        self.time
    }

    /// Issues a result at the record's time.
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
}

/// A [`Process`] as the [`Logic`] of a keyed operator.
pub struct ProcessLogic<P: Process> {
    process: P,
    scope: Rc<Scope<P::Key>>,
    tables: Vec<SharedTable>,
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
        let (scope, tables) = states.into_parts();
        Ok(ProcessLogic { process, scope, tables })
    }
}

impl<P: Process> Logic for ProcessLogic<P> {
    type Key = P::Key;
    type Input = P::Input;
    type Output = P::Output;
    type Reads = ();

    fn declare(&mut self, event: &Event<(P::Key, P::Input)>) {
        let (key, input) = &event.data;
        self.scope.set_key(key.clone());
        self.process.declare(key, input, event.time);
    }

    fn apply(
        &mut self,
        event: Event<(P::Key, P::Input)>,
        (): (),
        context: &mut Context<'_, P::Output>,
    ) -> Result<(), StateError> {
        let Event { time, rank, data: (key, input) } = event;
        self.scope.set_key(key.clone());
        let mut emitter = Emitter { time, rank: &rank, outputs: context.outputs };
        self.process.process(&key, input, &mut emitter)
    }

    fn for_each_table(&mut self, visit: &mut TableVisitor<'_>) -> Result<(), StateError> {
        for table in &self.tables {
            visit(&mut *table.borrow_mut())?;
        }
        Ok(())
    }
}
