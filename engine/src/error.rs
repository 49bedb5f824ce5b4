//! What ends a job before its input does.

use crate::source::SourceError;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use thiserror::Error;
use tidegate_state::error::StateError;

/// The reason why a job did not run to its end.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum JobError {
    /// Keyed state failed.
    #[error("operator {operator:?}: {source}")]
    State {
        /// The operator whose state it is.
        operator: String,
        /// What failed.
        source: Box<StateError>,
    },
    /// The stores could not be set up.
    #[error(transparent)]
    Store(Box<StateError>),
    /// An input could not be read.
    #[error(transparent)]
    Source(Box<SourceError>),
    /// Results could not be written.
    #[error("cannot write results to {}: {source}", path.display())]
    Sink {
        /// Where they were to go.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A result does not fit its sink.
    #[error("sink {sink:?}: {reason}")]
    Row {
        /// The sink's name.
        sink: String,
        /// What is wrong with the row.
        reason: String,
    },
    /// The job itself is put together wrongly.
    #[error("{0}")]
    Job(String),
    /// A configuration that no job can run with.
    #[error("option {option}: {reason}")]
    Option {
        /// The option's name on the command line.
        option: &'static str,
        /// What is wrong with it, and what to do.
        reason: String,
    },
    /// Code of the job, or of the engine, panicked.
    #[error("worker {worker} panicked: {message}")]
    Panic {
        /// The worker's number.
        worker: usize,
        /// What the panic said.
        message: String,
    },
    /// Timely could not start its workers.
    #[error("cannot start the workers: {0}")]
    Start(String),
    /// The user asked the job to stop.
    #[error("interrupted")]
    Interrupted,
}

// Boxed, as results are passed on far more often than errors are looked at.
impl From<StateError> for JobError {
    fn from(error: StateError) -> Self {
        JobError::Store(Box::new(error))
    }
}

impl From<SourceError> for JobError {
    fn from(error: SourceError) -> Self {
        JobError::Source(Box::new(error))
    }
}

/// The first failure of a job, seen by all workers of the process.
///
/// Operators cannot return errors to Timely. One that fails reports here and falls silent; every
/// worker looks here between steps, and stops.
#[derive(Debug, Default)]
pub struct Failure {
    failed: AtomicBool,
    first: Mutex<Option<JobError>>,
}

impl Failure {
    /// Reports a failure. The first one counts; those after it are its consequences, most often.
    pub fn report(&self, error: JobError) {
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        if first.is_none() {
            log::debug!("first failure: {error}");
            *first = Some(error);
        } else {
            log::debug!("after the first failure: {error}");
        }
        self.failed.store(true, Ordering::Release);
    }

    /// Whether the job has failed.
    #[inline]
    pub fn happened(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// The first failure, taken out.
    pub fn take(&self) -> Option<JobError> {
        self.first.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The text of a panic.
pub fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| text.to_string());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "(no message)".to_string())
}
