//! Streams that are united, split, and given other times, against models that share no code with
//! them.

mod common;

use common::{Input, Record, in_memory, rows, run_collecting};
use proptest::prelude::*;
use std::collections::HashMap;
use tidegate::combine::Either;
use tidegate::error::JobError;
use tidegate::job::Job;
use tidegate::sink::Row;
use tidegate_operators::process::{Emitter, Process};
use tidegate_operators::state::error::StateError;
use tidegate_operators::state::keyed::{States, ValueState};
use tidegate_operators::window::{Count, Windows};

fn record() -> impl Strategy<Value = Record> {
    (-20i64..20, prop_oneof![Just("a"), Just("b"), Just("c")].prop_map(str::to_string), -9i64..10)
}

fn input() -> impl Strategy<Value = Input> {
    (
        proptest::collection::vec(proptest::collection::vec(record(), 0..20), 0..4),
        prop_oneof![Just(0i64), 1i64..40],
        1i64..8,
        1usize..9,
    )
        .prop_map(|(partitions, max_lag, epoch, chunk)| Input { partitions, max_lag, epoch, chunk })
}

fn append(text: &mut String, word: String) -> String {
    text.push_str(&word);
    text.clone()
}

/// Each record goes four ways, two of them through a union of their own, and all meet in one fold.
fn build_union(job: &Job<'_>, input: &Input) {
    let source = job.source("records", input.partitions_of(job.worker(), job.workers()));
    let named = |name: &'static str| move |(key, value): (String, i64)| (key, format!("{name}{value};"));
    let (even, odd) = source.clone().split(|(_, value)| value % 2 == 0);
    let inner = odd.map(named("o")).union([even.map(named("e"))]);
    let twice = source.clone().flat_map(move |pair| [named("x")(pair.clone()), named("y")(pair)]);
    inner
        .union([twice, source.map(named("s"))])
        .fold("texts", String::new, append)
        .sink("texts", &["key", "text"]);
}

fn model_of_union(input: &Input) -> Vec<Row> {
    let mut texts: HashMap<String, String> = HashMap::new();
    let mut all = Vec::new();
    for (time, _, _, key, value) in input.by_the_rules().0 {
        let side = if value % 2 == 0 { "e" } else { "o" };
        // The inner union's order counts first: its first way, the outer ones, its second way.
        let ways = if value % 2 == 0 { ["x", "y", "s", side] } else { [side, "x", "y", "s"] };
        for way in ways {
            let text = texts.entry(key.clone()).or_default();
            text.push_str(&format!("{way}{value};"));
            all.extend(rows("texts", [(time, format!("{key},{text}"))]));
        }
    }
    all.sort();
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_union_of_ways_of_one_record_is_ordered_the_same_on_all_workers(input in input()) {
        let expected = model_of_union(&input);
        for workers in [1, 2, 4] {
            let copy = input.clone();
            let (found, _) = run_collecting(in_memory(workers), move |job| build_union(job, &copy)).unwrap();
            prop_assert_eq!(&found, &expected, "{} workers", workers);
        }
    }

    #[test]
    fn other_times_count_for_windows_and_forgive_lateness(input in input(), by in 0i64..50) {
        // Every record is moved by as much; those that are late by less count again.
        let windows = Windows::tumbling(7).unwrap();
        let mut counts: HashMap<(i64, String), u64> = HashMap::new();
        let on_time = input.by_the_rules().0;
        let mut moved: Vec<(i64, String)> = on_time.iter().map(|(time, _, _, key, _)| (time + by, key.clone())).collect();
        for partition in &input.partitions {
            let mut largest = None;
            for (time, key, _) in partition {
                if let Some(largest) = largest {
                    let watermark = i64::div_euclid(largest - input.max_lag, input.epoch) * input.epoch;
                    let end = i64::div_euclid(time + by, 7) * 7 + 7;
                    if *time < watermark && (time + by >= watermark || end > watermark) {
                        moved.push((time + by, key.clone()));
                    }
                }
                largest = largest.max(Some(*time));
            }
        }
        for (time, key) in moved {
            *counts.entry((i64::div_euclid(time, 7) * 7, key)).or_default() += 1;
        }
        let expected =
            rows("counts", counts.into_iter().map(|((start, key), n)| (start + 6, format!("{start},{},{key},{n}", start + 7))));
        for workers in [1, 2] {
            let copy = input.clone();
            let (found, _) = run_collecting(in_memory(workers), move |job| {
                job.source("records", copy.partitions_of(job.worker(), job.workers()))
                    .assign_time(move |time, _| time + by)
                    .window("counts", windows, Count)
                    .sink("counts", &["start", "end", "key", "n"]);
            })
            .unwrap();
            prop_assert_eq!(&found, &expected, "{} workers", workers);
        }
    }
}

