//! `tidegate replay`: a pipeline over traces.

use super::CommandError;
use super::arguments::{JobArguments, TraceArguments};
use super::explain::explain;
use super::progress::ProgressDisplay;
use super::report::RunSummary;
use crate::error::JobError;
use crate::ingest::trace::Speed;
use crate::pipeline::Pipeline;
use crate::run::Runner;
use crate::sink::row::RowFormat;
use crate::sink::{Output, OutputOptions};
use std::path::PathBuf;
use std::sync::Arc;
use tidegate_state::strategy::ReadStrategy;

/// Options of `tidegate replay`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tidegate replay running-totals trips.csv.gz --time pickup_ms --time-unit ms --key zone --value fare \\
      --max-lag 24h --output totals.csv
  zcat clicks.jsonl.gz | tidegate replay first-seen - --key user --output none

Results are written in the order of their event times. Records later than --max-lag allows are
counted, and written to --late-output if that is given.")]
pub struct ReplayArguments {
    /// The pipeline; `tidegate list` names them.
    #[arg(value_name = "PIPELINE")]
    pipeline: String,
    #[command(flatten)]
    trace: TraceArguments,
    #[command(flatten)]
    job: JobArguments,
    /// How state is read.
    #[arg(long, value_name = "S", default_value = "auto", help_heading = "Running the job")]
    strategy: ReadStrategy,
    /// `max`, or a multiple of the speed at which it happened, as in 1 or 60.
    #[arg(long, value_name = "SPEED", default_value = "max", value_parser = parse_speed)]
    speed: Speed,
    /// Where results go: a file, a directory (ends with `/`) with a file for each sink, `-` for
    /// standard output, or `none`.
    #[arg(long, short, value_name = "PATH", default_value = "-", help_heading = "Results")]
    output: String,
    /// How results are written.
    #[arg(long, value_enum, default_value = "csv", help_heading = "Results")]
    output_format: RowFormat,
    /// File for records that came too late, as JSON Lines.
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    late_output: Option<PathBuf>,
    /// File for what the run did and cost, as JSON.
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    report: Option<PathBuf>,
    /// Say at the end how state was read, and why: what each call cost at each size.
    #[arg(long)]
    explain: bool,
    /// No progress display, and no summary.
    #[arg(long, short)]
    quiet: bool,
}

fn parse_speed(text: &str) -> Result<Speed, String> {
    if text == "max" {
        return Ok(Speed::Max);
    }
    match text.trim_end_matches('x').parse::<f64>() {
        Ok(multiple) if multiple > 0.0 && multiple.is_finite() => Ok(Speed::Multiple(multiple)),
        _ => Err("it is `max` or a number above 0".to_string()),
    }
}

/// Runs the command; gives the exit status.
///
/// # Errors
/// [`CommandError`] where an option is wrong, or the job fails.
pub fn run(arguments: &ReplayArguments, pipelines: &[Pipeline]) -> Result<u8, CommandError> {
    let pipeline = super::find(pipelines, &arguments.pipeline)?;
    let input = arguments.trace.input(pipeline, arguments.speed)?;
    let config = arguments.job.config(pipeline.name, arguments.strategy, &arguments.trace)?;
    let output = OutputOptions {
        output: match arguments.output.as_str() {
            "none" => Output::Discard,
            "-" => Output::Stdout(arguments.output_format),
            path => Output::Files(PathBuf::from(path), arguments.output_format),
        },
        late: arguments.late_output.clone(),
        time_format: arguments.trace.time_unit(),
    };
    let runner = Runner::new(config, output).with_input(input);
    super::interrupt::stop_on_signals(Arc::clone(&runner.failure()));
    let display = (!arguments.quiet)
        .then(|| ProgressDisplay::start(runner.live(), arguments.trace.paths(), arguments.trace.time_unit()));
    let build = pipeline.build;
    let outcome = runner.run(build);
    drop(display);
    let report = match outcome {
        Ok(report) => report,
        // Whoever read the results has seen enough.
        Err(JobError::Sink { source, .. }) if source.kind() == std::io::ErrorKind::BrokenPipe => {
            return Ok(0);
        }
        Err(error) => return Err(error.into()),
    };
    let summary = RunSummary::new(&report);
    if !arguments.quiet {
        eprint!("{summary}");
    }
    if arguments.explain {
        eprint!("{}", explain(&report.metrics));
    }
    if let Some(path) = &arguments.report {
        super::write_json(path, &summary)?;
    }
    Ok(0)
}
