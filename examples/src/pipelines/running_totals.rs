//! Running count and sum of each key's values.

use tidegate::job::Job;
use tidegate::pipeline::Pipeline;
use tidegate::source::KeyValue;

/// The pipeline under its name.
pub const PIPELINE: Pipeline =
    Pipeline::new("running-totals", "running count and sum of each key's values", build);

fn build(job: &Job<'_>) {
    job.trace::<KeyValue<f64>>()
        .map(|record| (record.key, record.value))
        .fold(
            "totals",
            || (0u64, 0.0),
            |(count, sum), value| {
                *count += 1;
                *sum += value;
                (*count, *sum)
            },
        )
        .sink("totals", &["key", "count", "sum"]);
}
