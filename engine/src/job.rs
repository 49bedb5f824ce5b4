//! A job under construction: the dataflow of one worker, and what its operators share.

use crate::config::JobConfig;
use crate::error::{Failure, JobError};
use crate::ingest::trace::InputOptions;
use crate::metrics::{Live, OperatorMetrics, SharedOperator, SharedSink, SharedSource, WorkerMetrics};
use crate::moment::Moment;
use crate::sink::OutputOptions;
use crate::stream::EventStream;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use tidegate_state::store::Store;
use timely::dataflow::{ProbeHandle, Scope};

/// What the operators of one worker share.
pub(crate) struct Shared {
    pub config: Arc<JobConfig>,
    pub store: Rc<Store>,
    pub failure: Arc<Failure>,
    pub live: Arc<Live>,
    pub input: Option<InputOptions>,
    pub output: OutputOptions,
    pub metrics: RefCell<WorkerMetrics>,
    /// Shows the frontier up to which all keyed operators have worked off their input.
    pub worked_off: ProbeHandle<Moment>,
    /// Shows the frontier of what reaches sinks.
    pub sunk: ProbeHandle<Moment>,
    /// Keyed operators of the job so far.
    pub keyed_operators: Cell<usize>,
    /// Keyed operators that wait for reads right now.
    pub waiting: Cell<usize>,
    /// Grows whenever something useful was done, to tell work from waiting.
    pub turns: Cell<u64>,
    /// Source partitions of the job so far, over all workers.
    pub partitions: Cell<u32>,
}

impl Shared {
    /// Notes that something useful was done.
    pub fn worked(&self) {
        self.turns.set(self.turns.get().wrapping_add(1));
    }
}

/// A job under construction.
///
/// A job is a function that is called once on every worker, with this: it names sources, chains
/// operators, and ends in sinks. It must do the same on every worker.
///
/// Mistakes in how a job is put together (two operators of one name, say) are collected; a job
/// that has any never starts, and says why.
#[derive(Clone)]
pub struct Job<'s> {
    pub(crate) scope: Scope<'s, Moment>,
    pub(crate) shared: Rc<Shared>,
    /// Late records of all keyed operators so far, as text.
    pub(crate) late_rows: Rc<RefCell<Vec<EventStream<'s, String>>>>,
}

impl<'s> Job<'s> {
    pub(crate) fn new(scope: Scope<'s, Moment>, shared: Rc<Shared>) -> Self {
        Job { scope, shared, late_rows: Rc::default() }
    }

    /// The job's configuration.
    pub fn config(&self) -> Arc<JobConfig> {
        Arc::clone(&self.shared.config)
    }

    /// Number of this worker.
    pub fn worker(&self) -> usize {
        self.scope.index()
    }

    /// Number of workers.
    pub fn workers(&self) -> usize {
        self.scope.peers()
    }

    /// Reports a mistake in how the job is put together.
    pub fn refuse(&self, reason: impl Into<String>) {
        self.shared.failure.report(JobError::Job(reason.into()));
    }

    pub(crate) fn store(&self) -> Rc<Store> {
        Rc::clone(&self.shared.store)
    }

    pub(crate) fn failure(&self) -> Arc<Failure> {
        Arc::clone(&self.shared.failure)
    }

    pub(crate) fn live(&self) -> Arc<Live> {
        Arc::clone(&self.shared.live)
    }

    pub(crate) fn operator_metrics(&self, name: &str) -> SharedOperator {
        self.shared.keyed_operators.set(self.shared.keyed_operators.get() + 1);
        let metrics = Rc::new(RefCell::new(OperatorMetrics::default()));
        self.shared.metrics.borrow_mut().operators.push((name.to_string(), Rc::clone(&metrics)));
        metrics
    }

    pub(crate) fn source_metrics(&self, name: &str) -> SharedSource {
        let metrics = SharedSource::default();
        self.shared.metrics.borrow_mut().sources.push((name.to_string(), Rc::clone(&metrics)));
        metrics
    }

    pub(crate) fn sink_metrics(&self, name: &str) -> SharedSink {
        if self.shared.metrics.borrow().sinks.iter().any(|(known, _)| known == name) {
            self.refuse(format!("two sinks are called {name:?}; give one of them another name"));
        }
        let metrics = SharedSink::default();
        self.shared.metrics.borrow_mut().sinks.push((name.to_string(), Rc::clone(&metrics)));
        metrics
    }

    /// Numbers the partitions of a source; gives the number of the first.
    pub(crate) fn number_partitions(&self, count: usize) -> u32 {
        let first = self.shared.partitions.get();
        // A job would need billions of files to overflow this.
        self.shared.partitions.set(first.saturating_add(count as u32));
        first
    }
}
