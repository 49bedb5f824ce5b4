//! `tidegate bench`: measurements of the engine itself.

mod engine;
mod machine;
mod peers;
mod workload_source;

use super::CommandError;

/// Measurements of the engine itself.
#[derive(Debug, clap::Subcommand)]
pub enum BenchCommand {
    /// Run a workload that stream processors are compared with, and print one line of JSON.
    Engine(engine::EngineArguments),
}

/// Runs the command; gives the exit status.
///
/// # Errors
/// [`CommandError`] where an option is wrong, or the job fails.
pub fn run(command: &BenchCommand) -> Result<u8, CommandError> {
    match command {
        BenchCommand::Engine(arguments) => engine::run(arguments),
    }
}
