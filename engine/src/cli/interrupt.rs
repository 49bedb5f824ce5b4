//! Interrupts: the first one stops the job, the second one the process.

use crate::error::{Failure, JobError};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Reports an interrupt to the job, from now on until the process ends.
pub fn stop_on_signals(failure: Arc<Failure>) {
    let interrupted = note_signals();
    std::thread::spawn(move || {
        while !interrupted.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(50));
        }
        failure.report(JobError::Interrupted);
    });
}

/// A flag that the first interrupt sets, for work that looks at it now and then. The second one
/// ends the process.
pub fn note_signals() -> Arc<AtomicBool> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // The second signal finds the flag set and ends the process at once.
        let installed = flag::register_conditional_shutdown(signal, 130, Arc::clone(&interrupted))
            .and_then(|_| flag::register(signal, Arc::clone(&interrupted)));
        if let Err(error) = installed {
            log::warn!("signal {signal} cannot be caught: {error}");
        }
    }
    interrupted
}
