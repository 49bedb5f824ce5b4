//! Running a job: workers, their stores, and what came of it.

use crate::config::{JobConfig, StateBackend};
use crate::error::{Failure, JobError, panic_message};
use crate::ingest::trace::InputOptions;
use crate::job::{Job, Shared};
use crate::memory::MemorySplit;
use crate::metrics::{Live, Metrics, WorkerMetrics};
use crate::moment::Moment;
use crate::sink::OutputOptions;
use std::cell::{Cell, RefCell};
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidegate_state::directory::StateDirectory;
use tidegate_state::error::StateError;
use tidegate_state::io_uring;
use tidegate_state::memory::MemoryBackend;
use tidegate_state::readers::ReaderOptions;
use tidegate_state::rocks::{RocksBackend, RocksOptions};
use tidegate_state::store::Store;
use tidegate_state::table::CacheBudget;
use timely::dataflow::ProbeHandle;
use timely::worker::Worker;

/// A worker that has nothing to do looks for failures at least this often.
const LONGEST_NAP: Duration = Duration::from_millis(50);

/// What came of a job that ran to its end.
#[derive(Debug, Clone)]
pub struct Report {
    /// From the first worker's start to the last one's end, without the setting up of stores.
    pub elapsed: Duration,
    /// What all workers did together.
    pub metrics: Metrics,
}

/// A job that can be run: how its dataflow is built, and with what.
pub struct Runner {
    config: Arc<JobConfig>,
    input: Option<InputOptions>,
    output: OutputOptions,
    live: Arc<Live>,
    failure: Arc<Failure>,
    open_store: Option<Arc<OpenStore>>,
}

/// Opens the store of a worker, given its number and how many there are.
type OpenStore = dyn Fn(usize, usize) -> Result<Store, StateError> + Send + Sync;

impl Runner {
    /// A runner for one run.
    pub fn new(config: JobConfig, output: OutputOptions) -> Self {
        Runner {
            config: Arc::new(config),
            input: None,
            output,
            live: Arc::default(),
            failure: Arc::default(),
            open_store: None,
        }
    }

    /// Stores of another making than the configuration's, one for each worker: a backend of your
    /// own, or one that fails on purpose.
    pub fn with_stores(
        mut self,
        open: impl Fn(usize, usize) -> Result<Store, StateError> + Send + Sync + 'static,
    ) -> Self {
        self.open_store = Some(Arc::new(open));
        self
    }

    /// The traces that the job reads.
    pub fn with_input(mut self, input: InputOptions) -> Self {
        self.input = Some(input);
        self
    }

    /// What can be seen of the job while it runs.
    pub fn live(&self) -> Arc<Live> {
        Arc::clone(&self.live)
    }

    /// Where a failure, or the wish to stop, can be reported from outside.
    pub fn failure(&self) -> Arc<Failure> {
        Arc::clone(&self.failure)
    }

