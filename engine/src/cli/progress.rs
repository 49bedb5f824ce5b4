//! What a long run shows while it works.

use crate::metrics::Live;
use crate::sink::time_text::time_text;
use crate::source::TimeFormat;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tidegate_operators::event::Time;

const REFRESH: Duration = Duration::from_millis(200);
/// Where nobody looks at a screen, a line now and then has to do.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// A progress display on standard error, until it is dropped.
pub struct ProgressDisplay {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl ProgressDisplay {
    /// Starts to show how the job gets on with these traces.
    pub fn start(live: Arc<Live>, paths: &[PathBuf], time_format: TimeFormat) -> Self {
        let total_bytes = paths
            .iter()
            .map(|path| if path == Path::new("-") { None } else { Some(std::fs::metadata(path).ok()?.len()) })
            .sum::<Option<u64>>();
        Self::show(live, total_bytes, time_format)
    }

    /// Starts to show how work gets on that is no job: so many records, and bytes of a total.
    pub fn of_bytes(live: Arc<Live>, total_bytes: u64) -> Self {
        Self::show(live, Some(total_bytes), TimeFormat::Raw)
    }

    fn show(live: Arc<Live>, total_bytes: Option<u64>, time_format: TimeFormat) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || match std::io::stderr().is_terminal() {
            true => show_bar(&live, total_bytes, time_format, &stopped),
            false => show_lines(&live, time_format, &stopped),
        });
        ProgressDisplay { stop, thread: Some(thread) }
    }
}

impl Drop for ProgressDisplay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A display that failed is no reason for the job to fail.
            let _ = thread.join();
        }
    }
}

fn show_bar(live: &Live, total_bytes: Option<u64>, time_format: TimeFormat, stopped: &AtomicBool) {
    let bar = match total_bytes {
        Some(bytes) => ProgressBar::new(bytes),
        None => ProgressBar::no_length(),
    };
    let template = "{elapsed_precise} {wide_bar} {percent}% {msg}";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    let started = Instant::now();
    while !stopped.load(Ordering::Relaxed) {
        bar.set_position(live.input_bytes.load(Ordering::Relaxed));
        bar.set_message(describe(live, started.elapsed(), time_format));
        std::thread::park_timeout(REFRESH);
    }
    bar.finish_and_clear();
}

fn show_lines(live: &Live, time_format: TimeFormat, stopped: &AtomicBool) {
    let started = Instant::now();
    let mut next = LINE_EVERY;
    while !stopped.load(Ordering::Relaxed) {
        std::thread::park_timeout(REFRESH);
        if started.elapsed() >= next {
            eprintln!("{}", describe(live, started.elapsed(), time_format));
            next += LINE_EVERY;
        }
    }
}

fn describe(live: &Live, elapsed: Duration, time_format: TimeFormat) -> String {
    let records = live.records.load(Ordering::Relaxed);
    let rate = records as f64 / elapsed.as_secs_f64().max(1e-3);
    let (frontier, newest) = (live.frontier.load(Ordering::Relaxed), live.newest.load(Ordering::Relaxed));
    let mut text = format!("{records} records, {rate:.0}/s");
    if frontier > Time::MIN && newest > Time::MIN {
        text += &format!(", frontier {}", time_text(time_format, frontier));
        if time_format != TimeFormat::Raw {
            let lag = Duration::from_micros(newest.saturating_sub(frontier).max(0) as u64);
            text += &format!(", lag {lag:.1?}");
        }
    }
    text
}
