//! `tidegate bench`: measurements of the engine itself.

mod disk_file;
mod engine;
mod machine;
mod peers;
mod reads;
mod spread;
mod workload_source;

use super::CommandError;

/// Measurements of the engine itself.
#[derive(Debug, clap::Subcommand)]
pub enum BenchCommand {
    /// Run a workload that stream processors are compared with, and print one line of JSON.
    Engine(engine::EngineArguments),
    /// Measure random reads of the disk itself, without any store.
    Reads(reads::ReadsArguments),
}

/// Runs the command; gives the exit status.
///
/// # Errors
/// [`CommandError`] where an option is wrong, or the job fails.
pub fn run(command: &BenchCommand) -> Result<u8, CommandError> {
    match command {
        BenchCommand::Engine(arguments) => engine::run(arguments),
        BenchCommand::Reads(arguments) => reads::run(arguments),
    }
}
