//! `tidegate trace`: event traces.

use super::CommandError;
use crate::generate::{GenerateError, TraceSpec, preset, preset_names, write_trace};
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

/// Commands on event traces.
#[derive(Debug, clap::Subcommand)]
pub enum TraceCommand {
    /// Make up a trace: the same bytes for the same specification, on every machine.
    Generate(GenerateArguments),
}

/// Options of `tidegate trace generate`.
#[derive(Debug, clap::Args)]
#[command(after_help = format!("\
Presets: {}

Examples:
  tidegate trace generate orders --records 1000000 --output orders.csv.gz
  tidegate trace generate orders --print-spec > mine.json
  tidegate trace generate mine.json --output mine.csv.gz", preset_names().collect::<Vec<_>>().join(", ")))]
pub struct GenerateArguments {
    /// A preset's name, or a file with a specification as JSON.
    #[arg(value_name = "SPEC")]
    spec: String,
    /// Another number of records than the specification's.
    #[arg(long, value_name = "N")]
    records: Option<u64>,
    /// Another seed than the specification's.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Where the trace goes; `-` for standard output. Its format and compression are the
    /// specification's, whatever the name says.
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Print the specification instead of the trace.
    #[arg(long)]
    print_spec: bool,
}

/// Runs the command; gives the exit status.
///
/// # Errors
/// [`CommandError`] where the specification is wrong, or the trace cannot be written.
pub fn run(command: &TraceCommand) -> Result<u8, CommandError> {
    match command {
        TraceCommand::Generate(arguments) => generate(arguments),
    }
}

fn generate(arguments: &GenerateArguments) -> Result<u8, CommandError> {
    let mut spec = read_spec(&arguments.spec)?;
    spec.records = arguments.records.unwrap_or(spec.records);
    spec.seed = arguments.seed.unwrap_or(spec.seed);
    spec.validate().map_err(|error| refused(&arguments.spec, &error))?;
    if arguments.print_spec {
        println!("{}", spec.to_json().map_err(|error| refused(&arguments.spec, &error))?);
        return Ok(0);
    }
    let path = arguments.output.display();
    let summary = if arguments.output == Path::new("-") {
        write_trace(&spec, BufWriter::new(std::io::stdout()))
    } else {
        let file = File::create(&arguments.output)
            .map_err(|error| CommandError { status: 1, message: format!("cannot write {path}: {error}") })?;
        write_trace(&spec, BufWriter::new(file))
    };
    match summary {
        Ok(summary) => {
            eprintln!("{} records, {} bytes of text", summary.records, summary.text_bytes);
            Ok(0)
        }
        Err(GenerateError::Write { source, .. }) if source.kind() == std::io::ErrorKind::BrokenPipe => Ok(0),
        Err(error) => Err(CommandError { status: 1, message: format!("{path}: {error}") }),
    }
}

fn read_spec(spec: &str) -> Result<TraceSpec, CommandError> {
    let path = Path::new(spec);
    if !path.exists() && !spec.contains(['.', '/']) {
        return preset(spec).map_err(|error| CommandError::usage(error.to_string()));
    }
    let text = std::fs::read_to_string(path).map_err(|error| refused(spec, &error))?;
    TraceSpec::from_json(&text).map_err(|error| refused(spec, &error))
}

fn refused(spec: &str, error: &dyn std::fmt::Display) -> CommandError {
    CommandError::usage(format!("{spec}: {error}"))
}