#[test]
fn a_time_before_the_records_own_ends_the_job() {
    let input = Input { partitions: vec![vec![(5, "a".to_string(), 1)]], max_lag: 0, epoch: 1, chunk: 1 };
    let outcome = run_collecting(in_memory(1), move |job| {
        let source = job.source("records", input.partitions_of(job.worker(), job.workers()));
        source.assign_time(|time, _| time - 1).sink("rows", &["key", "value"]);
    });
    let Err(JobError::Job(message)) = outcome else { panic!("the job goes on") };
    assert!(message.contains("gave 4 to an event of time 5"), "{message}");
}

/// Passes on what grows, and puts what does not on the side, with what it should have exceeded.
struct Growing {
    largest: ValueState<String, i64>,
}

impl Growing {
    fn open(states: &mut States<String>) -> Result<Self, StateError> {
        Ok(Growing { largest: states.value("largest")? })
    }
}

impl Process for Growing {
    type Key = String;
    type Input = i64;
    type Output = Either<(String, i64), (String, i64, i64)>;

    fn declare(&self, _: &String, _: &i64, _: i64) {
        self.largest.declare();
    }

    fn process(
        &mut self,
        key: &String,
        value: i64,
        out: &mut Emitter<'_, Self::Output>,
    ) -> Result<(), StateError> {
        match self.largest.get()? {
            Some(largest) if value <= largest => out.emit(Either::Right((key.clone(), value, largest))),
            _ => {
                self.largest.set(value)?;
                out.emit(Either::Left((key.clone(), value)));
            }
        }
        Ok(())
    }
}

#[test]
fn a_process_function_has_a_side_output_of_another_type() {
    let partition: Vec<Record> = [(1, "a", 3), (2, "a", 2), (2, "b", 1), (3, "a", 4), (4, "b", 1)]
        .map(|(t, k, v)| (t, k.to_string(), v))
        .to_vec();
    for workers in [1, 2, 4] {
        let input = Input { partitions: vec![partition.clone()], max_lag: 0, epoch: 1, chunk: 2 };
        let (found, _) = run_collecting(in_memory(workers), move |job| {
            let source = job.source("records", input.partitions_of(job.worker(), job.workers()));
            let (grown, rest) =
                source.process("growing", Growing::open).results.partition_map(|either| either);
            grown.sink("grown", &["key", "value"]);
            rest.sink("rest", &["key", "value", "largest"]);
        })
        .unwrap();
        let mut expected =
            rows("grown", [(1, "a,3"), (2, "b,1"), (3, "a,4")].map(|(t, text)| (t, text.to_string())));
        expected.extend(rows("rest", [(2, "a,2,3"), (4, "b,1,1")].map(|(t, text)| (t, text.to_string()))));
        expected.sort();
        assert_eq!(found, expected, "{workers} workers");
    }
}

#[test]
fn f07_united_inputs_of_different_rates_of_which_one_ends() {
    // One source ends at once, one has a record at every 100th time, one at every time.
    let ended = Input { partitions: vec![vec![(1, "a".to_string(), 1)]], max_lag: 0, epoch: 1, chunk: 1 };
    let every = |step: usize| Input {
        partitions: vec![(0..1000).step_by(step).map(|time| (time, "a".to_string(), 1)).collect()],
        max_lag: 0,
        epoch: 1,
        chunk: 7,
    };
    let (slow, fast) = (every(100), every(1));
    for workers in [1, 2, 4] {
        let inputs = [ended.clone(), slow.clone(), fast.clone()];
        let (found, _) = run_collecting(in_memory(workers), move |job| {
            let [ended, slow, fast] = [0, 1, 2].map(|number| {
                let name = ["ended", "slow", "fast"][number];
                job.source(name, inputs[number].partitions_of(job.worker(), job.workers()))
            });
            let windows = Windows::tumbling(100).unwrap();
            ended
                .union([slow, fast])
                .window("counts", windows, Count)
                .sink("counts", &["start", "end", "key", "n"]);
        })
        .unwrap();
        let expected = (0..10).map(|window| {
            let (start, n) = (window * 100, if window == 0 { 102 } else { 101 });
            (start + 99, format!("{start},{},a,{n}", start + 100))
        });
        assert_eq!(found, rows("counts", expected), "{workers} workers");
    }
}
