//! Which call carries out a read: fixed by the strategy, or learned from what calls cost.

use crate::strategy::ReadStrategy;
use serde::Serialize;
use std::time::Duration;

/// The call that reads a set of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ReadCall {
    /// One get a key.
    Gets,
    /// One batched read on the worker's own thread.
    MultiGet,
    /// Batched reads on several threads at once.
    Threads,
}

impl ReadCall {
    /// All calls, in the order of tables of them.
    pub const ALL: [ReadCall; 3] = [ReadCall::Gets, ReadCall::MultiGet, ReadCall::Threads];
}

/// Number of size classes: one for each power of two.
const CLASSES: usize = 33;
/// Below this many keys, one call after the other is what RocksDB does best; it is where measuring
/// starts from.
const FIRST_GUESS_KEYS: usize = 8;
/// How much of all time for reads may go into finding out whether another call is better.
const EXPLORED_SHARE: f64 = 0.02;
/// So many reads of a class lie between two looks at the same other call.
const LEAST_READS_BETWEEN: u64 = 16;
/// Another call takes over once it is cheaper by so much: less is noise.
const CLEARLY_CHEAPER: f64 = 0.95;
/// Weight of a new measurement in the running mean; more as long as there are few.
const NEW_WEIGHT: f64 = 1.0 / 16.0;
/// A measurement counts for so many times the running mean at most: a thread that was held up
/// says nothing about the call, and what really got dearer takes a few reads longer to show.
const MOST_OVER_MEAN: f64 = 2.0;
/// A class that has not measured a call looks so far for one that has.
const NEIGHBOURS: usize = 3;

#[derive(Debug, Clone, Copy, Default)]
struct SizeClass {
    reads: u64,
    /// The call that is taken, once there is one.
    taken: Option<ReadCall>,
    chosen: [u64; ReadCall::ALL.len()],
    ns_per_key: [Option<f64>; ReadCall::ALL.len()],
    looked_at: [u64; ReadCall::ALL.len()],
}

/// What is known of the reads of one size.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SizeReport {
    /// The least number of keys of this class.
    pub keys_from: u64,
    /// The largest number of keys of this class.
    pub keys_to: u64,
    /// The call that is taken now.
    pub taken: Option<ReadCall>,
    /// How often each call was taken: gets, multiget, threads.
    pub chosen: [u64; ReadCall::ALL.len()],
    /// What each call took, in nanoseconds a key, in the running mean.
    pub ns_per_key: [Option<f64>; ReadCall::ALL.len()],
}

/// What a state's planner has seen and chosen.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PlanReport {
    /// How often each call was taken: gets, multiget, threads.
    pub chosen: [u64; ReadCall::ALL.len()],
    /// Share of the time for reads that went into trying other calls, beyond what the better
    /// call would have taken.
    pub explored_share: f64,
    /// Each size of reads that occurred.
    pub sizes: Vec<SizeReport>,
}

/// Turns a strategy into calls, and for `auto` learns from what the calls took.
///
/// `auto` keeps a running mean of the time a key for each call and for each size class (powers
/// of two). It takes the cheapest call, and changes over when another one is clearly cheaper.
/// Now and then it tries the others again, because caches warm up and states grow; what that
/// costs beyond the better call stays within a small share of all time for reads, so a call that
/// is much worse is tried much more seldom. Answers never depend on the choice.
#[derive(Debug, Clone)]
pub struct ReadPlanner {
    strategy: ReadStrategy,
    batched: bool,
    /// The fewest keys that are worth other threads; none where there are no threads.
    for_threads: Option<usize>,
    classes: Box<[SizeClass; CLASSES]>,
    spent_ns: f64,
    explored_ns: f64,
}

impl ReadPlanner {
    /// A planner for one state under one strategy. `batched` says whether the store reads in
    /// batches, `for_threads` from how many keys on its reader threads are worth it, if it has
    /// any.
    pub fn new(strategy: ReadStrategy, batched: bool, for_threads: Option<usize>) -> Self {
        ReadPlanner {
            strategy,
            batched,
            for_threads,
            classes: Box::new([SizeClass::default(); CLASSES]),
            spent_ns: 0.0,
            explored_ns: 0.0,
        }
    }

    /// The call for a read of `keys` keys.
    pub fn choose(&mut self, keys: usize) -> ReadCall {
        let call = match self.strategy {
            // A batched read of one key is a get that costs a fifth more.
            _ if keys == 1 => ReadCall::Gets,
            ReadStrategy::PerRecord | ReadStrategy::Dedup => ReadCall::Gets,
            ReadStrategy::MultiGet => ReadCall::MultiGet,
            ReadStrategy::Threads if self.is_possible(ReadCall::Threads, keys) => ReadCall::Threads,
            ReadStrategy::Threads => ReadCall::MultiGet,
            ReadStrategy::Auto => self.choose_by_cost(keys),
        };
        self.classes[size_class(keys)].chosen[call as usize] += 1;
        call
    }

