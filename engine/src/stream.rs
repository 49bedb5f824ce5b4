//! Streams of events, and what can be done with them.

use crate::driver::{KeyedOutputs, keyed_operator};
use crate::job::Job;
use crate::moment::Moment;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::hash::Hash;
use std::ops::AddAssign;
use tidegate_operators::aggregate::{self, Moments};
use tidegate_operators::event::Event;
use tidegate_operators::fold::Fold;
use tidegate_operators::logic::Logic;
use tidegate_operators::process::{Process, ProcessLogic};
use tidegate_operators::window::{Aggregate, SessionOperator, Sessions, WindowOperator, WindowRow, Windows};
use tidegate_state::backend::StateName;
use tidegate_state::codec::StateValue;
use tidegate_state::error::StateError;
use tidegate_state::key::StateKey;
use tidegate_state::keyed::States;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::StreamVec;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::Probe;
use timely::dataflow::operators::generic::Operator;

/// A stream of events as Timely sees it.
pub(crate) type EventStream<'s, D> = StreamVec<'s, Moment, Event<D>>;

/// What can travel on a stream: it may be copied to several readers, and sent to other workers.
pub trait Data: Clone + Send + Serialize + DeserializeOwned + 'static {}
impl<D: Clone + Send + Serialize + DeserializeOwned + 'static> Data for D {}

/// What streams can be grouped by.
pub trait Key: Data + StateKey + Eq + Hash {}
impl<K: Data + StateKey + Eq + Hash> Key for K {}

/// A stream of events. Each has a time, a rank, and data of type `D`.
///
/// Operators on state are at home on streams of pairs (key, value): whatever the key is, records
/// of one key meet the same state, in event-time order.
#[derive(Clone)]
pub struct Stream<'s, D: Data> {
    pub(crate) job: Job<'s>,
    pub(crate) events: EventStream<'s, D>,
}

impl<'s, D: Data> Stream<'s, D> {
    pub(crate) fn new(job: &Job<'s>, events: EventStream<'s, D>) -> Self {
        Stream { job: job.clone(), events }
    }

    /// Changes the data of every event.
    pub fn map<E: Data>(self, mut change: impl FnMut(D) -> E + 'static) -> Stream<'s, E> {
        self.stateless("map", move |event, out| out.push(event.map(&mut change)))
    }

    /// Keeps the events whose data passes.
    pub fn filter(self, mut keep: impl FnMut(&D) -> bool + 'static) -> Stream<'s, D> {
        self.stateless("filter", move |event, out| {
            if keep(&event.data) {
                out.push(event);
            }
        })
    }

    /// Makes any number of data out of each event's. They share its time and its rank, and stay
    /// in order.
    pub fn flat_map<E: Data, I: IntoIterator<Item = E>>(
        self,
        mut change: impl FnMut(D) -> I + 'static,
    ) -> Stream<'s, E> {
        self.stateless("flat_map", move |event, out| {
            let Event { time, rank, data } = event;
            out.extend(change(data).into_iter().map(|data| Event { time, rank: rank.clone(), data }));
        })
    }

    /// Groups records by a key, which goes in front of them.
    pub fn key_by<K: Key>(self, mut key: impl FnMut(&D) -> K + 'static) -> Stream<'s, (K, D)> {
        self.map(move |data| (key(&data), data))
    }

    /// Calls a function for every event, and passes the event on.
    pub fn inspect(self, mut look: impl FnMut(&Event<D>) + 'static) -> Stream<'s, D> {
        self.stateless("inspect", move |event, out| {
            look(&event);
            out.push(event);
        })
    }

    /// An operator without state: `logic` appends what an event becomes.
    pub(crate) fn stateless<E: Data>(
        self,
        name: &str,
        mut logic: impl FnMut(Event<D>, &mut Vec<Event<E>>) + 'static,
    ) -> Stream<'s, E> {
        let events =
            self.events.unary::<CapacityContainerBuilder<Vec<Event<E>>>, _, _, _>(Pipeline, name, |_, _| {
                let mut out = Vec::new();
                move |input, output| {
                    input.for_each(|capability, events| {
                        let mut session = output.session(&capability);
                        for event in events.drain(..) {
                            logic(event, &mut out);
                            if out.len() >= MOST_EVENTS {
                                session.give_container(&mut out);
                                out.clear();
                            }
                        }
                        session.give_container(&mut out);
                        out.clear();
                    });
                }
            });
        Stream { job: self.job, events }
    }
}

/// Containers of more events than this are not made by stateless operators.
const MOST_EVENTS: usize = 4096;

/// The results of a keyed operator, and the records that came too late for it.
pub struct Keyed<'s, K: Data, V: Data, O: Data> {
    /// One event for each result.
    pub results: Stream<'s, O>,
    /// Records that were late for their own partition's watermark, as they came.
    pub late: Stream<'s, (K, V)>,
}

impl<'s, K: Key, V: Data> Stream<'s, (K, V)> {
    /// A running fold: each record changes its key's value, and issues a result at its own time.
    ///
    /// `name` is the operator's, and the name of its state; it is unique in the job. `init` makes
    /// the value of a new key; `step` changes it by a record and makes the result.
    pub fn fold<A: StateValue, O: Data>(
        self,
        name: &str,
        init: impl Fn() -> A + 'static,
        step: impl FnMut(&mut A, V) -> O + 'static,
    ) -> Stream<'s, (K, O)> {
        self.fold_with_late(name, init, step).results
    }

