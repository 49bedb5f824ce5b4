//! What else could run a workload on this machine, for comparison in one breath.

use super::engine::Outcome;
use super::workload_source::{Clock, Workload, WorkloadPartition};
use crate::cli::CommandError;
use crate::error::JobError;
use crate::ingest::{Partition, PartitionStatus};
use std::collections::HashMap;
use std::sync::Arc;
use tidegate_operators::event::Event;
use timely::dataflow::InputHandle;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::Input;
use timely::dataflow::operators::generic::Operator;

/// Something else that runs the workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Peer {
    /// A `HashMap` in an operator of plain Timely: no order, no state beyond memory.
    Hashmap,
}

/// Runs a workload on a peer.
///
/// # Errors
/// [`CommandError`] where it cannot be started.
pub fn run(
    peer: Peer,
    workload: Workload,
    workers: usize,
    clock: &Arc<Clock>,
) -> Result<Outcome, CommandError> {
    let Peer::Hashmap = peer;
    let communication = match workers {
        1 => timely::CommunicationConfig::Thread,
        workers => timely::CommunicationConfig::Process(workers),
    };
    let config = timely::Config { communication, worker: timely::WorkerConfig::default() };
    let clock = Arc::clone(clock);
    let guards = timely::execute(config, move |worker| {
        let mut input = InputHandle::new();
        let sums = std::rc::Rc::new(std::cell::Cell::new((0u64, 0u64)));
        let shown = std::rc::Rc::clone(&sums);
        worker.dataflow::<u64, _, _>(|scope| {
            scope
                .input_from(&mut input)
                .unary::<timely::container::CapacityContainerBuilder<Vec<(u64, u64)>>, _, _, _>(
                    Exchange::new(|key: &u64| *key),
                    "count",
                    |_, _| {
                        let mut counts: HashMap<u64, u64> = HashMap::new();
                        move |input, output| {
                            input.for_each(|capability, keys| {
                                let mut session = output.session(&capability);
                                for key in keys.drain(..) {
                                    let count = counts.entry(key).or_default();
                                    *count += 1;
                                    session.give((key, *count));
                                }
                            });
                        }
                    },
                )
                .sink(timely::dataflow::channels::pact::Pipeline, "sum", move |(input, _)| {
                    input.for_each(|_, counts| {
                        let (out, sum) = shown.get();
                        let added = counts.iter().fold(sum, |sum, (_, count)| sum.wrapping_add(*count));
                        shown.set((out + counts.len() as u64, added));
                    });
                });
        });
        let mut partition =
            WorkloadPartition::new(workload, worker.index(), worker.peers(), Arc::clone(&clock));
        let mut events: Vec<Event<(u64, ())>> = Vec::new();
        loop {
            let status = partition.read(4096, &mut events).unwrap_or(PartitionStatus::Ended);
            events.drain(..).for_each(|event| input.send(event.data.0));
            if status == PartitionStatus::Ended {
                break;
            }
            input.advance_to(partition.watermark().max(0) as u64);
            worker.step();
        }
        input.close();
        while worker.has_dataflows() {
            worker.step_or_park(None);
        }
        sums.get()
    })
    .map_err(JobError::Start)?;
    let mut outcome = Outcome { out: 0, checksum: 0 };
    for result in guards.join() {
        let (out, sum) = result.map_err(JobError::Start)?;
        outcome.out += out;
        outcome.checksum = outcome.checksum.wrapping_add(sum);
    }
    Ok(outcome)
}
