//! The timestamp of every dataflow: a round and an event time.

use serde::{Deserialize, Serialize};
use tidegate_operators::event::Time;
use tidegate_operators::frontier::Frontier;
use timely::order::PartialOrder;
use timely::progress::Timestamp;
use timely::progress::frontier::AntichainRef;
use timely::progress::timestamp::{PathSummary, Refines};

/// A place in a job's life: the round (what lies between two checkpoints) and the event time.
///
/// The two are ordered as a product: one moment is before another only where both its
/// coordinates are. A lexicographic order would be wrong, as a source that is already in the
/// next round, at a lower time, would be hidden behind one that is not. The derived `Ord` is
/// for sorting only.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Moment {
    /// Rounds that were completed before.
    pub round: u32,
    /// Event time.
    pub time: Time,
}

impl Moment {
    /// A moment.
    pub fn new(round: u32, time: Time) -> Self {
        Moment { round, time }
    }

    /// How far a Timely frontier has come: the least round of its elements, where there are any,
    /// and the watermark, which is the least of their times.
    pub fn of_frontier(frontier: AntichainRef<'_, Moment>) -> (Option<u32>, Frontier) {
        let round = frontier.iter().map(|moment| moment.round).min();
        let time = frontier.iter().map(|moment| moment.time).min();
        (round, time.map_or(Frontier::Ended, Frontier::At))
    }
}

impl PartialOrder for Moment {
    #[inline]
    fn less_equal(&self, other: &Self) -> bool {
        self.round <= other.round && self.time <= other.time
    }
}

impl PathSummary<Moment> for () {
    #[inline]
    fn results_in(&self, moment: &Moment) -> Option<Moment> {
        Some(*moment)
    }
    #[inline]
    fn followed_by(&self, (): &()) -> Option<()> {
        Some(())
    }
}

impl Timestamp for Moment {
    type Summary = ();
    fn minimum() -> Self {
        Moment { round: 0, time: Time::MIN }
    }
}

impl Refines<()> for Moment {
    fn to_inner((): ()) -> Self {
        Self::minimum()
    }
    fn to_outer(self) {}
    fn summarize((): ()) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use timely::progress::Antichain;

    #[test]
    fn a_frontier_of_two_rounds_shows_the_least_of_both() {
        let frontier = Antichain::from(vec![Moment::new(0, 50), Moment::new(1, 20)]);
        assert_eq!(frontier.elements().len(), 2, "neither moment is before the other");
        assert_eq!(Moment::of_frontier(frontier.borrow()), (Some(0), Frontier::At(20)));
        assert_eq!(Moment::of_frontier(Antichain::new().borrow()), (None, Frontier::Ended));
    }
}
