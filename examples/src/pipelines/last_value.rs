//! An upsert table: the last value of each key, and a row for each change.

use tidegate::job::Job;
use tidegate::pipeline::Pipeline;
use tidegate::source::{KeyValue, Text};

/// The pipeline under its name.
pub const PIPELINE: Pipeline = Pipeline::new(
    "last-value",
    "keeps the last value of each key; a row for each change, with the value before",
    build,
);

fn build(job: &Job<'_>) {
    job.trace::<KeyValue<Text>>()
        .map(|record| (record.key, record.value))
        .fold(
            "last",
            || None,
            |last: &mut Option<Text>, value| {
                let before = last.replace(value.clone());
                (before, value)
            },
        )
        .filter(|(_, (before, value))| before.as_ref() != Some(value))
        .sink("changes", &["key", "before", "value"]);
}
