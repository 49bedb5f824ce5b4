//! The stash: events that have arrived and are not yet released.

use crate::event::{Event, Time};
use crate::frontier::Frontier;
use std::collections::VecDeque;

/// Events that wait for the frontier, given out in the order of (time, rank).
///
/// Events that come in order, partition by partition, wait in **lanes**: what is due there is the
/// front of a queue. Those that belong before their lane's last event go to the **pool**. What a
/// release leaves in the pool is sorted once and kept as a run; runs are merged when the newer one
/// has grown to half of the older, so that an event moves a logarithmic number of times however
/// long it waits. A release that finds nothing due looks at one number.
#[derive(Debug)]
pub struct Stash<D> {
    /// In the order of (time, rank). Partitions share lanes where there are more of them.
    lanes: Vec<VecDeque<Event<D>>>,
    /// As they arrived.
    pool: Vec<Event<D>>,
    /// Each in descending order, so that what is due next lies at the end; older runs first.
    runs: Vec<Vec<Event<D>>>,
    /// The least time of all events; without events it means nothing.
    earliest: Time,
    len: usize,
}

/// More lanes than this would cost more to merge than they spare in sorting.
const MOST_LANES: usize = 16;

impl<D> Default for Stash<D> {
    fn default() -> Self {
        Stash { lanes: Vec::new(), pool: Vec::new(), runs: Vec::new(), earliest: Time::MAX, len: 0 }
    }
}

impl<D> Stash<D> {
    /// An empty stash.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an event.
    #[inline]
    pub fn push(&mut self, event: Event<D>) {
        self.earliest = self.earliest.min(event.time);
        self.len += 1;
        let lane = event.rank.position().map_or(0, |(partition, _)| partition as usize % MOST_LANES);
        match self.lanes.get_mut(lane) {
            Some(lane) if lane.back().is_some_and(|last| last.order(&event).is_gt()) => self.pool.push(event),
            Some(lane) => lane.push_back(event),
            None => {
                self.lanes.resize_with(lane + 1, VecDeque::new);
                self.lanes[lane].push_back(event);
            }
        }
    }

    /// Number of events.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The least time among the events.
    pub fn earliest(&self) -> Option<Time> {
        (self.len > 0).then_some(self.earliest)
    }

    /// Moves the events that the frontier is past to the end of `due`, ordered by time and rank;
    /// events that agree in both keep the order in which they arrived.
    pub fn release(&mut self, frontier: Frontier, due: &mut Vec<Event<D>>) {
        if self.len == 0 || !frontier.is_past(self.earliest) {
            return;
        }
        let start = due.len();
        let mut pieces = 0;
        // Lanes go first, then older runs before newer ones, then the pool: of two events that
        // agree in time and rank, the one that came first is in the earlier place.
        for lane in &mut self.lanes {
            let ready = lane.partition_point(|event| frontier.is_past(event.time));
            due.extend(lane.drain(..ready));
            pieces += usize::from(ready > 0);
        }
        let from_lanes = due.len();
        for run in &mut self.runs {
            let keep = run.partition_point(|event| !frontier.is_past(event.time));
            due.extend(run.drain(keep..).rev());
        }
        self.runs.retain(|run| !run.is_empty());
        let scanned = self.pool.len();
        due.extend(self.pool.extract_if(.., |event| frontier.is_past(event.time)));
        if pieces > 1 || due.len() > from_lanes {
            // A few ordered pieces, which the sort finds and merges.
            due[start..].sort_by(Event::order);
        }
        self.len -= due.len() - start;
        // What is left in the pool may be looked at once more, as long as enough of what was
        // looked at has gone: then looking costs in proportion to what it releases.
        if self.pool.len() > scanned / 4 * 3 {
            self.settle();
        }
        let in_lanes = self.lanes.iter().filter_map(VecDeque::front);
        let in_runs = self.runs.iter().filter_map(|run| run.last());
        let least = in_lanes.chain(in_runs).chain(&self.pool).map(|event| event.time).min();
        self.earliest = least.unwrap_or(Time::MAX);
    }

