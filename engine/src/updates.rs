//! Windows whose results are updated, as operators of a stream.

use crate::stream::{Data, Key, Keyed, Stream};
use tidegate_operators::event::Event;
use tidegate_operators::window::{Aggregate, Firing, UpdatingWindowOperator, WindowUpdate, Windows};

impl<'s, K: Key, V: Data> Stream<'s, (K, V)> {
    /// What `aggregate` makes of the records of each key and window so far: early if `firing` says
    /// so, once when the frontier reaches the window's end, and once more for each late record within
    /// the windows' allowed lateness.
    ///
    /// A result has the time at which it came about, so that nothing behind this operator waits for
    /// late records. `name` is the operator's; it is unique in the job.
    pub fn window_updates<A: Aggregate<V>>(
        self,
        name: &str,
        windows: Windows,
        aggregate: A,
        firing: Firing,
    ) -> Stream<'s, WindowUpdate<K, A::Output>>
    where
        A::Output: Data,
        A::Accumulator: Clone,
    {
        self.window_updates_with_late(name, windows, aggregate, firing).results
    }

    /// As [`window_updates`](Self::window_updates), with the records that came too late for every
    /// window beside the results.
    pub fn window_updates_with_late<A: Aggregate<V>>(
        self,
        name: &str,
        windows: Windows,
        aggregate: A,
        firing: Firing,
    ) -> Keyed<'s, K, V, WindowUpdate<K, A::Output>>
    where
        A::Output: Data,
        A::Accumulator: Clone,
    {
        let (store, strategy) = (self.job.store(), self.job.config().strategy);
        let logic = UpdatingWindowOperator::open(&store, name, strategy, windows, aggregate, firing);
        let counting = self.stateless("counts_at", |event: Event<(K, V)>, out| {
            let Event { time, rank, data: (key, value) } = event;
            // A late record counts when its partition has come as far as it had when it was read.
            let counts_at = rank.missed_watermark().map_or(time, |watermark| watermark.max(time));
            out.push(Event { time: counts_at, rank, data: (key, (time, value)) });
        });
        let Keyed { results, late } = counting.keyed_apart(name, logic);
        let late = late.stateless("own_time", |event, out| {
            let Event { rank, data: (key, (time, value)), .. } = event;
            out.push(Event { time, rank, data: (key, value) });
        });
        Keyed { results, late }.keep_late_rows(name)
    }
}
