//! What a run did and what it cost, for people and for programs.

use crate::metrics::Metrics;
use crate::run::Report;
use hdrhistogram::Histogram;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use tidegate_operators::keyed::OperatorStatistics;
use tidegate_state::planner::PlanReport;
use tidegate_state::statistics::AccessStatistics;

/// A run in numbers.
#[derive(Debug, Clone, Serialize)]
pub struct RunSummary {
    /// From start to end, without the setting up of stores.
    pub elapsed_ms: f64,
    /// Records read.
    pub records: u64,
    /// Records read in a second.
    pub records_per_second: f64,
    /// Records that came too late.
    pub records_late: u64,
    /// Lines that were no records.
    pub bad_lines: u64,
    /// The first of those.
    pub bad_line_samples: Vec<String>,
    /// Times a source waited for the rest of the job.
    pub source_waits: u64,
    /// Times that sources slowed down because the store was about to hold writes up.
    pub source_write_waits: u64,
    /// Each sink's rows.
    pub sinks: BTreeMap<String, SinkSummary>,
    /// Each keyed operator.
    pub operators: BTreeMap<String, OperatorSummary>,
    /// Each state's accesses.
    pub states: BTreeMap<String, AccessStatistics>,
    /// How the reads of each state were carried out, and why: one report for each worker.
    pub plans: BTreeMap<String, Vec<PlanReport>>,
    /// Time that workers had nothing to do but to wait for reads.
    pub read_wait_ms: f64,
    /// All states together.
    pub state: AccessStatistics,
}

/// A sink in numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SinkSummary {
    /// Rows that came.
    pub rows: u64,
    /// Sum of the rows' hashes, in hexadecimal; equal for equal bags of rows.
    pub bag_hash: String,
}

/// A keyed operator in numbers.
#[derive(Debug, Clone, Serialize)]
pub struct OperatorSummary {
    /// Events, releases, chunks.
    #[serde(flatten)]
    pub statistics: OperatorStatistics,
    /// Half of the releases took no longer, in microseconds.
    pub release_p50_us: f64,
    /// 99 of 100 releases took no longer, in microseconds.
    pub release_p99_us: f64,
}

/// A quantile of release times, in microseconds.
pub fn quantile_us(times: &Histogram<u64>, quantile: f64) -> f64 {
    times.value_at_quantile(quantile) as f64 / 1e3
}

impl RunSummary {
    /// The numbers of a report.
    pub fn new(report: &Report) -> Self {
        let Metrics { operators, states, plans, read_wait_ns, sources, sinks } = &report.metrics;
        let elapsed = report.elapsed.as_secs_f64();
        let records = report.metrics.records();
        RunSummary {
            elapsed_ms: elapsed * 1e3,
            records,
            records_per_second: records as f64 / elapsed.max(1e-9),
            records_late: sources.values().map(|source| source.records_late).sum(),
            bad_lines: sources.values().map(|source| source.bad_lines).sum(),
            bad_line_samples: sources.values().flat_map(|source| source.bad_line_samples.clone()).collect(),
            source_waits: sources.values().map(|source| source.waits).sum(),
            source_write_waits: sources.values().map(|source| source.write_waits).sum(),
            sinks: sinks
                .iter()
                .map(|(name, sink)| {
                    (
                        name.clone(),
                        SinkSummary { rows: sink.rows, bag_hash: format!("{:032x}", sink.bag_hash) },
                    )
                })
                .collect(),
            operators: operators
                .iter()
                .map(|(name, operator)| {
                    let summary = OperatorSummary {
                        statistics: operator.statistics,
                        release_p50_us: quantile_us(&operator.release_ns, 0.5),
                        release_p99_us: quantile_us(&operator.release_ns, 0.99),
                    };
                    (name.clone(), summary)
                })
                .collect(),
            states: states.clone(),
            plans: plans.clone(),
            read_wait_ms: *read_wait_ns as f64 / 1e6,
            state: report.metrics.all_states(),
        }
    }
}

impl fmt::Display for RunSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} records in {:.2} s, {:.0} records/s",
            self.records,
            self.elapsed_ms / 1e3,
            self.records_per_second
        )?;
        if self.records_late > 0 {
            writeln!(
                f,
                "{} records were late for their file's watermark; a larger --max-lag lets them in, \
                 --late-output FILE keeps them",
                self.records_late
            )?;
        }
        if self.bad_lines > 0 {
            writeln!(f, "{} lines were no records and were left out:", self.bad_lines)?;
            self.bad_line_samples.iter().try_for_each(|line| writeln!(f, "  {line}"))?;
        }
        for (name, operator) in &self.operators {
            let OperatorSummary { statistics, release_p50_us, release_p99_us } = operator;
            writeln!(
                f,
                "operator {name:?}: {} events in {} releases, p50 {release_p50_us:.0} µs, p99 {release_p99_us:.0} µs",
                statistics.events_released, statistics.releases,
            )?;
        }
        for (name, state) in &self.states {
            writeln!(
                f,
                "state {name:?}: {} keys asked, {} read in {} calls, {:.1} ms; {} rows written in {} commits, {:.1} ms",
                state.keys_asked,
                state.keys_read,
                state.get_calls + state.multi_get_calls,
                state.read_ns as f64 / 1e6,
                state.puts + state.deletes,
                state.commits,
                state.commit_ns as f64 / 1e6,
            )?;
        }
        for (name, sink) in &self.sinks {
            writeln!(f, "sink {name:?}: {} rows", sink.rows)?;
        }
        Ok(())
    }
}
