//! The driver: a keyed operator of pure logic as an operator of Timely.
//!
//! The driver owns what Timely asks of an operator (capabilities and frontiers) and nothing
//! else: events go into [`Keyed`], frontier steps release them there, results come out.
//!
//! * **Results** travel under one capability, held at the earliest time at which the operator
//!   may still have a result, and moved on only after a release has been applied and committed.
//! * **Late events** leave by a second output, under the stamp they came with.
//! * The second output is also how the job learns what has been worked off: the driver holds a
//!   capability there at the frontier it has released up to. (The frontier of the results would
//!   not do, as an operator may wait for long with results.)

use crate::container::EventDistributor;
use crate::error::JobError;
use crate::job::{Job, Shared};
use crate::metrics::OperatorMetrics;
use crate::moment::Moment;
use crate::stream::{Data, EventStream};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;
use tidegate_operators::event::Event;
use tidegate_operators::frontier::Frontier;
use tidegate_operators::keyed::{Keyed, Progress};
use tidegate_operators::logic::Logic;
use tidegate_state::error::StateError;
use tidegate_state::key::StateKey;
use tidegate_state::readers::Waker;
use timely::dataflow::channels::pact::DistributorPact;
use timely::dataflow::operators::generic::OutputBuilder;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;
use timely::dataflow::operators::{Capability, CapabilitySet};
use timely::order::PartialOrder;

/// Results and late events of a keyed operator.
pub(crate) struct KeyedOutputs<'s, K, V, O> {
    pub results: EventStream<'s, O>,
    pub late: EventStream<'s, (K, V)>,
}

/// Puts a keyed operator behind a stream of pairs, which it exchanges by key.
pub(crate) fn keyed_operator<'s, L>(
    job: &Job<'s>,
    name: &str,
    input: EventStream<'s, (L::Key, L::Input)>,
    logic: Result<L, StateError>,
) -> KeyedOutputs<'s, L::Key, L::Input, L::Output>
where
    L: Logic + 'static,
    L::Key: Data,
    L::Input: Data,
    L::Output: Data,
{
    let mut builder = OperatorBuilder::new(name.to_string(), input.scope());
    let route = route_by_key(job);
    let pact = DistributorPact(move |workers| EventDistributor::new(route, workers));
    let mut input = builder.new_input(input, pact);
    let (results, results_stream) = builder.new_output();
    let (late, late_stream) = builder.new_output();
    let mut results = OutputBuilder::from(results);
    let mut late = OutputBuilder::from(late);

    let failure = job.failure();
    let operator = name.to_string();
    let config = job.config();
    let store = job.store();
    let mut keyed = match logic {
        Ok(logic) => Some(Keyed::new(logic, store, config.strategy, config.batch)),
        Err(source) => {
            failure.report(JobError::State { operator: operator.clone(), source: Box::new(source) });
            None
        }
    };
    let metrics = job.operator_metrics(name);
    let shared = Rc::clone(&job.shared);
    if let Some(keyed) = &mut keyed {
        let address = builder.operator_info().address.to_vec();
        let activator = job.scope.worker().sync_activator_for(address);
        let waker: Waker = Arc::new(move || {
            // A worker that is gone waits for nothing.
            let _ = activator.activate();
        });
        keyed.set_waker(&waker);
    }
    let stash_bytes = job.live().stash_meter(size_of::<Event<(L::Key, L::Input)>>());

    builder.build(move |mut capabilities| {
        // Nothing comes out before something came in, as a rule.
        let mut worked_off = Some(capabilities.pop().expect("one capability for each output"));
        let mut held: CapabilitySet<Moment> = CapabilitySet::new();
        if keyed.as_ref().is_some_and(Keyed::holds_back)
            && let Some(first) = capabilities.pop()
        {
            // A record that came late may have a result behind the stamp that it came with.
            held.insert(first);
        }
        drop(capabilities);
        let mut stash_bytes = stash_bytes;
        let mut waits = Waits::new(&shared);
        move |frontiers| {
            if failure.happened() {
                keyed = None;
            }
            let Some(operator_state) = &mut keyed else {
                // A failed job still has to let go, or its workers never end.
                input.for_each(|_, events| events.clear());
                held = CapabilitySet::new();
                worked_off = None;
                return;
            };
            let mut outcome = Ok(());
            {
                let mut late = late.activate();
                input.for_each(|capability, events| {
                    for element in capability.stamp().iter() {
                        if !held.iter().any(|held| held.time().less_equal(element)) {
                            held.insert(capability.delayed(element, 0));
                        }
                    }
                    let mut late = late.session(&capability);
                    let taken = operator_state.accept_all(events.drain(..), |refused| late.give(refused));
                    shared.worked();
                    if let (Err(error), Ok(())) = (taken, &outcome) {
                        outcome = Err(error);
                    }
                });
            }
            let (round, frontier) = Moment::of_frontier(frontiers[0].frontier());
            let released = operator_state.statistics().events_released;
            let outcome = outcome.and_then(|()| {
                let mut results = results.activate();
                let mut session = results.session(&held);
                measured(&metrics, operator_state, |keyed| {
                    keyed.advance(frontier, |events| {
                        shared.worked();
                        session.give_container(events);
                        // What comes back is a used container, or nothing.
                        events.clear();
                    })
                })
            });
            if operator_state.statistics().events_released != released {
                shared.worked();
            }
            stash_bytes.set(operator_state.stashed());
            let progress = match outcome {
                Ok(progress) => progress,
                Err(source) => {
                    failure.report(JobError::State { operator: operator.clone(), source: Box::new(source) });
                    keyed = None;
                    held = CapabilitySet::new();
                    worked_off = None;
                    return;
                }
            };
            hold(&mut held, operator_state.earliest_result(), round);
            waits.set(progress == Progress::Waiting);
            if progress == Progress::Done {
                follow(&mut worked_off, round, frontier);
            }
        }
    });
    KeyedOutputs { results: results_stream, late: late_stream }
}