    /// Runs the job that `build` puts together, and waits for its end.
    ///
    /// `build` is called once on every worker and must do the same on each.
    ///
    /// # Errors
    /// The first [`JobError`] of any worker. All workers have stopped by then.
    pub fn run(self, build: impl Fn(&Job<'_>) + Send + Sync + 'static) -> Result<Report, JobError> {
        if self.config.workers == 0 {
            return Err(JobError::Option {
                option: "--workers",
                reason: "a job has at least one worker".into(),
            });
        }
        if self.config.backend == StateBackend::RocksDb && self.config.io_uring && !io_uring::is_available() {
            log::warn!(
                "this system refuses io_uring: batched reads of state are single reads on {} reader threads",
                self.config.reader_threads
            );
        }
        let directory = match (&self.open_store, self.config.backend) {
            (Some(_), _) | (None, StateBackend::Memory) => None,
            (None, StateBackend::RocksDb) => {
                Some(StateDirectory::claim(self.config.state_dir.as_deref(), &self.config.name)?)
            }
        };
        let path = directory.as_ref().map(|directory| directory.path().to_path_buf());
        let communication = match self.config.workers {
            1 => timely::CommunicationConfig::Thread,
            workers => timely::CommunicationConfig::Process(workers),
        };
        let config = timely::Config { communication, worker: timely::WorkerConfig::default() };
        let failure = Arc::clone(&self.failure);
        let started = Instant::now();
        let workers = timely::execute(config, move |worker| {
            let setting = Setting {
                config: Arc::clone(&self.config),
                input: self.input.clone(),
                output: self.output.clone(),
                live: Arc::clone(&self.live),
                failure: Arc::clone(&self.failure),
                open_store: self.open_store.clone(),
            };
            work(worker, setting, path.as_deref(), &build)
        })
        .map_err(JobError::Start)?;
        let mut metrics = Metrics::default();
        for outcome in workers.join() {
            match outcome {
                Ok(worker_metrics) => metrics.add(&worker_metrics),
                Err(message) => failure.report(JobError::Panic { worker: 0, message }),
            }
        }
        let elapsed = started.elapsed();
        drop(directory);
        match failure.take() {
            Some(error) => Err(error),
            None => Ok(Report { elapsed, metrics }),
        }
    }
}

/// What a worker needs to know.
struct Setting {
    config: Arc<JobConfig>,
    input: Option<InputOptions>,
    output: OutputOptions,
    live: Arc<Live>,
    failure: Arc<Failure>,
    open_store: Option<Arc<OpenStore>>,
}

/// One worker, from its store to its report. A panic in the job's own code is a failure of the
/// job, so that the other workers stop as well.
fn work(
    worker: &mut Worker,
    setting: Setting,
    directory: Option<&Path>,
    build: &(impl Fn(&Job<'_>) + Send + Sync),
) -> Metrics {
    let failure = Arc::clone(&setting.failure);
    let index = worker.index();
    let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| {
        let store = match &setting.open_store {
            Some(open) => open(worker.index(), worker.peers()),
            None => open_store(&setting.config, directory, worker.index(), worker.peers()),
        };
        match store {
            Ok(store) => work_on(worker, setting, Rc::new(store), build),
            Err(error) => {
                setting.failure.report(error.into());
                Metrics::default()
            }
        }
    }));
    outcome.unwrap_or_else(|panic| {
        failure.report(JobError::Panic { worker: index, message: panic_message(&*panic) });
        // A dataflow that panicked midway must not be stepped again.
        let dropped = std::panic::catch_unwind(AssertUnwindSafe(|| drop_dataflows(worker)));
        if dropped.is_err() {
            log::error!("worker {index}: the dataflow could not be taken down cleanly");
        }
        Metrics::default()
    })
}

fn work_on(
    worker: &mut Worker,
    setting: Setting,
    store: Rc<Store>,
    build: &(impl Fn(&Job<'_>) + Send + Sync),
) -> Metrics {
    let failure = Arc::clone(&setting.failure);
    let shared = Rc::new(Shared {
        config: setting.config,
        store: Rc::clone(&store),
        failure: setting.failure,
        live: setting.live,
        input: setting.input,
        output: setting.output,
        metrics: RefCell::new(WorkerMetrics::default()),
        worked_off: ProbeHandle::new(),
        sunk: ProbeHandle::new(),
        keyed_operators: Cell::new(0),
        waiting: Cell::new(0),
        turns: Cell::new(0),
        partitions: Cell::new(0),
    });
    worker.dataflow::<Moment, _, _>(|scope| {
        let job = Job::new(scope, Rc::clone(&shared));
        build(&job);
        job.write_late_rows();
    });
    while !failure.happened() && step(worker, &shared) {}
    if failure.happened() {
        drop_dataflows(worker);
    }
    shared.metrics.borrow().report(&store)
}

/// One step of the dataflow, or a nap until there is something to do; false when all is done.
/// Time in which nothing was done but to wait for reads is noted.
fn step(worker: &mut Worker, shared: &Shared) -> bool {
    if shared.waiting.get() == 0 {
        return worker.step_or_park(Some(LONGEST_NAP));
    }
    let (turns, started) = (shared.turns.get(), Instant::now());
    let goes_on = worker.step_or_park(Some(LONGEST_NAP));
    if shared.turns.get() == turns {
        shared.metrics.borrow_mut().read_wait += started.elapsed();
    }
    goes_on
}

fn drop_dataflows(worker: &mut Worker) {
    for dataflow in worker.installed_dataflows() {
        worker.drop_dataflow(dataflow);
    }
}

fn open_store(
    config: &JobConfig,
    directory: Option<&Path>,
    worker: usize,
    workers: usize,
) -> Result<Store, StateError> {
    let memory = MemorySplit::of(config);
    let store = match directory {
        None => Store::new(MemoryBackend::new(), config.groups),
        Some(directory) => {
            let options = RocksOptions {
                memory_bytes: memory.store_bytes / workers,
                direct_io: config.direct_io,
                io_uring: config.io_uring,
            };
            let path = directory.join(format!("worker-{worker:03}"));
            Store::new(RocksBackend::open(&path, &options)?, config.groups)
        }
    };
    let cache =
        CacheBudget::bytes(memory.cache_bytes / workers).with_working_bytes(memory.working_bytes / workers);
    let readers = ReaderOptions::new(config.reader_threads.div_ceil(workers), config.read_ahead);
    Ok(store.with_cache(cache).with_readers(readers))
}
