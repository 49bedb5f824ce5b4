//! What a job did and what it cost: counted by each worker, summed at the end.

use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;
use tidegate_operators::event::Time;
use tidegate_operators::keyed::OperatorStatistics;
use tidegate_state::planner::PlanReport;
use tidegate_state::statistics::AccessStatistics;

/// One keyed operator, on one worker or on all.
#[derive(Debug, Clone)]
pub struct OperatorMetrics {
    /// Events, releases, chunks.
    pub statistics: OperatorStatistics,
    /// Time of each release, from the read set to the commit, in nanoseconds.
    pub release_ns: Histogram<u64>,
}

impl Default for OperatorMetrics {
    fn default() -> Self {
        OperatorMetrics {
            statistics: OperatorStatistics::default(),
            // Two significant digits are finer than what a release's time repeats to.
            release_ns: Histogram::new(2).expect("two digits are within the histogram's range"),
        }
    }
}

impl OperatorMetrics {
    /// Notes a release.
    pub(crate) fn released(&mut self, took: Duration, statistics: OperatorStatistics) {
        self.statistics = statistics;
        // The histogram grows to whatever is recorded.
        self.release_ns.record(took.as_nanos() as u64).ok();
    }

    fn add(&mut self, other: &OperatorMetrics) {
        self.statistics += other.statistics;
        self.release_ns.add(&other.release_ns).ok();
    }
}

/// One source, on one worker or on all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceMetrics {
    /// Records read.
    pub records: u64,
    /// Records that were late for their own partition's watermark.
    pub records_late: u64,
    /// Lines that were no records.
    pub bad_lines: u64,
    /// The first of those, as "file:line: reason".
    pub bad_line_samples: Vec<String>,
    /// Times the source waited for the rest of the job.
    pub waits: u64,
    /// Times the source slowed down because the store was about to hold writes up.
    pub write_waits: u64,
}

/// How many bad lines a report names.
const BAD_LINE_SAMPLES: usize = 20;

impl SourceMetrics {
    fn add(&mut self, other: &SourceMetrics) {
        self.records += other.records;
        self.records_late += other.records_late;
        self.bad_lines += other.bad_lines;
        self.bad_line_samples.extend(other.bad_line_samples.iter().cloned());
        self.bad_line_samples.truncate(BAD_LINE_SAMPLES);
        self.waits += other.waits;
        self.write_waits += other.write_waits;
    }
}

/// One sink, on one worker or on all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SinkMetrics {
    /// Rows that came.
    pub rows: u64,
    /// Sum of the hashes of all rows: equal for equal bags of rows, whatever their order.
    pub bag_hash: u128,
}

/// What one worker did, or all of them together.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    /// Keyed operators by name.
    pub operators: BTreeMap<String, OperatorMetrics>,
    /// Accesses by operator and state name.
    pub states: BTreeMap<String, AccessStatistics>,
    /// How the reads of each state were carried out, and why: one report for each worker.
    pub plans: BTreeMap<String, Vec<PlanReport>>,
    /// Time that workers had nothing to do but to wait for reads, in nanoseconds. (Time in reads
    /// that workers did themselves is with the states.)
    pub read_wait_ns: u64,
    /// Sources by name.
    pub sources: BTreeMap<String, SourceMetrics>,
    /// Sinks by name.
    pub sinks: BTreeMap<String, SinkMetrics>,
}

impl Metrics {
    /// Adds what another worker did.
    pub fn add(&mut self, other: &Metrics) {
        for (name, operator) in &other.operators {
            self.operators.entry(name.clone()).or_default().add(operator);
        }
        for (name, state) in &other.states {
            *self.states.entry(name.clone()).or_default() += *state;
        }
        for (name, plans) in &other.plans {
            self.plans.entry(name.clone()).or_default().extend(plans.iter().cloned());
        }
        self.read_wait_ns += other.read_wait_ns;
        for (name, source) in &other.sources {
            self.sources.entry(name.clone()).or_default().add(source);
        }
        for (name, sink) in &other.sinks {
            let sum = self.sinks.entry(name.clone()).or_default();
            sum.rows += sink.rows;
            sum.bag_hash = sum.bag_hash.wrapping_add(sink.bag_hash);
        }
    }

