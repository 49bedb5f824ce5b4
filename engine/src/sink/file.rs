//! Rows to a file or to standard output, in the order of events.
//!
//! Rows are formatted where they arise, travel to the first worker, wait there for the frontier,
//! and are written in the order of (time, rank, text). So a file of results is a function of the
//! input, byte for byte, whatever the number of workers. It appears under its name when it is
//! complete.

use super::row::{RowFormat, RowWriter};
use crate::error::JobError;
use crate::job::Job;
use crate::moment::Moment;
use crate::stream::{Data, Stream};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;
use tidegate_operators::event::Event;
use tidegate_operators::stash::Stash;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::generic::Operator;
use timely::dataflow::operators::generic::OutputBuilder;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;
use timely::dataflow::operators::{Concatenate, Probe};

impl<'s, D: Data> Stream<'s, D> {
    /// Writes rows to `path`, or to standard output.
    pub(super) fn write(self, name: &str, path: Option<PathBuf>, format: RowFormat, columns: Vec<String>) {
        let path = match path.map(|path| self.job.sink_path(path, name, format)).transpose() {
            Ok(path) => path,
            Err(error) => return self.job.shared.failure.report(error),
        };
        let row_writer = RowWriter::new(format, columns, self.job.shared.output.time_format);
        let header = row_writer.header();
        self.format_rows(name, row_writer).write_rows(name, path, header);
    }

    /// Keeps late records for the file of late records, if there shall be one.
    pub(crate) fn keep_late_rows(self, operator: &str) {
        if self.job.shared.output.late.is_none() {
            return;
        }
        let columns = ["operator", "key", "value"].map(str::to_string).to_vec();
        let writer = RowWriter::new(RowFormat::Jsonl, columns, self.job.shared.output.time_format);
        let job = self.job.clone();
        let name = operator.to_string();
        let rows = self.map(move |data| (name.clone(), data)).format_rows("late records", writer);
        job.late_rows.borrow_mut().push(rows.events);
    }
}

impl<'s> Job<'s> {
    /// Writes the late records of all operators, if they shall be written.
    pub(crate) fn write_late_rows(&self) {
        let Some(path) = self.shared.output.late.clone() else { return };
        let streams = std::mem::take(&mut *self.late_rows.borrow_mut());
        let rows = self.scope.concatenate(streams);
        Stream::new(self, rows).write_rows("late records", Some(path), None);
    }

    /// The file of a sink: the path itself, or a file in it, where it is a directory.
    fn sink_path(&self, path: PathBuf, name: &str, format: RowFormat) -> Result<PathBuf, JobError> {
        let is_directory = path.is_dir() || path.as_os_str().to_string_lossy().ends_with('/');
        if !is_directory {
            if self.shared.metrics.borrow().sinks.len() > 1 {
                let reason = "the job has several sinks; give it a directory (a path that ends with '/')";
                return Err(JobError::Option { option: "--output", reason: reason.to_string() });
            }
            return Ok(path);
        }
        match std::fs::create_dir_all(&path) {
            Ok(()) => Ok(path.join(format!("{name}.{}", format.extension()))),
            Err(source) => Err(JobError::Sink { path, source }),
        }
    }
}

impl<'s> Stream<'s, String> {
    /// Writes lines that are rows already, in the order of events.
    fn write_rows(self, name: &str, path: Option<PathBuf>, header: Option<String>) {
        let job = self.job.clone();
        let failure = job.failure();
        let pact = Exchange::new(|_: &Event<String>| 0);
        let is_first = job.worker() == 0;
        let mut builder = OperatorBuilder::new(format!("write {name}"), self.events.scope());
        let mut input = builder.new_input(self.events, pact);
        // The output carries nothing; its frontier tells how far results have been written.
        let (output, written) = builder.new_output::<Vec<()>>();
        drop(OutputBuilder::<_, timely::container::CapacityContainerBuilder<Vec<()>>>::from(output));
        builder.build(move |capabilities| {
            let mut written = capabilities.into_iter().next();
            let mut target = None;
            if is_first {
                match Target::open(path, header) {
                    Ok(opened) => target = Some(opened),
                    Err(error) => failure.report(error),
                }
            }
            let mut stash = Stash::new();
            let mut due = Vec::new();
            move |frontiers| {
                input.for_each(|_, events| events.drain(..).for_each(|event| stash.push(event)));
                if failure.happened() {
                    (target, written) = (None, None);
                    return;
                }
                let (round, frontier) = Moment::of_frontier(frontiers[0].frontier());
                stash.release(frontier, &mut due);
                due.sort_by(|a: &Event<String>, b| a.order(b).then_with(|| a.data.cmp(&b.data)));
                if let Some(open) = &mut target {
                    let outcome = match due.is_empty() {
                        true => Ok(()),
                        false => {
                            open.write(due.iter().map(|event| event.data.as_str())).and_then(|()| open.show())
                        }
                    };
                    let ended = round.is_none();
                    let outcome = match (outcome, ended) {
                        (Ok(()), true) => target.take().map_or(Ok(()), Target::complete),
                        (outcome, _) => outcome,
                    };
                    if let Err(error) = outcome {
                        failure.report(error);
                        (target, written) = (None, None);
                        return;
                    }
                }
                due.clear();
                crate::driver::follow(&mut written, round, frontier);
            }
        });
        written.probe_with(&job.shared.sunk);
    }
}

