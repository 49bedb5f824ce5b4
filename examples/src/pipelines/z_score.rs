//! Values that are far from what their key had before.
//!
//! Each value is scored by how many standard deviations it lies from the mean of the key's
//! earlier values; those beyond three, once there were ten, are passed on.

use tidegate::job::Job;
use tidegate::operators::aggregate::Moments;
use tidegate::pipeline::Pipeline;
use tidegate::source::KeyValue;

/// The pipeline under its name.
pub const PIPELINE: Pipeline = Pipeline::new(
    "z-score",
    "values more than three standard deviations from their key's earlier ones",
    build,
);

const DEVIATIONS: f64 = 3.0;
const LEAST_VALUES: u64 = 10;

fn build(job: &Job<'_>) {
    job.trace::<KeyValue<f64>>()
        .map(|record| (record.key, record.value))
        .fold("moments", Moments::default, |moments, value: f64| {
            let score = moments.z_score(value).filter(|_| moments.count() >= LEAST_VALUES);
            moments.add(value);
            score.map(|score| (value, score))
        })
        .filter(|(_, scored)| scored.is_some_and(|(_, score)| score.abs() > DEVIATIONS))
        .sink("outliers", &["key", "value", "z_score"]);
}
