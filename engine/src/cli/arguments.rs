//! Options that several commands share.

use super::CommandError;
use super::state_arguments::StateArguments;
use crate::config::{JobConfig, RunAhead};
use crate::ingest::trace::{EpochLength, InputOptions, Speed};
use crate::pipeline::Pipeline;
use crate::source::{BadLines, FieldMapping, Format, TimeFormat, TraceOptions};
use bytesize::ByteSize;
use jiff::SignedDuration;
use std::path::PathBuf;
use std::time::Duration;
use tidegate_operators::policy::BatchPolicy;
use tidegate_state::strategy::ReadStrategy;

/// How traces are read.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Reading the trace")]
pub struct TraceArguments {
    /// Traces: CSV, TSV or JSON Lines, plain, gzip or zstd; `-` is standard input. Each file is a
    /// partition of its own.
    #[arg(required = true, value_name = "TRACE")]
    traces: Vec<PathBuf>,
    /// Field that records are grouped by; several are joined, as in origin+dest.
    #[arg(long, value_name = "FIELD")]
    key: Option<String>,
    /// Field that holds the event time.
    #[arg(long, value_name = "FIELD")]
    time: Option<String>,
    /// How event times are written. A bare number needs its unit.
    #[arg(long, value_name = "UNIT", value_enum)]
    time_unit: Option<TimeFormat>,
    /// Field that is aggregated.
    #[arg(long, value_name = "FIELD")]
    value: Option<String>,
    /// Format of the traces, where name and content do not tell.
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Allowed disorder: how far a record may lie behind the newest one of its file and still
    /// count as on time, as in 5s, 10m, 24h.
    #[arg(long, value_name = "DURATION", default_value = "0s", allow_hyphen_values = true)]
    max_lag: String,
    /// Step the frontier at each multiple of this length of event time.
    #[arg(long, value_name = "DURATION", conflicts_with = "epoch_records")]
    epoch: Option<String>,
    /// Step the frontier after so many records of a file.
    #[arg(long, value_name = "N", default_value_t = 4096)]
    epoch_records: usize,
    /// What to do about lines that are no records: stop with an error, or leave them out and
    /// report them.
    #[arg(long, value_name = "WHAT", value_enum, default_value = "fail")]
    bad_lines: BadLines,
}

/// What a job runs with.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Running the job")]
pub struct JobArguments {
    /// Worker threads.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    workers: u16,
    /// Most distinct keys that are read at once.
    #[arg(long, value_name = "N", default_value_t = BatchPolicy::default().keys_per_chunk)]
    batch_keys: usize,
    /// Most records of a worker that are due and not worked off before its sources wait.
    #[arg(long, value_name = "N", default_value_t = RunAhead::default().events)]
    max_in_flight: u64,
    /// Most bytes in stashes before sources wait for work that is due.
    #[arg(long, value_name = "SIZE", default_value = "256MiB")]
    max_stash: ByteSize,
    /// After how long without a record standard input no longer holds the other inputs back.
    #[arg(long, value_name = "DURATION", default_value = "5s")]
    idle_after: String,
    /// Farthest that a file may be ahead of the others in event time.
    #[arg(long, value_name = "DURATION")]
    max_ahead: Option<String>,
    #[command(flatten)]
    state: StateArguments,
}

impl TraceArguments {
    /// How the pipeline's input is read: by these options, and by its defaults where they say
    /// nothing.
    ///
    /// # Errors
    /// [`CommandError`] that names the option.
    pub fn input(&self, pipeline: &Pipeline, speed: Speed) -> Result<InputOptions, CommandError> {
        let defaults = &pipeline.defaults;
        let time = self.time.clone().or_else(|| defaults.time.map(str::to_string));
        let mut fields = FieldMapping::new(time.unwrap_or_else(|| "time".to_string()));
        if let Some(key) = self.key.as_deref().or(defaults.key) {
            fields = fields.with_key(key);
        }
        if let Some(value) = self.value.as_deref().or(defaults.value) {
            fields = fields.with_value(value);
        }
        let mut trace = TraceOptions::new(fields);
        trace.format = self.format;
        trace.time_format = self.time_unit();
        trace.bad_lines = self.bad_lines;
        if self.epoch_records == 0 {
            return Err(CommandError::usage("option --epoch-records: at least 1"));
        }
        let epoch = match &self.epoch {
            None => EpochLength::Records(self.epoch_records),
            Some(text) => match self.duration("--epoch", text)? {
                0 => return Err(CommandError::usage("option --epoch: an epoch has a length above 0")),
                length => EpochLength::EventTime(length),
            },
        };
        if matches!(speed, Speed::Multiple(_)) && self.time_unit() == TimeFormat::Raw {
            let reason = "option --speed: times of --time-unit raw have no length; use --speed max";
            return Err(CommandError::usage(reason));
        }
        let max_lag = self.duration("--max-lag", &self.max_lag)?;
        Ok(InputOptions { paths: self.traces.clone(), trace, max_lag, epoch, speed })
    }

