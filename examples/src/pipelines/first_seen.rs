//! The first record of each key in event time: how often, and when, something new turns up.

use tidegate::job::Job;
use tidegate::operators::event::Time;
use tidegate::operators::process::{Emitter, Process};
use tidegate::pipeline::Pipeline;
use tidegate::source::{KeyValue, Text};
use tidegate::state::error::StateError;
use tidegate::state::keyed::{States, ValueState};

/// The pipeline under its name.
pub const PIPELINE: Pipeline = Pipeline::new("first-seen", "the first record of each key", build);

fn build(job: &Job<'_>) {
    job.trace::<KeyValue<()>>()
        .map(|record| (record.key, ()))
        .process("first-seen", FirstSeen::open)
        .results
        .sink("new", &["key"]);
}

struct FirstSeen {
    seen: ValueState<Text, ()>,
}

impl FirstSeen {
    fn open(states: &mut States<Text>) -> Result<Self, StateError> {
        Ok(FirstSeen { seen: states.value("seen")? })
    }
}

impl Process for FirstSeen {
    type Key = Text;
    type Input = ();
    type Output = Text;

    fn declare(&self, _: &Text, (): &(), _: Time) {
        self.seen.declare();
    }

    fn process(&mut self, key: &Text, (): (), out: &mut Emitter<'_, Text>) -> Result<(), StateError> {
        if self.seen.get()?.is_none() {
            self.seen.set(())?;
            out.emit(key.clone());
        }
        Ok(())
    }
}
