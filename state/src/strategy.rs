//! How the reads of a release reach the store.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// How an operator's state reads are carried out. Every strategy gives the same answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReadStrategy {
    /// A get and a put for each record, as if there were no epochs: the baseline.
    PerRecord,
    /// One get for each distinct key of a release.
    Dedup,
    /// One sorted batched read for each chunk of a release.
    #[serde(rename = "multiget")]
    MultiGet,
    /// Gets or a batched read, whichever has been measured to cost less for such a release.
    #[default]
    Auto,
}

impl ReadStrategy {
    /// All strategies, the baseline first.
    pub const ALL: [ReadStrategy; 4] =
        [ReadStrategy::PerRecord, ReadStrategy::Dedup, ReadStrategy::MultiGet, ReadStrategy::Auto];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            ReadStrategy::PerRecord => "per-record",
            ReadStrategy::Dedup => "dedup",
            ReadStrategy::MultiGet => "multiget",
            ReadStrategy::Auto => "auto",
        }
    }
}

impl fmt::Display for ReadStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A word that names no strategy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown strategy {0:?}: it is one of per-record, dedup, multiget, auto")]
pub struct UnknownStrategy(String);

impl FromStr for ReadStrategy {
    type Err = UnknownStrategy;

    fn from_str(word: &str) -> Result<Self, UnknownStrategy> {
        let known = Self::ALL.into_iter().find(|strategy| strategy.name() == word);
        known.ok_or_else(|| UnknownStrategy(word.to_string()))
    }
}

/// The call that reads a set of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadCall {
    /// One get a key.
    Gets,
    /// One batched read.
    MultiGet,
}

/// Number of size classes: one for each power of two.
const CLASSES: usize = 33;
/// Below this many keys, one call after the other is what RocksDB does best (a batched read of
/// one key costs a fifth more than a get); it is where measuring starts from.
const FIRST_GUESS_KEYS: usize = 8;
/// After this many choices in a size class, the call that is not chosen is measured once more.
const REMEASURE_EVERY: u32 = 64;
/// Weight of a new measurement in the running mean.
const NEW_WEIGHT: f64 = 0.25;

#[derive(Debug, Clone, Copy, Default)]
struct SizeClass {
    choices: u32,
    gets_ns_per_key: Option<f64>,
    multi_get_ns_per_key: Option<f64>,
}

impl SizeClass {
    fn cheaper(&self, keys: usize) -> ReadCall {
        match (self.gets_ns_per_key, self.multi_get_ns_per_key) {
            (Some(gets), Some(multi_get)) if gets <= multi_get => ReadCall::Gets,
            (Some(_), Some(_)) => ReadCall::MultiGet,
            _ if keys < FIRST_GUESS_KEYS => ReadCall::Gets,
            _ => ReadCall::MultiGet,
        }
    }
}

/// Turns a strategy into calls, and for `auto` learns from what the calls took.
///
/// `auto` keeps a running mean of the time a key for both calls and for each size class (powers
/// of two), takes the cheaper one, and now and then measures the other one again, because caches
/// warm up and states grow. Answers never depend on the choice.
#[derive(Debug, Clone)]
pub struct ReadPlanner {
    strategy: ReadStrategy,
    classes: Box<[SizeClass; CLASSES]>,
    counts: [u64; 2],
}

impl ReadPlanner {
    /// A planner for one state under one strategy.
    pub fn new(strategy: ReadStrategy) -> Self {
        ReadPlanner { strategy, classes: Box::new([SizeClass::default(); CLASSES]), counts: [0; 2] }
    }

    /// The call for a read of `keys` keys.
    pub fn choose(&mut self, keys: usize) -> ReadCall {
        let call = match self.strategy {
            ReadStrategy::PerRecord | ReadStrategy::Dedup => ReadCall::Gets,
            ReadStrategy::MultiGet => ReadCall::MultiGet,
            ReadStrategy::Auto => self.choose_by_cost(keys),
        };
        self.counts[call as usize] += 1;
        call
    }