    /// How event times are written.
    pub fn time_unit(&self) -> TimeFormat {
        self.time_unit.unwrap_or_default()
    }

    /// A length of event time: microseconds, or the raw unit.
    ///
    /// # Errors
    /// [`CommandError`] that names the option.
    pub fn duration(&self, option: &str, text: &str) -> Result<i64, CommandError> {
        parse_duration(text, self.time_unit())
            .map_err(|reason| CommandError::usage(format!("option {option} {text:?}: {reason}")))
    }

    /// The traces.
    pub fn paths(&self) -> &[PathBuf] {
        &self.traces
    }
}

/// A length of event time in microseconds; under raw times, a plain number in their unit.
fn parse_duration(text: &str, unit: TimeFormat) -> Result<i64, String> {
    if unit == TimeFormat::Raw {
        let text = if text == "0s" { "0" } else { text };
        let raw =
            text.parse::<i64>().map_err(|_| "with --time-unit raw this is a plain number".to_string())?;
        return if raw < 0 { Err("it may not be negative".to_string()) } else { Ok(raw) };
    }
    let duration: SignedDuration =
        text.parse().map_err(|_| "a duration has a unit, as in 100ms, 5s, 10m, 24h".to_string())?;
    match i64::try_from(duration.as_micros()) {
        Ok(micros) if micros >= 0 => Ok(micros),
        Ok(_) => Err("it may not be negative".to_string()),
        Err(_) => Err("longer than event times can tell apart".to_string()),
    }
}

impl JobArguments {
    /// The configuration of a job of this name.
    ///
    /// # Errors
    /// [`CommandError`] that names the option.
    pub fn config(
        &self,
        name: &str,
        strategy: ReadStrategy,
        trace: &TraceArguments,
    ) -> Result<JobConfig, CommandError> {
        if self.batch_keys == 0 {
            return Err(CommandError::usage("option --batch-keys: at least 1"));
        }
        let event_time = match &self.max_ahead {
            None => None,
            Some(text) => Some(trace.duration("--max-ahead", text)?),
        };
        let idle_after = parse_duration(&self.idle_after, TimeFormat::Micros).map_err(|reason| {
            CommandError::usage(format!("option --idle-after {:?}: {reason}", self.idle_after))
        })?;
        let mut config = JobConfig {
            idle_after: Duration::from_micros(idle_after as u64),
            name: name.to_string(),
            workers: usize::from(self.workers),
            strategy,
            batch: BatchPolicy { keys_per_chunk: self.batch_keys },
            run_ahead: RunAhead {
                events: self.max_in_flight,
                stash_bytes: self.max_stash.as_u64(),
                event_time,
            },
            ..JobConfig::default()
        };
        self.state.configure(&mut config);
        Ok(config)
    }

    /// Whether the memory was chosen.
    pub fn memory_is_given(&self) -> bool {
        self.state.memory_is_given()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units_unless_times_are_raw() {
        let micros = |text| parse_duration(text, TimeFormat::Millis);
        assert_eq!(micros("0s"), Ok(0));
        assert_eq!(micros("100ms"), Ok(100_000));
        assert_eq!(micros("5s"), Ok(5_000_000));
        assert_eq!(micros("1h 30m"), Ok(5_400_000_000));
        assert_eq!(micros("250us"), Ok(250));
        assert!(micros("5").unwrap_err().contains("unit"));
        assert!(micros("-5s").unwrap_err().contains("negative"));
        assert!(micros("300000000000h").is_err());
        assert_eq!(parse_duration("17", TimeFormat::Raw), Ok(17));
        assert_eq!(parse_duration("0s", TimeFormat::Raw), Ok(0));
        assert!(parse_duration("5s", TimeFormat::Raw).is_err());
    }
}