    /// As [`fold`](Self::fold), with the late records beside the results.
    pub fn fold_with_late<A: StateValue, O: Data>(
        self,
        name: &str,
        init: impl Fn() -> A + 'static,
        step: impl FnMut(&mut A, V) -> O + 'static,
    ) -> Keyed<'s, K, V, (K, O)> {
        let strategy = self.job.config().strategy;
        let logic = StateName::new(name, "value")
            .and_then(|state| Fold::open(&self.job.store(), &state, strategy, init, step));
        self.keyed(name, logic)
    }

    /// What `aggregate` makes of the records of each key and window: one result for each when the
    /// window closes, at the last time of the window.
    ///
    /// `name` is the operator's; it is unique in the job.
    pub fn window<A: Aggregate<V>>(
        self,
        name: &str,
        windows: Windows,
        aggregate: A,
    ) -> Stream<'s, WindowRow<K, A::Output>>
    where
        A::Output: Data,
    {
        self.window_with_late(name, windows, aggregate).results
    }

    /// As [`window`](Self::window), with the records that came too late for every window beside
    /// the results.
    pub fn window_with_late<A: Aggregate<V>>(
        self,
        name: &str,
        windows: Windows,
        aggregate: A,
    ) -> Keyed<'s, K, V, WindowRow<K, A::Output>>
    where
        A::Output: Data,
    {
        let strategy = self.job.config().strategy;
        let logic = WindowOperator::open(&self.job.store(), name, strategy, windows, aggregate);
        self.keyed(name, logic)
    }

    /// What `aggregate` makes of the records of each session: one result when the session closes,
    /// with its first record's time, its end, and the key.
    ///
    /// `name` is the operator's; it is unique in the job.
    pub fn session<A: Aggregate<V>>(
        self,
        name: &str,
        sessions: Sessions,
        aggregate: A,
    ) -> Stream<'s, WindowRow<K, A::Output>>
    where
        A::Output: Data,
    {
        self.session_with_late(name, sessions, aggregate).results
    }

    /// As [`session`](Self::session), with the records that came too late beside the results.
    pub fn session_with_late<A: Aggregate<V>>(
        self,
        name: &str,
        sessions: Sessions,
        aggregate: A,
    ) -> Keyed<'s, K, V, WindowRow<K, A::Output>>
    where
        A::Output: Data,
    {
        let strategy = self.job.config().strategy;
        let logic = SessionOperator::open(&self.job.store(), name, strategy, sessions, aggregate);
        self.keyed(name, logic)
    }

    /// A running reduction: the key's value is its first record's, and `combine` adds each other.
    pub fn reduce(self, name: &str, mut combine: impl FnMut(&mut V, V) + 'static) -> Stream<'s, (K, V)> {
        self.fold(
            name,
            || None,
            move |state: &mut Option<V>, value| match state {
                Some(state) => {
                    combine(state, value);
                    state.clone()
                }
                None => state.insert(value).clone(),
            },
        )
    }

    /// The running number of records of each key.
    pub fn count(self, name: &str) -> Stream<'s, (K, u64)> {
        self.fold(name, u64::default, aggregate::count)
    }

    /// The running sum of each key's values.
    pub fn sum(self, name: &str) -> Stream<'s, (K, V)>
    where
        V: AddAssign + Default,
    {
        self.fold(name, V::default, aggregate::sum)
    }

    /// The running least value of each key.
    pub fn min(self, name: &str) -> Stream<'s, (K, V)>
    where
        V: PartialOrd,
    {
        self.fold(name, Option::default, aggregate::min)
    }

    /// The running largest value of each key.
    pub fn max(self, name: &str) -> Stream<'s, (K, V)>
    where
        V: PartialOrd,
    {
        self.fold(name, Option::default, aggregate::max)
    }

    /// The running mean of each key's values.
    pub fn mean(self, name: &str) -> Stream<'s, (K, f64)>
    where
        V: Into<f64>,
    {
        self.fold(name, Moments::default, |moments, value| aggregate::mean(moments, value.into()))
    }

    /// Any logic over keyed states, see [`Process`]. `open` opens its states and makes it.
    pub fn process<P, O>(
        self,
        name: &str,
        open: impl FnOnce(&mut States<K>) -> Result<P, StateError>,
    ) -> Keyed<'s, K, V, O>
    where
        P: Process<Key = K, Input = V, Output = O> + 'static,
        O: Data,
    {
        let states = States::new(self.job.store(), name, self.job.config().strategy);
        let logic = ProcessLogic::open(states, open);
        self.keyed(name, logic)
    }

    fn keyed<L, O>(self, name: &str, logic: Result<L, StateError>) -> Keyed<'s, K, V, O>
    where
        L: Logic<Key = K, Input = V, Output = O> + 'static,
        O: Data,
    {
        self.keyed_apart(name, logic).keep_late_rows(name)
    }

    /// A keyed operator whose late records are not kept as rows yet.
    pub(crate) fn keyed_apart<L, O>(self, name: &str, logic: Result<L, StateError>) -> Keyed<'s, K, V, O>
    where
        L: Logic<Key = K, Input = V, Output = O> + 'static,
        O: Data,
    {
        let KeyedOutputs { results, late } = keyed_operator(&self.job, name, self.events, logic);
        let late = Stream::new(&self.job, late.probe_with(&self.job.shared.worked_off));
        Keyed { results: Stream::new(&self.job, results), late }
    }
}

impl<K: Key, V: Data, O: Data> Keyed<'_, K, V, O> {
    /// Keeps the late records for the output that the command line has for them.
    pub(crate) fn keep_late_rows(self, name: &str) -> Self {
        self.late.clone().keep_late_rows(name);
        self
    }
}