impl<'s, D: Data> Stream<'s, D> {
    fn format_rows(self, name: &str, writer: RowWriter) -> Stream<'s, String> {
        let failure = self.job.failure();
        let sink = name.to_string();
        let events =
            self.events.unary::<timely::container::CapacityContainerBuilder<Vec<Event<String>>>, _, _, _>(
                timely::dataflow::channels::pact::Pipeline,
                "format rows",
                |_, _| {
                    move |input, output| {
                        input.for_each(|capability, events| {
                            let mut session = output.session(&capability);
                            for Event { time, rank, data } in events.drain(..) {
                                match writer.row(time, &data) {
                                    Ok(row) => session.give(Event { time, rank, data: row }),
                                    Err(reason) => {
                                        failure.report(JobError::Row { sink: sink.clone(), reason });
                                        return;
                                    }
                                }
                            }
                        });
                    }
                },
            );
        Stream { job: self.job, events }
    }
}

/// An open file of results, or standard output.
enum Target {
    Stdout(BufWriter<std::io::Stdout>),
    File { path: PathBuf, writer: BufWriter<NamedTempFile> },
}

impl Target {
    fn open(path: Option<PathBuf>, header: Option<String>) -> Result<Self, JobError> {
        let mut target = match path {
            None => Target::Stdout(BufWriter::new(std::io::stdout())),
            Some(path) => {
                let directory = match path.parent() {
                    Some(parent) if parent != Path::new("") => parent,
                    _ => Path::new("."),
                };
                let file = NamedTempFile::new_in(directory)
                    .map_err(|source| JobError::Sink { path: path.clone(), source })?;
                Target::File { path, writer: BufWriter::new(file) }
            }
        };
        if let Some(header) = header {
            target.write(std::iter::once(format!("{header}\n").as_str()))?;
        }
        Ok(target)
    }

    fn write<'a>(&mut self, rows: impl Iterator<Item = &'a str>) -> Result<(), JobError> {
        let (path, outcome) = match self {
            Target::Stdout(writer) => (Path::new("standard output"), write_all(writer, rows)),
            Target::File { path, writer } => (path.as_path(), write_all(writer, rows)),
        };
        outcome.map_err(|source| JobError::Sink { path: path.to_path_buf(), source })
    }

    /// Shows what was written to whoever reads standard output.
    fn show(&mut self) -> Result<(), JobError> {
        match self {
            Target::Stdout(writer) => {
                writer.flush().map_err(|source| JobError::Sink { path: "standard output".into(), source })
            }
            Target::File { .. } => Ok(()),
        }
    }

    fn complete(self) -> Result<(), JobError> {
        match self {
            mut stdout @ Target::Stdout(_) => stdout.show(),
            Target::File { path, writer } => {
                complete_file(&path, writer).map_err(|source| JobError::Sink { path, source })
            }
        }
    }
}

fn write_all<'a>(writer: &mut impl Write, rows: impl Iterator<Item = &'a str>) -> std::io::Result<()> {
    for row in rows {
        writer.write_all(row.as_bytes())?;
    }
    Ok(())
}

fn complete_file(path: &Path, writer: BufWriter<NamedTempFile>) -> std::io::Result<()> {
    let file = writer.into_inner().map_err(|error| error.into_error())?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
