//! Streams that become one, and one that becomes two.

use crate::error::JobError;
use crate::stream::{Data, Stream};
use serde::{Deserialize, Serialize};
use tidegate_operators::event::{Event, Time};
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::Concatenate;
use timely::dataflow::operators::generic::OutputBuilder;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;

/// One of two things: where an operator has a side output, what its results are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Either<A, B> {
    /// For the first output.
    Left(A),
    /// For the second one.
    Right(B),
}

impl<'s, D: Data> Stream<'s, D> {
    /// This stream and others as one.
    ///
    /// Events of equal time are ordered by the records that they go back to; where several go back
    /// to one record, in the order in which the streams are named here (in nested unions the order of
    /// the inner one counts first). The frontier is the least of theirs, and a stream that has ended
    /// holds nobody back.
    ///
    /// (A record must not reach one stream in more than 65,536 ways. Many streams are better united at
    /// once than one after the other, as the ways multiply.)
    pub fn union(self, others: impl IntoIterator<Item = Stream<'s, D>>) -> Stream<'s, D> {
        let (job, scope) = (self.job.clone(), self.job.scope);
        let streams: Vec<_> = std::iter::once(self).chain(others).collect();
        let Ok(count) = u16::try_from(streams.len()) else {
            job.refuse(format!("a union of {} streams; 65,535 are the most", streams.len()));
            return Stream::new(&job, scope.concatenate(streams.into_iter().map(|stream| stream.events)));
        };
        let branches = streams.into_iter().zip(0u16..).map(|(stream, index)| {
            let branch = stream.stateless("union", move |mut event: Event<D>, out| {
                event.rank.branch_off(count, index);
                out.push(event);
            });
            branch.events
        });
        Stream::new(&job, scope.concatenate(branches))
    }

    /// Two streams: the data that passes, and the data that does not.
    pub fn split(self, mut pass: impl FnMut(&D) -> bool + 'static) -> (Stream<'s, D>, Stream<'s, D>) {
        self.partition_map(move |data| if pass(&data) { Either::Left(data) } else { Either::Right(data) })
    }

    /// Two streams, of which each may have data of its own kind: so an operator has a side output.
    /// Its results are [`Either`], and here they go apart.
    pub fn partition_map<A: Data, B: Data>(
        self,
        mut choose: impl FnMut(D) -> Either<A, B> + 'static,
    ) -> (Stream<'s, A>, Stream<'s, B>) {
        let mut builder = OperatorBuilder::new("partition_map".to_string(), self.events.scope());
        let mut input = builder.new_input(self.events, Pipeline);
        let (left, left_stream) = builder.new_output::<Vec<Event<A>>>();
        let (right, right_stream) = builder.new_output::<Vec<Event<B>>>();
        let (mut left, mut right) = (OutputBuilder::from(left), OutputBuilder::from(right));
        builder.build(move |_| {
            move |_| {
                let (mut left, mut right) = (left.activate(), right.activate());
                input.for_each(|capability, events| {
                    let (mut left, mut right) = (left.session(&capability), right.session(&capability));
                    for Event { time, rank, data } in events.drain(..) {
                        match choose(data) {
                            Either::Left(data) => left.give(Event { time, rank, data }),
                            Either::Right(data) => right.give(Event { time, rank, data }),
                        }
                    }
                });
            }
        });
        (Stream::new(&self.job, left_stream), Stream::new(&self.job, right_stream))
    }

    /// Gives every event another time, which is not before its own.
    ///
    /// A record that was late is so no longer if its new time is not before the watermark that it
    /// missed. A time before the event's own could be behind what was shown to be over, so it ends the
    /// job; times that records say themselves are given to them by their source.
    pub fn assign_time(self, mut time: impl FnMut(Time, &D) -> Time + 'static) -> Stream<'s, D> {
        let failure = self.job.failure();
        self.stateless("assign_time", move |mut event: Event<D>, out| {
            let new = time(event.time, &event.data);
            if new < event.time {
                let old = event.time;
                failure.report(JobError::Job(format!(
                    "assign_time gave {new} to an event of time {old}; a new time must not be before the old one"
                )));
                return;
            }
            event.time = new;
            event.rank.forgive(new);
            out.push(event);
        })
    }
}
