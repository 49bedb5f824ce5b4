//! Records and values of each key by the hour, in tumbling windows.

use tidegate::job::Job;
use tidegate::operators::event::Time;
use tidegate::operators::window::{Count, Sum, Windows};
use tidegate::pipeline::Pipeline;
use tidegate::source::KeyValue;

/// The pipeline under its name.
pub const PIPELINE: Pipeline =
    Pipeline::new("hourly-counts", "records of each key by the hour, and the sum of their values", build);

const HOUR_US: Time = 60 * 60 * 1_000_000;

fn build(job: &Job<'_>) {
    let hours = match Windows::tumbling(HOUR_US) {
        Ok(hours) => hours,
        Err(error) => return job.refuse(error.to_string()),
    };
    job.trace::<KeyValue<f64>>()
        .map(|record| (record.key, record.value))
        .window("hours", hours, (Count, Sum))
        .sink("hours", &["start", "end", "key", "count", "sum"]);
}
