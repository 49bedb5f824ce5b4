//! A script as a source: all its streams on the first worker, line after line.

use super::script::{Script, Step};
use crate::job::Job;
use crate::moment::Moment;
use crate::stream::Stream;
use std::time::Duration;
use tidegate_operators::event::{Event, Rank, Time};
use tidegate_operators::frontier::Frontier;
use timely::dataflow::operators::Capability;
use timely::dataflow::operators::generic::OutputBuilder;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;

/// How long the source sleeps until the rest of the job has caught up.
const NAP: Duration = Duration::from_micros(50);

/// A record of a script: key and value.
pub type Pair = (String, String);

/// The streams of a script as the partitions of one input.
///
/// After a frontier step the next line waits until all of the job has worked it off, so that
/// releases are those of the script. Between steps, records are handed over one by one, or all
/// together (`one_by_one`).
pub fn script_source<'s>(job: &Job<'s>, script: &Script, one_by_one: bool) -> Stream<'s, Pair> {
    let mut builder = OperatorBuilder::new("script".to_string(), job.scope);
    let (output, events) = builder.new_output();
    let mut output = OutputBuilder::from(output);
    let activator = job.scope.activator_for(builder.operator_info().address);
    let worked_off = job.shared.worked_off.clone();
    let failure = job.failure();
    let is_first = job.worker() == 0;
    let mut player = Player::new(script);
    builder.build(move |capabilities| {
        let mut capability = capabilities.into_iter().next().filter(|_| is_first);
        move |_| {
            let Some(held) = &mut capability else { return };
            if failure.happened() {
                capability = None;
                return;
            }
            let caught_up = worked_off.with_frontier(|frontier| Moment::of_frontier(frontier).1);
            if caught_up < player.promised() {
                activator.activate_after(NAP);
                return;
            }
            let mut records = player.records_until_step(one_by_one);
            {
                let mut output = output.activate();
                output.session(held).give_container(&mut records);
            }
            match player.take_step() {
                Frontier::Ended => capability = None,
                Frontier::At(time) => {
                    move_to(held, time);
                    activator.activate();
                }
            }
        }
    });
    Stream::new(job, events)
}

fn move_to(held: &mut Capability<Moment>, time: Time) {
    let moment = Moment::new(held.time().round, time);
    if moment.time > held.time().time {
        held.downgrade(&moment);
    }
}

/// Plays the lines of a script.
struct Player {
    steps: std::collections::VecDeque<Step>,
    /// The frontier of each stream, and how many records it had.
    streams: Vec<(Frontier, u64)>,
}

impl Player {
    fn new(script: &Script) -> Self {
        Player {
            steps: script.steps.iter().cloned().collect(),
            streams: vec![(Frontier::START, 0); script.streams.len()],
        }
    }

    /// The least frontier of the streams.
    fn promised(&self) -> Frontier {
        self.streams.iter().map(|(frontier, _)| *frontier).min().unwrap_or(Frontier::START)
    }

    /// The records up to the next step that is no record; only the first of them if they are
    /// handed over one by one.
    fn records_until_step(&mut self, one_by_one: bool) -> Vec<Event<Pair>> {
        let mut records = Vec::new();
        while (records.is_empty() || !one_by_one)
            && let Some(Step::Record { stream, time, key, value }) =
                self.steps.pop_front_if(|step| matches!(step, Step::Record { .. }))
        {
            let (frontier, position) = &mut self.streams[stream];
            let rank = match *frontier {
                Frontier::At(watermark) if time < watermark => {
                    Rank::late_record(stream as u32, *position, watermark)
                }
                _ => Rank::record(stream as u32, *position),
            };
            *position += 1;
            records.push(Event { time, rank, data: (key, value) });
        }
        records
    }

    /// Does the next step, if it is no record, and tells the least frontier after it.
    fn take_step(&mut self) -> Frontier {
        match self.steps.pop_front_if(|step| !matches!(step, Step::Record { .. })) {
            Some(Step::Frontier { stream, time }) => self.raise(stream, Frontier::At(time)),
            Some(Step::End { stream }) => self.raise(stream, Frontier::Ended),
            // Scripts with such steps are refused before they are played.
            Some(Step::Unsupported(_) | Step::Record { .. }) => {}
            // Whatever a script leaves open ends with it.
            None if self.steps.is_empty() => self.raise(None, Frontier::Ended),
            None => {}
        }
        self.promised()
    }

    fn raise(&mut self, stream: Option<usize>, to: Frontier) {
        for (index, (frontier, _)) in self.streams.iter_mut().enumerate() {
            if stream.is_none_or(|stream| stream == index) {
                *frontier = (*frontier).max(to);
            }
        }
    }
}
