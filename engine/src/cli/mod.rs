//! The command line, as a library: a crate with pipelines gets `list`, `replay`, `compare` and
//! `case` by calling [`main`] with them.

mod allocator;
mod arguments;
mod bench;
mod case;
mod compare;
mod explain;
mod interrupt;
mod progress;
mod replay;
pub mod report;
mod state_arguments;
mod trace;

use crate::error::JobError;
use crate::pipeline::Pipeline;
use clap::{Parser, Subcommand};
use serde::Serialize;
use std::path::Path;
use std::process::ExitCode;
use tidegate_state::strategy::ReadStrategy;

/// Stream processing with keyed state in RocksDB, read in one batch for each step of event time.
#[derive(Debug, Parser)]
#[command(name = "tidegate", version, about, long_about = None, propagate_version = true)]
#[command(after_help = "\
Examples:
  tidegate list
  tidegate replay running-totals traces/orders.csv.gz --key customer --value amount \
      --time-unit ms --max-lag 5s --output totals.csv
  tidegate compare running-totals traces/orders.csv.gz --key customer --value amount \
      --time-unit ms --max-lag 5s

Exit status: 0 for success, 1 where a job fails or results differ, 2 for wrong usage, 130 after an
interrupt. The variable RUST_LOG (error, warn, info, debug) says how much is logged.")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Name the pipelines, with what they do.
    List,
    /// Run a pipeline over traces.
    Replay(Box<replay::ReplayArguments>),
    /// Run a pipeline over traces under several read strategies, check that the results are
    /// equal, and show what each cost.
    Compare(Box<compare::CompareArguments>),
    /// Make up event traces.
    #[command(subcommand)]
    Trace(trace::TraceCommand),
    /// Measure the engine itself.
    #[command(subcommand)]
    Bench(bench::BenchCommand),
    /// Run small scripts and check their rows.
    Case(case::CaseArguments),
}

/// The whole program: parses the arguments of the process and does what they say.
pub fn main(pipelines: &[Pipeline]) -> ExitCode {
    allocator::keep_little();
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or("warn")).init();
    let outcome = match Arguments::parse().command {
        Command::List => {
            list(pipelines);
            Ok(0)
        }
        Command::Replay(arguments) => replay::run(&arguments, pipelines),
        Command::Compare(arguments) => compare::run(&arguments, pipelines),
        Command::Trace(command) => trace::run(&command),
        Command::Bench(command) => bench::run(&command),
        Command::Case(arguments) => case::run(&arguments),
    };
    keep_rocksdb_off_stdout();
    match outcome {
        Ok(status) => ExitCode::from(status),
        Err(CommandError { status, message }) => {
            eprintln!("tidegate: {message}");
            ExitCode::from(status)
        }
    }
}

/// Where io_uring is refused, RocksDB says so on standard output: into the buffer of the C library,
/// which is written when the process ends, behind our results. By then, standard output leads
/// nowhere.
fn keep_rocksdb_off_stdout() {
    #[cfg(target_os = "linux")]
    if !tidegate_state::io_uring::is_available() {
        use std::io::Write;
        // What cannot be written any more was reported when it was printed.
        let _ = std::io::stdout().flush();
        if let Ok(nowhere) = std::fs::OpenOptions::new().write(true).open("/dev/null") {
            let _ = rustix::stdio::dup2_stdout(nowhere);
        }
    }
}

/// Why a command came to no result.
#[derive(Debug)]
struct CommandError {
    /// The process's exit status.
    status: u8,
    /// For the user.
    message: String,
}

impl CommandError {
    /// The command was given something wrong.
    fn usage(message: impl Into<String>) -> Self {
        CommandError { status: 2, message: message.into() }
    }

    /// The same error, with the strategy under which it came up.
    fn under(self, strategy: ReadStrategy) -> Self {
        CommandError { message: format!("under {strategy}: {}", self.message), ..self }
    }
}

impl From<JobError> for CommandError {
    fn from(error: JobError) -> Self {
        let status = match error {
            JobError::Interrupted => 130,
            JobError::Option { .. } => 2,
            _ => 1,
        };
        CommandError { status, message: error.to_string() }
    }
}

fn list(pipelines: &[Pipeline]) {
    let width = pipelines.iter().map(|pipeline| pipeline.name.len()).max().unwrap_or(0);
    for Pipeline { name, about, .. } in pipelines {
        println!("{name:width$}  {about}");
    }
}

fn find<'p>(pipelines: &'p [Pipeline], name: &str) -> Result<&'p Pipeline, CommandError> {
    pipelines.iter().find(|pipeline| pipeline.name == name).ok_or_else(|| {
        let names: Vec<_> = pipelines.iter().map(|pipeline| pipeline.name).collect();
        CommandError::usage(format!("there is no pipeline {name:?}; there are: {}", names.join(", ")))
    })
}

/// Writes something as JSON, to a file or, for `-`, to standard output.
fn write_json(path: &Path, value: &impl Serialize) -> Result<(), CommandError> {
    let failed = |reason: &dyn std::fmt::Display| CommandError {
        status: 1,
        message: format!("cannot write {}: {reason}", path.display()),
    };
    let text = serde_json::to_string_pretty(value).map_err(|error| failed(&error))?;
    if path == Path::new("-") {
        println!("{text}");
        return Ok(());
    }
    std::fs::write(path, text + "\n").map_err(|error| failed(&error))
}