/// Whether an operator waits for reads, as its worker counts it.
struct Waits {
    shared: Rc<Shared>,
    waiting: bool,
}

impl Waits {
    fn new(shared: &Rc<Shared>) -> Self {
        Waits { shared: Rc::clone(shared), waiting: false }
    }

    fn set(&mut self, waiting: bool) {
        if self.waiting != waiting {
            let others = self.shared.waiting.get() - usize::from(self.waiting);
            self.shared.waiting.set(others + usize::from(waiting));
            self.waiting = waiting;
        }
    }
}

/// The worker of an event, by the key group of its key.
fn route_by_key<'s, K: StateKey, V>(job: &Job<'s>) -> impl FnMut(&Event<(K, V)>) -> usize + 'static {
    let groups = job.config().groups;
    let workers = job.workers();
    let mut scratch = Vec::new();
    move |event| groups.worker_of(groups.of(&event.data.0, &mut scratch), workers)
}

/// Runs a release and takes its time, where there was one.
fn measured<L: Logic>(
    metrics: &Rc<RefCell<OperatorMetrics>>,
    keyed: &mut Keyed<L>,
    advance: impl FnOnce(&mut Keyed<L>) -> Result<Progress, StateError>,
) -> Result<Progress, StateError> {
    let before = keyed.statistics().releases;
    let started = Instant::now();
    let outcome = advance(keyed);
    let statistics = keyed.statistics();
    if statistics.releases > before {
        metrics.borrow_mut().released(started.elapsed(), statistics);
    } else {
        metrics.borrow_mut().statistics = statistics;
    }
    outcome
}

/// Holds the results' capability where the next result may come, and drops it where none can.
fn hold(held: &mut CapabilitySet<Moment>, earliest: Option<i64>, round: Option<u32>) {
    match earliest {
        None => *held = CapabilitySet::new(),
        Some(time) => {
            // An event that is stashed came under a capability for its time or an earlier one,
            // and what is held never goes beyond the earliest event, so this always succeeds.
            let own = held.iter().map(|capability| capability.time().round).min();
            let round = round.or(own).unwrap_or(0);
            let moment = Moment::new(own.unwrap_or(0).max(round), time);
            if let Err(error) = held.try_downgrade(std::iter::once(moment)) {
                debug_assert!(false, "the capability cannot reach {moment:?}: {error}");
            }
        }
    }
}

/// Moves a capability along with the input's frontier, and drops it at the input's end.
pub(crate) fn follow(capability: &mut Option<Capability<Moment>>, round: Option<u32>, frontier: Frontier) {
    match (round, frontier) {
        (Some(round), Frontier::At(time)) => {
            let moment = Moment::new(round, time);
            if let Some(capability) = capability
                && *capability.time() != moment
            {
                // A frontier of several rounds may show a pair that is not ahead in both
                // coordinates; the capability then waits for the next step.
                let _ = capability.try_downgrade(&moment);
            }
        }
        _ => *capability = None,
    }
}