    fn is_possible(&self, call: ReadCall, keys: usize) -> bool {
        match call {
            ReadCall::Gets => true,
            ReadCall::MultiGet => self.batched,
            ReadCall::Threads => self.for_threads.is_some_and(|least| keys >= least),
        }
    }

    fn choose_by_cost(&mut self, keys: usize) -> ReadCall {
        let index = size_class(keys);
        let taken = self.cheapest(index, keys);
        let class = &mut self.classes[index];
        class.reads += 1;
        class.taken = Some(taken);
        let (reads, looked_at) = (class.reads, class.looked_at);
        let Some(best_ns) = class.ns_per_key[taken as usize] else { return taken };
        let budget = EXPLORED_SHARE * self.spent_ns - self.explored_ns;
        let others = ReadCall::ALL.into_iter().filter(|&call| {
            let since = reads - looked_at[call as usize];
            let excess_ns = match self.expected_ns(index, call) {
                Some(ns) if ns < best_ns * CLEARLY_CHEAPER => f64::NEG_INFINITY,
                Some(ns) => (ns - best_ns).max(0.0) * keys as f64,
                None => 0.0,
            };
            call != taken
                && self.is_possible(call, keys)
                && (since >= LEAST_READS_BETWEEN || looked_at[call as usize] == 0)
                && excess_ns <= budget
        });
        // Of calls that were never tried, the one that suits the size first.
        let unlikely =
            |call| if keys < FIRST_GUESS_KEYS { call as usize } else { ReadCall::ALL.len() - call as usize };
        match others.min_by_key(|&call| (looked_at[call as usize], unlikely(call))) {
            Some(other) => {
                self.classes[index].looked_at[other as usize] = reads;
                other
            }
            None => taken,
        }
    }

    /// The cheapest call of a class, or the one that is taken where no other is clearly better.
    fn cheapest(&self, index: usize, keys: usize) -> ReadCall {
        let class = &self.classes[index];
        let mut best = class.taken.unwrap_or_else(|| self.first_guess(index, keys));
        for call in ReadCall::ALL {
            if let (Some(best_ns), Some(ns)) =
                (class.ns_per_key[best as usize], class.ns_per_key[call as usize])
                && ns < best_ns * CLEARLY_CHEAPER
                && self.is_possible(call, keys)
            {
                best = call;
            }
        }
        best
    }

    /// What to begin with in a class: what is best in its neighbours, if that is known.
    fn first_guess(&self, index: usize, keys: usize) -> ReadCall {
        let possible = ReadCall::ALL.into_iter().filter(|&call| self.is_possible(call, keys));
        let known = possible.filter_map(|call| Some((self.expected_ns(index, call)?, call)));
        match known.min_by(|a, b| a.0.total_cmp(&b.0)) {
            Some((_, call)) => call,
            None if keys < FIRST_GUESS_KEYS || !self.batched => ReadCall::Gets,
            None => ReadCall::MultiGet,
        }
    }

    /// What a call takes a key, as far as this class or its neighbours know.
    fn expected_ns(&self, index: usize, call: ReadCall) -> Option<f64> {
        (0..=NEIGHBOURS).find_map(|distance| {
            let at = |index: usize| self.classes.get(index)?.ns_per_key[call as usize];
            index.checked_sub(distance).and_then(at).or_else(|| at(index + distance))
        })
    }

    /// Notes what a read of `keys` keys took.
    pub fn measured(&mut self, call: ReadCall, keys: usize, took: Duration) {
        if keys == 0 {
            return;
        }
        let took_ns = took.as_nanos() as f64;
        let class = &mut self.classes[size_class(keys)];
        self.spent_ns += took_ns;
        if let Some(taken) = class.taken
            && taken != call
            && let Some(best_ns) = class.ns_per_key[taken as usize]
        {
            self.explored_ns += (took_ns - best_ns * keys as f64).max(0.0);
        }
        let weight = NEW_WEIGHT.max(1.0 / class.chosen[call as usize].max(1) as f64);
        let mean = &mut class.ns_per_key[call as usize];
        let new = took_ns / keys as f64;
        *mean = Some(mean.map_or(new, |old| old + weight * (new.min(MOST_OVER_MEAN * old) - old)));
    }

    /// What was seen and chosen so far.
    pub fn report(&self) -> PlanReport {
        let mut chosen = [0; ReadCall::ALL.len()];
        let mut sizes = Vec::new();
        for (index, class) in self.classes.iter().enumerate() {
            if class.chosen.iter().sum::<u64>() == 0 {
                continue;
            }
            for (sum, number) in chosen.iter_mut().zip(class.chosen) {
                *sum += number;
            }
            sizes.push(SizeReport {
                keys_from: 1 << index.saturating_sub(1),
                keys_to: (1 << index) - 1,
                taken: class.taken,
                chosen: class.chosen,
                ns_per_key: class.ns_per_key,
            });
        }
        PlanReport { chosen, explored_share: self.explored_ns / self.spent_ns.max(1.0), sizes }
    }
}