    /// All states together.
    pub fn all_states(&self) -> AccessStatistics {
        let mut sum = AccessStatistics::default();
        self.states.values().for_each(|state| sum += *state);
        sum
    }

    /// Releases of all operators together.
    pub fn all_releases(&self) -> OperatorMetrics {
        let mut sum = OperatorMetrics::default();
        self.operators.values().for_each(|operator| sum.add(operator));
        sum
    }

    /// Records that all sources read.
    pub fn records(&self) -> u64 {
        self.sources.values().map(|source| source.records).sum()
    }
}

/// What can be seen of a job while it runs, shared by all workers of a process.
#[derive(Debug)]
pub struct Live {
    /// Records read by all sources.
    pub records: AtomicU64,
    /// Records that were late.
    pub records_late: AtomicU64,
    /// Rows that reached sinks.
    pub rows: AtomicU64,
    /// Bytes that wait in stashes, without what events own on the heap.
    pub stash_bytes: AtomicU64,
    /// The frontier up to which everything is worked off, as last seen by a worker.
    pub frontier: AtomicI64,
    /// The largest event time that was read.
    pub newest: AtomicI64,
    /// Bytes of the inputs that were read, as they lie on disk.
    pub input_bytes: AtomicU64,
}

impl Default for Live {
    fn default() -> Self {
        Live {
            records: AtomicU64::new(0),
            records_late: AtomicU64::new(0),
            rows: AtomicU64::new(0),
            stash_bytes: AtomicU64::new(0),
            frontier: AtomicI64::new(Time::MIN),
            newest: AtomicI64::new(Time::MIN),
            input_bytes: AtomicU64::new(0),
        }
    }
}

impl Live {
    /// A meter for the stash of one operator, whose events have this size.
    pub(crate) fn stash_meter(self: &Arc<Self>, event_bytes: usize) -> StashMeter {
        StashMeter { live: Arc::clone(self), event_bytes: event_bytes as u64, shown: 0 }
    }
}

/// Keeps one operator's share of the stash bytes up to date.
pub(crate) struct StashMeter {
    live: Arc<Live>,
    event_bytes: u64,
    shown: u64,
}

impl StashMeter {
    /// The operator holds this many events now.
    pub fn set(&mut self, events: usize) {
        let bytes = events as u64 * self.event_bytes;
        // Added and subtracted, as several operators share the sum.
        self.live.stash_bytes.fetch_add(bytes.wrapping_sub(self.shown), Ordering::Relaxed);
        self.shown = bytes;
    }
}

impl Drop for StashMeter {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// A worker's own metrics, shared by its operators.
pub(crate) type SharedOperator = Rc<std::cell::RefCell<OperatorMetrics>>;
/// A source's metrics on a worker.
pub(crate) type SharedSource = Rc<std::cell::RefCell<SourceMetrics>>;
/// A sink's metrics on a worker.
pub(crate) type SharedSink = Rc<std::cell::RefCell<SinkMetrics>>;

/// Everything that the operators of one worker count.
#[derive(Default)]
pub(crate) struct WorkerMetrics {
    pub operators: Vec<(String, SharedOperator)>,
    pub sources: Vec<(String, SharedSource)>,
    pub sinks: Vec<(String, SharedSink)>,
    pub read_wait: Duration,
}

impl WorkerMetrics {
    /// A copy, with the store's own statistics, that can leave the worker.
    pub fn report(&self, store: &tidegate_state::store::Store) -> Metrics {
        let mut metrics = Metrics::default();
        for (name, operator) in &self.operators {
            metrics.operators.entry(name.clone()).or_default().add(&operator.borrow());
        }
        for (name, source) in &self.sources {
            metrics.sources.entry(name.clone()).or_default().add(&source.borrow());
        }
        for (name, sink) in &self.sinks {
            metrics.sinks.insert(name.clone(), *sink.borrow());
        }
        for (name, statistics) in store.statistics() {
            metrics.states.insert(name.to_string(), statistics);
        }
        for (name, plan) in store.plan_reports() {
            metrics.plans.insert(name.to_string(), vec![plan]);
        }
        metrics.read_wait_ns = self.read_wait.as_nanos() as u64;
        metrics
    }
}
