//! The largest value of each key so far.

use tidegate::job::Job;
use tidegate::pipeline::Pipeline;
use tidegate::source::KeyValue;

/// The pipeline under its name.
pub const PIPELINE: Pipeline = Pipeline::new("running-top", "the largest value of each key so far", build);

fn build(job: &Job<'_>) {
    job.trace::<KeyValue<f64>>()
        .map(|record| (record.key, record.value))
        .max("top")
        .sink("top", &["key", "largest"]);
}