fn size_class(keys: usize) -> usize {
    ((usize::BITS - keys.leading_zeros()) as usize).min(CLASSES - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_strategies_do_what_they_are_called() {
        let choose = |strategy, keys| ReadPlanner::new(strategy, true, Some(64)).choose(keys);
        for strategy in ReadStrategy::ALL {
            assert_eq!(choose(strategy, 1), ReadCall::Gets);
        }
        for keys in [2, 100, 100_000] {
            assert_eq!(choose(ReadStrategy::PerRecord, keys), ReadCall::Gets);
            assert_eq!(choose(ReadStrategy::Dedup, keys), ReadCall::Gets);
            assert_eq!(choose(ReadStrategy::MultiGet, keys), ReadCall::MultiGet);
        }
        assert_eq!(choose(ReadStrategy::Threads, 63), ReadCall::MultiGet);
        assert_eq!(choose(ReadStrategy::Threads, 1000), ReadCall::Threads);
        assert_eq!(ReadPlanner::new(ReadStrategy::Threads, true, None).choose(1000), ReadCall::MultiGet);
    }

    /// Feeds a planner with calls that cost what `cost_ns` says a key, and counts its choices.
    fn run(planner: &mut ReadPlanner, rounds: usize, keys: usize, cost_ns: [u64; 3]) -> [u64; 3] {
        let mut chosen = [0; 3];
        for _ in 0..rounds {
            let call = planner.choose(keys);
            chosen[call as usize] += 1;
            planner.measured(call, keys, Duration::from_nanos(cost_ns[call as usize] * keys as u64));
        }
        chosen
    }

    #[test]
    fn auto_settles_on_the_cheapest_call_and_pays_little_to_know() {
        for (keys, cheapest, cost_ns) in [
            (4096, 2, [100, 40, 30]),
            (4096, 1, [100, 30, 40]),
            (4096, 0, [3, 100, 100]),
            (1, 0, [100, 120, 1]),
            (16, 1, [100, 80, 1]),
        ] {
            let mut planner = ReadPlanner::new(ReadStrategy::Auto, true, Some(64));
            let chosen = run(&mut planner, 1000, keys, cost_ns);
            let cost: u64 = chosen.iter().zip(cost_ns).map(|(number, cost)| number * cost).sum();
            let best = 1000 * cost_ns[cheapest];
            // The first look at each call is outside of what may be spent on looking.
            let first_looks: u64 = cost_ns.iter().sum();
            assert!(cost <= best + best / 40 + first_looks, "{keys} keys, {cost_ns:?}: {chosen:?}");
            assert!(chosen[cheapest] >= 900);
        }
    }

    #[test]
    fn what_one_size_knows_the_next_one_uses() {
        let mut planner = ReadPlanner::new(ReadStrategy::Auto, true, Some(64));
        // Looks at gets have used up what may be spent.
        run(&mut planner, 50, 1024, [1000, 40, 10]);
        let chosen = run(&mut planner, 10, 4096, [1000, 40, 10]);
        assert!(chosen[2] >= 9, "{chosen:?}");
    }

    #[test]
    fn auto_changes_its_mind_when_costs_change() {
        let mut planner = ReadPlanner::new(ReadStrategy::Auto, true, Some(64));
        run(&mut planner, 200, 500, [10, 90, 90]);
        run(&mut planner, 2000, 500, [90, 90, 10]);
        let chosen = run(&mut planner, 300, 500, [90, 90, 10]);
        assert!(chosen[2] > 290, "{chosen:?}");
    }

    #[test]
    fn what_is_no_better_does_not_take_over() {
        let mut planner = ReadPlanner::new(ReadStrategy::Auto, true, None);
        run(&mut planner, 100, 500, [100, 97, 1]);
        let chosen = run(&mut planner, 100, 500, [97, 100, 1]);
        assert!(chosen[ReadCall::MultiGet as usize] > 90, "{chosen:?}");
    }

    #[test]
    fn a_store_without_batches_is_read_by_gets_or_threads() {
        let mut planner = ReadPlanner::new(ReadStrategy::Auto, false, Some(64));
        assert_eq!(run(&mut planner, 1000, 1000, [100, 1, 30])[1], 0);
        assert!(planner.report().chosen[2] > 900);
    }

    #[test]
    fn every_number_of_keys_has_a_class_and_the_report_names_it() {
        for keys in [0, 1, 2, 3, 4, 1 << 20, usize::MAX] {
            assert!(size_class(keys) < CLASSES);
        }
        let mut planner = ReadPlanner::new(ReadStrategy::MultiGet, true, Some(64));
        planner.choose(5);
        let report = planner.report();
        assert_eq!((report.sizes[0].keys_from, report.sizes[0].keys_to, report.chosen), (4, 7, [0, 1, 0]));
    }
}
