//! Windows with early results and updates, whole jobs against a model that goes through the records
//! one by one and shares no code with the engine.

mod common;

use common::{Input, Record, in_memory, rows, run_collecting};
use proptest::prelude::*;
use std::collections::BTreeMap;
use tidegate::config::{JobConfig, StateBackend};
use tidegate::job::Job;
use tidegate::sink::Row;
use tidegate_operators::policy::BatchPolicy;
use tidegate_operators::window::{Collect, Firing, UpdateKind, WindowUpdate, Windows};
use tidegate_state::strategy::ReadStrategy;

/// What is asked for, in numbers.
#[derive(Debug, Clone, Copy)]
struct Asked {
    size: i64,
    slide: i64,
    offset: i64,
    lateness: i64,
    /// Early results after so many records, or in each period.
    early: Option<Result<u64, i64>>,
    retractions: bool,
}

impl Asked {
    fn windows(self) -> Windows {
        let windows = Windows::sliding(self.size, self.slide).unwrap().with_offset(self.offset);
        windows.with_allowed_lateness(self.lateness).unwrap()
    }

    fn firing(self) -> Firing {
        let firing = match self.early {
            None => Firing::on_time(),
            Some(Ok(records)) => Firing::on_time().early_every(records).unwrap(),
            Some(Err(period)) => Firing::on_time().early_each(period).unwrap(),
        };
        if self.retractions { firing.with_retractions() } else { firing }
    }
}

fn build(job: &Job<'_>, input: &Input, asked: Asked) {
    let source = job.source("records", input.partitions_of(job.worker(), job.workers()));
    let updates = source.window_updates_with_late("windows", asked.windows(), Collect, asked.firing());
    updates.late.sink("late", &["key", "value"]);
    // An operator behind it sees the results in an order that is a property of the input as well.
    updates
        .results
        .clone()
        .map(|update| (update.start, text_of(&update)))
        .fold("behind", String::new, |all, text: String| {
            all.push_str(&text);
            all.push(';');
            all.len()
        })
        .sink("behind", &["start", "length"]);
    updates.results.map(|update| text_of(&update)).sink("rows", &["update"]);
}

fn text_of(update: &WindowUpdate<String, Vec<i64>>) -> String {
    let WindowUpdate { start, end, key, output, pane, index, kind } = update;
    let sign = if *kind == UpdateKind::Insert { '+' } else { '-' };
    format!("{sign} {start} {end} {key} [{}] {pane:?} {index}", list_of(output))
}

fn list_of(values: &[i64]) -> String {
    values.iter().map(i64::to_string).collect::<Vec<_>>().join(" ")
}

/// A record as the rules see it: when it counts, its place, its own time, and its value.
type Counted = (i64, usize, usize, i64, i64);

/// One key and window of the model.
fn model_of_window(asked: Asked, window: (i64, i64), key: &str, records: &[Counted]) -> Vec<(i64, String)> {
    let (start, end) = window;
    let mut all = Vec::new();
    let (mut values, mut shown) = (Vec::<(i64, i64)>::new(), None::<String>);
    let (mut since, mut before, mut index, mut on_time) = (0, None::<i64>, 0, false);
    let mut issue = |time: i64, pane: &str, values: &[(i64, i64)], since: &mut u64| {
        let mut sorted = values.to_vec();
        sorted.sort_by_key(|(time, _)| *time);
        let list: Vec<i64> = sorted.iter().map(|(_, value)| *value).collect();
        let text = format!("{start} {end} {key} [{}]", list_of(&list));
        if let (true, Some(shown)) = (asked.retractions, &shown) {
            all.push((time, format!("- {shown} {pane} {index}")));
        }
        all.push((time, format!("+ {text} {pane} {index}")));
        shown = Some(text);
        index += 1;
        *since = 0;
    };
    for &(counts, _, _, time, value) in records {
        let late = counts >= end;
        if late && !on_time {
            on_time = true;
            if !values.is_empty() {
                issue(end - 1, "OnTime", &values, &mut since);
            }
        }
        since += 1;
        values.push((time, value));
        let early = match asked.early {
            None => false,
            Some(Ok(every)) => since >= every,
            Some(Err(period)) => {
                before.is_none_or(|before| i64::div_euclid(before, period) < i64::div_euclid(counts, period))
            }
        };
        before = Some(counts);
        if late {
            issue(counts, "Late", &values, &mut since);
        } else if early {
            issue(counts, "Early", &values, &mut since);
        }
    }
    if !on_time {
        issue(end - 1, "OnTime", &values, &mut since);
    }
    all
}

