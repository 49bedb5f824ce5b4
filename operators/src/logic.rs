//! What a keyed operator does with a record: the seam between the driver and the logic.

use crate::event::{Event, Time};
use crate::frontier::Frontier;
use tidegate_state::error::StateError;
use tidegate_state::row::RowKey;
use tidegate_state::store::Store;
use tidegate_state::table::StateTable;

/// Where a logic's results go, and what it may use while it works.
pub struct Context<'a, O> {
    /// The worker's store, for reads that were not declared.
    pub store: &'a Store,
    /// Results, in the order in which they are made.
    pub outputs: &'a mut Vec<Event<O>>,
}

/// A visitor of a logic's tables.
pub type TableVisitor<'a> = dyn FnMut(&mut dyn StateTable) -> Result<(), StateError> + 'a;

/// What became of a call for what is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fired {
    /// Nothing was due.
    Nothing,
    /// A part was done. The tables must stay as they are until the next call.
    Part,
    /// Something was done, and the changes of the tables may be collected.
    Settle,
}

/// A keyed operator's logic, without dataflow, frontiers, or knowledge of the store.
///
/// # Contract
///
/// For each chunk of a release the driver calls [`declare`](Self::declare) for every event in
/// order, loads the tables, calls [`apply`](Self::apply) for every event in the same order with
/// what `declare` returned, collects the changes of the tables, and ends the release, after which
/// all slots are void. Events come in the order of (time, rank); all events of a key of one
/// release are in one chunk. A logic looks at the rows of its event's key only.
///
/// Under the strategy `per-record` a chunk is one event. Rows may be read ahead: then `declare` is
/// called when an event arrives, long before its release and in any order, and once more for the
/// release; what the early call returns is thrown away. A logic must not be able to tell.
///
/// Before each release the driver calls [`begin`](Self::begin), with all changes committed. When
/// everything below the frontier that this gave has been applied and committed, it calls
/// [`fire`](Self::fire) until it says that nothing is due, and settles the tables when it is told to.
pub trait Logic {
    /// What records are grouped by.
    type Key: RowKey;
    /// The rest of a record.
    type Input;
    /// What comes out.
    type Output;
    /// What `declare` finds and `apply` uses: slots, mostly.
    type Reads;

    /// Whether an event that was late for its partition's watermark is too late here as well.
    /// Operators without windows take no late event.
    fn is_too_late(&self, _event: &Event<(Self::Key, Self::Input)>, _watermark: Time) -> bool {
        true
    }

    /// How far behind the frontier results may still arise. The driver holds results back by as
    /// much.
    fn allowed_lateness(&self) -> Time {
        0
    }

    /// The least time of a result that needs no further event.
    fn earliest_due(&self) -> Option<Time> {
        None
    }

    /// Does a piece of what is due without an event, now that all events below the frontier have
    /// been applied.
    ///
    /// # Errors
    /// [`StateError`] where state cannot be read or written.
    fn fire(
        &mut self,
        _frontier: Frontier,
        _context: &mut Context<'_, Self::Output>,
    ) -> Result<Fired, StateError> {
        Ok(Fired::Nothing)
    }

    /// Takes up what is due before the frontier, where a release is about to go there, and says how far
    /// it may go in one piece: to the frontier, or less far where more is due than fits into memory.
    ///
    /// # Errors
    /// [`StateError`] where state cannot be read or written.
    fn begin(&mut self, frontier: Frontier, _store: &Store) -> Result<Frontier, StateError> {
        Ok(frontier)
    }

    /// Declares the rows that an event will need.
    fn declare(&mut self, event: &Event<(Self::Key, Self::Input)>) -> Self::Reads;

    /// Does what the event asks for, on the state as the events before it left it.
    ///
    /// # Errors
    /// [`StateError`] where a read that was not declared fails.
    fn apply(
        &mut self,
        event: Event<(Self::Key, Self::Input)>,
        reads: Self::Reads,
        context: &mut Context<'_, Self::Output>,
    ) -> Result<(), StateError>;

    /// Shows every table to `visit`.
    ///
    /// # Errors
    /// The first error of `visit`.
    fn for_each_table(&mut self, visit: &mut TableVisitor<'_>) -> Result<(), StateError>;
}
