//! Records of each key by day, and on how many days the key was seen.
//!
//! A map holds a count for each day; only the day of a record is read, whatever else the map
//! holds.

use tidegate::job::Job;
use tidegate::operators::event::Time;
use tidegate::operators::process::{Emitter, Process};
use tidegate::pipeline::Pipeline;
use tidegate::source::{KeyValue, Text};
use tidegate::state::error::StateError;
use tidegate::state::keyed::{MapState, States, ValueState};

/// The pipeline under its name.
pub const PIPELINE: Pipeline = Pipeline::new(
    "daily-counts",
    "running count of each key by UTC day, with the number of days it was seen on",
    build,
);

const DAY_US: Time = 24 * 60 * 60 * 1_000_000;

/// Key, day since 1970, the day's count so far, days seen so far.
type Row = (Text, i64, u64, u64);

fn build(job: &Job<'_>) {
    job.trace::<KeyValue<()>>()
        .map(|record| (record.key, ()))
        .process("daily-counts", DailyCounts::open)
        .results
        .sink("days", &["key", "day", "count", "days"]);
}

struct DailyCounts {
    counts: MapState<Text, i64, u64>,
    days: ValueState<Text, u64>,
}

impl DailyCounts {
    fn open(states: &mut States<Text>) -> Result<Self, StateError> {
        Ok(DailyCounts { counts: states.map("counts")?, days: states.value("days")? })
    }
}

impl Process for DailyCounts {
    type Key = Text;
    type Input = ();
    type Output = Row;

    fn declare(&self, _: &Text, (): &(), time: Time) {
        self.counts.declare(&time.div_euclid(DAY_US));
        self.days.declare();
    }

    fn process(&mut self, key: &Text, (): (), out: &mut Emitter<'_, Row>) -> Result<(), StateError> {
        let day = out.time().div_euclid(DAY_US);
        let count = self.counts.update(&day, |count| {
            let count = count.get_or_insert(0);
            *count += 1;
            *count
        })?;
        let days = self.days.update(|days| {
            let days = days.get_or_insert(0);
            *days += u64::from(count == 1);
            *days
        })?;
        out.emit((key.clone(), day, count, days));
        Ok(())
    }
}