/// Rows and late rows; what the operator behind makes of them is not among them.
fn model(input: &Input, asked: Asked) -> Vec<Row> {
    let mut windows: BTreeMap<(i64, String), Vec<Counted>> = BTreeMap::new();
    let mut all = Vec::new();
    for (partition, records) in input.partitions.iter().enumerate() {
        let mut largest = None;
        for (position, (time, key, value)) in records.iter().enumerate() {
            let watermark = largest
                .map(|largest: i64| i64::div_euclid(largest - input.max_lag, input.epoch) * input.epoch);
            let counts = watermark.map_or(*time, |watermark| watermark.max(*time));
            largest = largest.max(Some(*time));
            let starts: Vec<i64> = (time - asked.size + 1..=*time)
                .filter(|start| (start - asked.offset).rem_euclid(asked.slide) == 0)
                .collect();
            let is_open = |start: &&i64| *start + asked.size + asked.lateness > counts;
            if !starts.is_empty() && !starts.iter().any(|start| is_open(&start)) {
                all.extend(rows("late", [(*time, format!("{key},{value}"))]));
            }
            for start in starts.iter().filter(is_open) {
                let window = windows.entry((*start, key.clone())).or_default();
                window.push((counts, partition, position, *time, *value));
            }
        }
    }
    for ((start, key), mut records) in windows {
        records.sort();
        all.extend(rows("rows", model_of_window(asked, (start, start + asked.size), &key, &records)));
    }
    all.sort();
    all
}

fn input() -> impl Strategy<Value = Input> {
    let record = (-12i64..20, prop_oneof![Just("a"), Just("b")].prop_map(str::to_string), 0i64..100);
    (
        proptest::collection::vec(proptest::collection::vec(record, 0..16), 0..4),
        prop_oneof![Just(0i64), 1i64..6, Just(100)],
        1i64..6,
        1usize..9,
    )
        .prop_map(|(partitions, max_lag, epoch, chunk)| Input { partitions, max_lag, epoch, chunk })
}

fn asked() -> impl Strategy<Value = Asked> {
    let early = prop_oneof![
        Just(None),
        (1u64..4).prop_map(|records| Some(Ok(records))),
        (1i64..6).prop_map(|period| Some(Err(period)))
    ];
    let lateness = prop_oneof![Just(0i64), 1i64..8, Just(1000)];
    let slide = prop_oneof![Just(None), (1i64..8).prop_map(Some)];
    (1i64..9, slide, -3i64..4, lateness, early, any::<bool>()).prop_map(
        |(size, slide, offset, lateness, early, retractions)| {
            let slide = slide.unwrap_or(size);
            Asked { size, slide, offset, lateness, early, retractions }
        },
    )
}

fn config() -> impl Strategy<Value = JobConfig> {
    let cache = prop_oneof![Just(Some(0)), Just(Some(400)), Just(None)];
    let backend = prop_oneof![6 => Just(StateBackend::Memory), 1 => Just(StateBackend::RocksDb)];
    (prop_oneof![Just(1usize), Just(2), Just(4)], 0usize..ReadStrategy::ALL.len(), cache, backend, 1usize..5)
        .prop_map(|(workers, strategy, cache_bytes, backend, keys)| JobConfig {
            workers,
            strategy: ReadStrategy::ALL[strategy],
            cache_bytes,
            backend,
            batch: BatchPolicy { keys_per_chunk: keys },
            memory_bytes: 16 << 20,
            ..JobConfig::default()
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn updates_equal_the_model_whatever_the_strategy_and_the_workers(
        input in input(), asked in asked(), config in config(),
    ) {
        let expected = model(&input, asked);
        let copy = input.clone();
        let (found, report) = run_collecting(config, move |job| build(job, &copy, asked)).unwrap();
        let (behind, found): (Vec<_>, Vec<_>) = found.into_iter().partition(|row| row.sink == "behind");
        prop_assert_eq!(&found, &expected);
        prop_assert_eq!(behind.len(), expected.iter().filter(|row| row.sink == "rows").count());
        let late = expected.iter().filter(|row| row.sink == "late").count() as u64;
        prop_assert_eq!(report.metrics.all_releases().statistics.events_late, late);
        // The operator behind must see the same order everywhere: compare with one worker.
        let copy = input.clone();
        let (alone, _) = run_collecting(in_memory(1), move |job| build(job, &copy, asked)).unwrap();
        let alone: Vec<_> = alone.into_iter().filter(|row| row.sink == "behind").collect();
        prop_assert_eq!(behind, alone);
    }
}

#[test]
fn a_late_update_follows_the_result_on_time_also_in_one_step_of_the_frontier() {
    // All is read before the frontier moves: 1 and 3 count in [0,10) in time, 5 is late for it.
    let records: Vec<Record> =
        [(1, 10), (3, 30), (25, 0), (5, 50)].map(|(t, v)| (t, "k".to_string(), v)).to_vec();
    let input = Input { partitions: vec![records], max_lag: 0, epoch: 1, chunk: 100 };
    let asked = Asked { size: 10, slide: 10, offset: 0, lateness: 30, early: None, retractions: true };
    let (found, _) = run_collecting(in_memory(1), move |job| build(job, &input, asked)).unwrap();
    let found: Vec<_> = found.into_iter().filter(|row| row.sink == "rows").collect();
    let expected = [
        (9, "+ 0 10 k [10 30] OnTime 0"),
        (25, "- 0 10 k [10 30] Late 1"),
        (25, "+ 0 10 k [10 30 50] Late 1"),
        (29, "+ 20 30 k [0] OnTime 0"),
    ];
    assert_eq!(found, rows("rows", expected.map(|(time, text)| (time, text.to_string()))));
}
