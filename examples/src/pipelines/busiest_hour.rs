//! The key with most records in the last hour, every 15 minutes: sliding windows, and a window of
//! all keys over their results.

use std::cmp::Reverse;
use tidegate::job::Job;
use tidegate::operators::event::Time;
use tidegate::operators::window::{Count, Max, Windows};
use tidegate::pipeline::Pipeline;
use tidegate::source::KeyValue;

/// The pipeline under its name.
pub const PIPELINE: Pipeline = Pipeline::new(
    "busiest-hour",
    "the key with most records in the last hour, every 15 minutes (of equal ones the first)",
    build,
);

const QUARTER_US: Time = 15 * 60 * 1_000_000;

fn build(job: &Job<'_>) {
    let (hours, quarters) =
        match (Windows::sliding(4 * QUARTER_US, QUARTER_US), Windows::tumbling(QUARTER_US)) {
            (Ok(hours), Ok(quarters)) => (hours, quarters),
            (Err(error), _) | (_, Err(error)) => return job.refuse(error.to_string()),
        };
    // Each quarter holds the results of one hour, the one that ends with it.
    job.trace::<KeyValue<()>>()
        .map(|record| (record.key, ()))
        .window("hours", hours, Count)
        .map(|(start, end, key, count)| ((), (count, Reverse(key), start, end)))
        .window("busiest", quarters, Max)
        .flat_map(|(_, _, (), busiest)| {
            busiest.map(|(count, Reverse(key), start, end)| (start, end, key, count))
        })
        .sink("busiest", &["start", "end", "key", "count"]);
}
