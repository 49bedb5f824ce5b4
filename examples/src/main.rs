//! The `tidegate` program: the engine's command line over the example pipelines.

use std::process::ExitCode;
use tidegate_examples::PIPELINES;

fn main() -> ExitCode {
    tidegate::cli::main(&PIPELINES)
}
