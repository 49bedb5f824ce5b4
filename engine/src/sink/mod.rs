//! Sinks: where results go.
//!
//! | module | what it holds |
//! |---|---|
//! | [`row`] | a result as a row of CSV, TSV or JSON Lines |
//! | [`time_text`] | event times as text |
//! | [`mod@file`] | rows in the order of events, to a file or to standard output |
//!
//! Every sink counts its rows and sums their hashes, so that two runs can be compared without
//! writing anything: equal bags of rows have equal sums, in whatever order they came.

pub mod file;
pub mod row;
pub mod time_text;

use crate::error::JobError;
use crate::metrics::SharedSink;
use crate::source::TimeFormat;
use crate::stream::{Data, Stream};
use row::{RowFormat, RowWriter};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use tidegate_operators::event::Event;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::Probe;
use timely::dataflow::operators::generic::Operator;
use xxhash_rust::xxh3::xxh3_128;

/// Rows in the order in which they were made, shared with whoever started the job.
pub type Collected = Arc<Mutex<Vec<Row>>>;

/// A result of a job, as [`Output::Collect`] keeps it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    /// The sink it came to.
    pub sink: String,
    /// Its event time.
    pub time: i64,
    /// Its fields as they are in a CSV file, without the time.
    pub text: String,
}

/// Where the results of a job go.
#[derive(Debug, Clone, Default)]
pub enum Output {
    /// They are counted and hashed, and nothing else.
    #[default]
    Discard,
    /// To standard output, in the order of events.
    Stdout(RowFormat),
    /// To a file for each sink, in the order of events. With one sink it is this file; with
    /// several, this is a directory, and each sink has a file of its name there.
    Files(PathBuf, RowFormat),
    /// Into memory, for tests and for programs that call the engine.
    Collect(Collected),
}

/// How results are written.
#[derive(Debug, Clone, Default)]
pub struct OutputOptions {
    /// Where they go.
    pub output: Output,
    /// Where records go that came too late, as JSON Lines; none to count them only. They are
    /// written as they come, so which records the file holds is fixed, and their order is not.
    pub late: Option<PathBuf>,
    /// How times are written.
    pub time_format: TimeFormat,
}

impl<'s, D: Data> Stream<'s, D> {
    /// Sends the stream to a sink of this name, which is unique in the job. `columns` names the
    /// fields of a result: its own, or those of a tuple and of tuples within; the event time
    /// goes in front of them under the name `time`.
    pub fn sink(self, name: &str, columns: &[&str]) {
        let metrics = self.job.sink_metrics(name);
        let columns: Vec<String> = columns.iter().map(|column| column.to_string()).collect();
        let counted = self.count_rows(metrics);
        match counted.job.shared.output.output.clone() {
            Output::Discard => {
                let sunk = counted.job.shared.sunk.clone();
                counted.events.probe_with(&sunk);
            }
            Output::Collect(rows) => counted.collect(name, rows, columns),
            Output::Stdout(format) => counted.write(name, None, format, columns),
            Output::Files(path, format) => counted.write(name, Some(path), format, columns),
        }
    }

    /// Hands every event to a function, and nothing on: a sink of your own. `name` is unique among
    /// the sinks of the job; `take` sees some events at a time, in the order in which they come.
    pub fn consume(self, name: &str, mut take: impl FnMut(&[Event<D>]) + 'static) {
        let metrics = self.job.sink_metrics(name);
        let live = self.job.live();
        let sunk = self.job.shared.sunk.clone();
        let done = self.events.unary::<CapacityContainerBuilder<Vec<()>>, _, _, _>(Pipeline, name, |_, _| {
            move |input, _| {
                input.for_each(|_, events| {
                    take(events);
                    metrics.borrow_mut().rows += events.len() as u64;
                    live.rows.fetch_add(events.len() as u64, Ordering::Relaxed);
                });
            }
        });
        done.probe_with(&sunk);
    }

    /// Counts and hashes what passes.
    fn count_rows(self, metrics: SharedSink) -> Self {
        let live = self.job.live();
        let mut bytes = Vec::new();
        let events = self.events.unary::<CapacityContainerBuilder<Vec<Event<D>>>, _, _, _>(
            Pipeline,
            "count rows",
            |_, _| {
                move |input, output| {
                    input.for_each(|capability, events| {
                        let mut metrics = metrics.borrow_mut();
                        for event in events.iter() {
                            bytes.clear();
                            bytes.extend_from_slice(&event.time.to_le_bytes());
                            // A result that cannot be encoded cannot travel between workers
                            // either; it counts as its time alone.
                            let _ = tidegate_state::codec::encode_into(&event.data, &mut bytes);
                            metrics.bag_hash = metrics.bag_hash.wrapping_add(xxh3_128(&bytes));
                        }
                        metrics.rows += events.len() as u64;
                        live.rows.fetch_add(events.len() as u64, Ordering::Relaxed);
                        output.session(&capability).give_container(events);
                        events.clear();
                    });
                }
            },
        );
        Stream { job: self.job, events }
    }

    fn collect(self, name: &str, rows: Collected, columns: Vec<String>) {
        let failure = self.job.failure();
        let sink = name.to_string();
        let writer = RowWriter::new(RowFormat::Csv, columns, TimeFormat::Raw);
        let sunk = self.job.shared.sunk.clone();
        self.inspect(move |event| match writer.fields(&event.data) {
            Ok(fields) => {
                let row = Row { sink: sink.clone(), time: event.time, text: writer.csv_line(&fields) };
                rows.lock().unwrap_or_else(PoisonError::into_inner).push(row);
            }
            Err(reason) => failure.report(JobError::Row { sink: sink.clone(), reason }),
        })
        .events
        .probe_with(&sunk);
    }
}