    fn choose_by_cost(&mut self, keys: usize) -> ReadCall {
        let class = &mut self.classes[size_class(keys)];
        let cheaper = class.cheaper(keys);
        class.choices += 1;
        // The second read of a class measures the other call, and so does every 64th after it.
        if class.choices % REMEASURE_EVERY == 2 {
            match cheaper {
                ReadCall::Gets => ReadCall::MultiGet,
                ReadCall::MultiGet => ReadCall::Gets,
            }
        } else {
            cheaper
        }
    }

    /// Notes what a read of `keys` keys took.
    pub fn measured(&mut self, call: ReadCall, keys: usize, took: Duration) {
        if self.strategy != ReadStrategy::Auto || keys == 0 {
            return;
        }
        let class = &mut self.classes[size_class(keys)];
        let mean = match call {
            ReadCall::Gets => &mut class.gets_ns_per_key,
            ReadCall::MultiGet => &mut class.multi_get_ns_per_key,
        };
        let new = took.as_nanos() as f64 / keys as f64;
        *mean = Some(mean.map_or(new, |old| old + NEW_WEIGHT * (new - old)));
    }

    /// How often each call was chosen: reads by gets, reads by batched read.
    pub fn chosen(&self) -> (u64, u64) {
        (self.counts[ReadCall::Gets as usize], self.counts[ReadCall::MultiGet as usize])
    }
}

fn size_class(keys: usize) -> usize {
    ((usize::BITS - keys.leading_zeros()) as usize).min(CLASSES - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_is_parsed() {
        for strategy in ReadStrategy::ALL {
            assert_eq!(strategy.name().parse::<ReadStrategy>().unwrap(), strategy);
            let name = serde::de::value::StrDeserializer::<serde::de::value::Error>::new(strategy.name());
            assert_eq!(ReadStrategy::deserialize(name).unwrap(), strategy);
        }
        assert!("multi".parse::<ReadStrategy>().unwrap_err().to_string().contains("multiget"));
    }

    #[test]
    fn fixed_strategies_do_what_they_are_called() {
        for keys in [1, 2, 100, 100_000] {
            assert_eq!(ReadPlanner::new(ReadStrategy::PerRecord).choose(keys), ReadCall::Gets);
            assert_eq!(ReadPlanner::new(ReadStrategy::Dedup).choose(keys), ReadCall::Gets);
            assert_eq!(ReadPlanner::new(ReadStrategy::MultiGet).choose(keys), ReadCall::MultiGet);
        }
    }

    /// Feeds a planner with calls that cost what `cost_ns` says, and counts its choices.
    fn run(rounds: usize, keys: usize, cost_ns: impl Fn(ReadCall) -> u64) -> (u64, u64) {
        let mut planner = ReadPlanner::new(ReadStrategy::Auto);
        for _ in 0..rounds {
            let call = planner.choose(keys);
            planner.measured(call, keys, Duration::from_nanos(cost_ns(call)));
        }
        planner.chosen()
    }

    #[test]
    fn auto_settles_on_the_cheaper_call() {
        let (gets, multi_gets) = run(1000, 4096, |call| if call == ReadCall::Gets { 100 } else { 30 });
        assert!(multi_gets >= 980 && gets >= 10, "{gets} {multi_gets}");
        let (gets, multi_gets) = run(1000, 4096, |call| if call == ReadCall::Gets { 30 } else { 100 });
        assert!(gets >= 980 && multi_gets >= 10, "{gets} {multi_gets}");
    }

    #[test]
    fn auto_changes_its_mind_when_costs_change() {
        let mut planner = ReadPlanner::new(ReadStrategy::Auto);
        let mut last = Vec::new();
        for round in 0..1000u64 {
            let call = planner.choose(500);
            let cheap = if round < 200 { ReadCall::Gets } else { ReadCall::MultiGet };
            planner.measured(call, 500, Duration::from_nanos(if call == cheap { 10 } else { 90 }));
            last.push(call);
        }
        let late = last[700..].iter().filter(|&&call| call == ReadCall::MultiGet).count();
        assert!(late > 290, "{late} of the last 300 are the cheaper call");
    }

    #[test]
    fn every_number_of_keys_has_a_class() {
        for keys in [0, 1, 2, 3, 4, 1 << 20, usize::MAX] {
            assert!(size_class(keys) < CLASSES);
        }
    }
}
