//! The median of each key's last nine values: a smooth line through noisy readings.

use tidegate::job::Job;
use tidegate::operators::event::Time;
use tidegate::operators::process::{Emitter, Process};
use tidegate::pipeline::Pipeline;
use tidegate::source::{KeyValue, Text};
use tidegate::state::error::StateError;
use tidegate::state::keyed::{ListState, States};

/// The pipeline under its name.
pub const PIPELINE: Pipeline =
    Pipeline::new("recent-median", "the median of each key's last nine values", build);

const VALUES: usize = 9;

fn build(job: &Job<'_>) {
    job.trace::<KeyValue<f64>>()
        .map(|record| (record.key, record.value))
        .process("recent-median", RecentMedian::open)
        .results
        .sink("medians", &["key", "median"]);
}

struct RecentMedian {
    recent: ListState<Text, f64>,
}

impl RecentMedian {
    fn open(states: &mut States<Text>) -> Result<Self, StateError> {
        Ok(RecentMedian { recent: states.list("recent")? })
    }
}

impl Process for RecentMedian {
    type Key = Text;
    type Input = f64;
    type Output = (Text, f64);

    fn declare(&self, _: &Text, _: &f64, _: Time) {
        self.recent.declare();
    }

    fn process(
        &mut self,
        key: &Text,
        value: f64,
        out: &mut Emitter<'_, (Text, f64)>,
    ) -> Result<(), StateError> {
        let median = self.recent.update(|recent| {
            recent.push(value);
            if recent.len() > VALUES {
                recent.remove(0);
            }
            let mut sorted = recent.clone();
            sorted.sort_by(f64::total_cmp);
            sorted[sorted.len() / 2]
        })?;
        out.emit((key.clone(), median));
        Ok(())
    }
}