    /// Makes a run of the pool.
    fn settle(&mut self) {
        if self.pool.is_empty() {
            return;
        }
        let mut run = std::mem::take(&mut self.pool);
        run.sort_by(Event::order);
        run.reverse();
        while let Some(older) = self.runs.pop_if(|older| older.len() < 2 * run.len()) {
            run = merge(older, run);
        }
        self.runs.push(run);
    }
}

/// Merges two descending runs. Of equal events the older ones come out later here, as a run is
/// read from its end.
fn merge<D>(mut older: Vec<Event<D>>, mut newer: Vec<Event<D>>) -> Vec<Event<D>> {
    newer.append(&mut older);
    // The sort is stable, finds the two runs, and merges them by whole copies; a loop that moves
    // events one by one takes several times as long.
    newer.sort_by(|a, b| b.order(a));
    newer
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The naive model: a list, searched and sorted anew each time.
    #[derive(Default)]
    struct Model(Vec<Event<usize>>);

    impl Model {
        /// `None` for the end of the input.
        fn release(&mut self, frontier: Option<Time>) -> Vec<Event<usize>> {
            let is_due = |event: &Event<usize>| frontier.is_none_or(|frontier| event.time < frontier);
            let mut due: Vec<_> = self.0.iter().filter(|event| is_due(event)).cloned().collect();
            self.0.retain(|event| !is_due(event));
            due.sort_by(|a, b| a.time.cmp(&b.time).then(a.rank.cmp(&b.rank)));
            due
        }
    }

    proptest! {
        #[test]
        fn a_stash_equals_a_sorted_list(
            steps in proptest::collection::vec(
                (proptest::collection::vec((-20i64..20, 0u32..20, 0u64..3), 0..40), -25i64..25), 1..20),
        ) {
            let (mut stash, mut model) = (Stash::new(), Model::default());
            let mut number = 0;
            for (arrivals, frontier) in steps {
                for (time, partition, position) in arrivals {
                    let event = Event::new(time, partition, position, number);
                    number += 1;
                    model.0.push(event.clone());
                    stash.push(event);
                }
                let mut due = Vec::new();
                stash.release(Frontier::At(frontier), &mut due);
                prop_assert_eq!(due, model.release(Some(frontier)));
                prop_assert_eq!(stash.len(), model.0.len());
                prop_assert_eq!(stash.earliest(), model.0.iter().map(|event| event.time).min());
            }
            let mut due = Vec::new();
            stash.release(Frontier::Ended, &mut due);
            prop_assert_eq!(due, model.release(None));
            prop_assert!(stash.is_empty() && stash.earliest().is_none());
        }
    }

    #[test]
    fn events_that_agree_in_all_keep_their_order_whatever_came_between() {
        // The third one finds a later event of another partition in its lane.
        let mut stash = Stash::new();
        let lanes = MOST_LANES as u32;
        for (number, (time, partition)) in [(11, 2), (12, 2 + lanes), (11, 2)].into_iter().enumerate() {
            stash.push(Event::new(time, partition, 1, number));
        }
        let mut due = Vec::new();
        stash.release(Frontier::Ended, &mut due);
        assert_eq!(due.iter().map(|event| event.data).collect::<Vec<_>>(), [0, 2, 1]);
    }

    #[test]
    fn the_largest_time_is_released_at_the_end_only() {
        let mut stash = Stash::new();
        stash.push(Event::new(Time::MAX, 0, 0, ()));
        let mut due = Vec::new();
        stash.release(Frontier::At(Time::MAX), &mut due);
        assert!(due.is_empty() && stash.earliest() == Some(Time::MAX));
        stash.release(Frontier::Ended, &mut due);
        assert_eq!(due.len(), 1);
    }

    #[test]
    fn f21_runs_stay_few_however_long_events_wait() {
        let mut stash = Stash::new();
        let mut due = Vec::new();
        for step in 0..10_000i64 {
            stash.push(Event::new(1_000_000 + step, 0, step as u64, ()));
            stash.push(Event::new(step, 0, step as u64, ()));
            stash.release(Frontier::At(step + 1), &mut due);
            assert!(stash.runs.len() <= 15, "{} runs for {} events", stash.runs.len(), stash.len());
        }
        assert_eq!((due.len(), stash.len()), (10_000, 10_000));
    }
}
