//! Generated traces as a user sees them: the same bytes for ever, the promised disorder, files that
//! can be read back, the bundled traces, and the workloads that peers are compared with.

// All of this is tests; what they call counts as the program to the lint.
#![allow(clippy::unwrap_used)]

#[path = "generate_traces/distributions.rs"]
mod distributions;
#[path = "generate_traces/files.rs"]
mod files;
#[path = "generate_traces/specifications.rs"]
mod specifications;
#[path = "generate_traces/workloads.rs"]
mod workloads;

use distributions::{distributions, lag, one, sessions};
use std::collections::{BTreeMap, HashMap};
use tidegate::generate::{
    DelayDistribution, GeneratedRecord, KeyDistribution, KeyOrder, KeySpec, LagDistribution, StoppingKeys,
    StreamSpec, TraceGenerator, TraceSpec, preset,
};

fn records(spec: &TraceSpec) -> Vec<GeneratedRecord> {
    TraceGenerator::new(spec).unwrap().collect()
}

/// The largest distance of a record behind the running maximum.
fn max_lag_us(records: &[GeneratedRecord]) -> i64 {
    let mut newest = i64::MIN;
    let mut max_lag = 0;
    for record in records {
        newest = newest.max(record.time);
        max_lag = max_lag.max(newest - record.time);
    }
    max_lag
}

#[test]
fn a_lag_changes_the_order_alone_and_keeps_its_bound() {
    for (name, mut spec) in distributions() {
        let late = records(&spec);
        let bound = spec.streams[0].lag.max_us() + spec.streams[0].resolution_us - 1;
        assert!(max_lag_us(&late) as u64 <= bound, "{name}");
        if bound > 1_000 {
            assert!(max_lag_us(&late) as u64 > bound / 10, "{name}");
        }
        for stream in &mut spec.streams {
            stream.lag = LagDistribution::default();
        }
        let on_time = records(&spec);
        assert_eq!(on_time.len() as u64, spec.records, "{name}");
        assert!(on_time.is_sorted_by_key(|record| record.time), "{name}");
        let sorted = |mut list: Vec<GeneratedRecord>| {
            list.sort_by_key(|r| (r.time, r.stream, r.key, r.value));
            list
        };
        assert!(sorted(late) == sorted(on_time), "{name}");
    }
}

#[test]
fn sessions_keep_their_gaps_and_lengths() {
    // So many keys that each session has its own.
    let spec = sessions(1_000_000);
    let mut times: BTreeMap<u64, Vec<i64>> = BTreeMap::new();
    for record in records(&spec) {
        times.entry(record.key).or_default().push(record.time);
    }
    let last = records(&spec).last().unwrap().time;
    let whole: Vec<&Vec<i64>> = times.values().filter(|t| t[0] < last - 1_500_000).collect();
    for times in &whole {
        let gaps = times.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(gaps.into_iter().all(|gap| (1_000..=30_000).contains(&gap)));
    }
    let mean = whole.iter().map(|t| t.len() as f64).sum::<f64>() / whole.len() as f64;
    assert!((mean - 5.0).abs() < 0.4, "{mean} over {}", whole.len());
    assert!(whole.iter().any(|times| times.len() > 15));
}

#[test]
fn partners_follow_their_events_with_the_same_key() {
    let mut spec = preset("payments").unwrap();
    for stream in &mut spec.streams {
        stream.lag = LagDistribution::default();
        stream.resolution_us = 1;
        stream.keys.count = 1_000_000;
        stream.keys.distribution = KeyDistribution::Sequential;
    }
    let mut orders = HashMap::new();
    let (mut partners, mut last) = (0.0, 0);
    for record in records(&spec) {
        last = record.time;
        if record.stream == 0 {
            assert_eq!(orders.insert(record.key, record.time), None);
        } else {
            let delay = record.time - orders[&record.key];
            assert!((0..=600_000_000).contains(&delay), "{delay}");
            partners += 1.0;
        }
    }
    let share = partners / orders.values().filter(|&&t| t < last - 60_000_000).count() as f64;
    assert!((share - 0.95).abs() < 0.03, "{share}");
}

#[test]
fn streams_that_share_keys_shuffle_them_alike() {
    let stream = |name: &str, offset_us| StreamSpec {
        name: name.to_owned(),
        offset_us,
        keys: KeySpec {
            distribution: KeyDistribution::HotSet { hot_keys: 1, hot_share: 1.0 },
            order: KeyOrder::Shuffled,
            ..KeySpec::default()
        },
        ..StreamSpec::default()
    };
    let spec = TraceSpec {
        records: 4_000,
        streams: vec![stream("a", 0), stream("b", 1_000_000)],
        ..TraceSpec::default()
    };
    let made = records(&spec);
    assert!(made.iter().all(|record| record.key == made[0].key));
    let first = made.iter().find(|record| record.stream == 1).unwrap();
    assert_eq!(first.time - spec.start_us, 1_000_000);
}

#[test]
fn at_the_limit_records_come_early_but_all_come() {
    for max_in_flight in [1, 10, 1_000] {
        let mut spec = lag(DelayDistribution::Uniform { min_us: 0, max_us: 1_000_000 });
        spec.max_in_flight = max_in_flight;
        let made = records(&spec);
        assert_eq!(made.len(), 20_000);
        assert!(max_lag_us(&made) <= 1_000_000);
        let mut spec = sessions(1_000_000);
        spec.max_in_flight = max_in_flight;
        assert_eq!(records(&spec).len(), 20_000);
    }
}

#[test]
fn a_trace_whose_keys_have_all_stopped_ends() {
    // Of two keys the one that is drawn stops after a second.
    let spec = one(|stream| {
        stream.keys = KeySpec {
            count: 2,
            distribution: KeyDistribution::HotSet { hot_keys: 1, hot_share: 0.0 },
            stopping: Some(StoppingKeys { keys: 1, from_us: 1_000_000, until_us: 1_000_000 }),
            ..KeySpec::default()
        };
    });
    assert_eq!(records(&spec).len(), 1_000);
}

#[test]
fn the_size_hint_holds_what_comes() {
    let mut generator = TraceGenerator::new(&lag(DelayDistribution::Fixed { us: 5_000 })).unwrap();
    for taken in 0..=20_000usize {
        let (low, high) = generator.size_hint();
        assert!(low <= 20_000 - taken && high == Some(20_000 - taken));
        assert_eq!(generator.next().is_some(), taken < 20_000);
    }
}
