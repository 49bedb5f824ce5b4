//! Visits: sessions of each key, which end after half an hour without a record.

use tidegate::job::Job;
use tidegate::operators::event::Time;
use tidegate::operators::window::{Count, Sessions};
use tidegate::pipeline::Pipeline;
use tidegate::source::KeyValue;

/// The pipeline under its name.
pub const PIPELINE: Pipeline =
    Pipeline::new("visits", "sessions of each key, which end after 30 minutes without a record", build);

const GAP_US: Time = 30 * 60 * 1_000_000;

fn build(job: &Job<'_>) {
    let visits = match Sessions::with_gap(GAP_US) {
        Ok(visits) => visits,
        Err(error) => return job.refuse(error.to_string()),
    };
    job.trace::<KeyValue<()>>()
        .map(|record| (record.key, ()))
        .session("visits", visits, Count)
        .sink("visits", &["first", "end", "key", "records"]);
}
