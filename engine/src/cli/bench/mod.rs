//! `tidegate bench`: measurements of the engine itself.

mod disk_file;
mod engine;
mod machine;
mod padded_count;
mod peers;
mod reads;
mod spread;
mod state;
mod workload_source;

use super::CommandError;

/// Measurements of the engine itself.
#[derive(Debug, clap::Subcommand)]
pub enum BenchCommand {
    /// Run a workload that stream processors are compared with, and print one line of JSON.
    Engine(engine::EngineArguments),
    /// Measure random reads of the disk itself, without any store.
    Reads(reads::ReadsArguments),
    /// Measure the state layer alone: reads, updates, appends and clears, strategy by strategy.
    State(Box<state::StateArguments>),
}

/// Runs the command; gives the exit status.
///
/// # Errors
/// [`CommandError`] where an option is wrong, or the job fails.
pub fn run(command: &BenchCommand) -> Result<u8, CommandError> {
    match command {
        BenchCommand::Engine(arguments) => engine::run(arguments),
        BenchCommand::Reads(arguments) => reads::run(arguments),
        BenchCommand::State(arguments) => state::run(arguments),
    }
}
