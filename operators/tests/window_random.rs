//! Windows against a model that goes by the rules alone and shares no code with the operator: what
//! comes out, when, and that nothing is left.

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::rc::Rc;
use tidegate_operators::event::{Event, Rank, Time};
use tidegate_operators::frontier::Frontier;
use tidegate_operators::keyed::{Keyed, Progress};
use tidegate_operators::policy::BatchPolicy;
use tidegate_operators::window::{Aggregate, WindowOperator, Windows};
use tidegate_state::backend::StateId;
use tidegate_state::group::KeyGroups;
use tidegate_state::memory::MemoryBackend;
use tidegate_state::rocks::{RocksBackend, RocksOptions};
use tidegate_state::store::Store;
use tidegate_state::strategy::ReadStrategy;
use tidegate_state::table::CacheBudget;

const PARTITIONS: usize = 2;

#[derive(Debug, Clone, Copy)]
enum Step {
    Record {
        partition: usize,
        time: Time,
        key: u8,
    },
    /// The partition's watermark rises by so much.
    Watermark {
        partition: usize,
        by: Time,
    },
}

#[derive(Debug, Clone, Copy)]
struct World {
    size: Time,
    slide: Time,
    offset: Time,
    lateness: Time,
}

impl World {
    fn windows(&self) -> Windows {
        let windows = Windows::sliding(self.size, self.slide).unwrap().with_offset(self.offset);
        windows.with_allowed_lateness(self.lateness).unwrap()
    }
}

/// Joins texts in the order in which it is given them, so that every other order shows.
struct Join;

impl Aggregate<String> for Join {
    type Accumulator = String;
    type Output = String;

    fn create(&self) -> String {
        String::new()
    }
    fn add(&self, text: &mut String, _: Time, value: String) {
        text.push_str(&value);
    }
    fn merge(&self, text: &mut String, later: &String) {
        text.push_str(later);
    }
    fn result(&self, text: &String) -> String {
        text.clone()
    }
}

type Row = (Time, Time, u8, String);

#[derive(Debug, Default, PartialEq)]
struct Outcome {
    rows: Vec<Row>,
    /// Places of records that came too late for every window.
    dropped: Vec<usize>,
}

/// Where watermarks begin.
const FIRST_WATERMARK: Time = -20;

fn text(place: usize) -> String {
    format!("{place};")
}

/// By the rules: a record counts in each of its windows that its own partition's watermark has
/// not closed. First come those in time, then the others, both in the order of time, partition
/// and place.
fn model(world: World, script: &[Step]) -> Outcome {
    type Member = (bool, Time, usize, usize);
    let mut watermarks = [FIRST_WATERMARK; PARTITIONS];
    let mut windows: BTreeMap<(Time, u8), Vec<Member>> = BTreeMap::new();
    let mut outcome = Outcome::default();
    for (place, step) in script.iter().enumerate() {
        match *step {
            Step::Watermark { partition, by } => watermarks[partition] += by,
            Step::Record { partition, time, key } => {
                let watermark = watermarks[partition];
                let late = time < watermark;
                let starts: Vec<Time> = (time - world.size + 1..=time)
                    .filter(|start| (start - world.offset).rem_euclid(world.slide) == 0)
                    .collect();
                let open =
                    starts.iter().filter(|&start| !late || start + world.size + world.lateness > watermark);
                let mut taken = false;
                for &start in open {
                    windows.entry((start, key)).or_default().push((late, time, partition, place));
                    taken = true;
                }
                if late && !taken && !starts.is_empty() {
                    outcome.dropped.push(place);
                }
            }
        }
    }
    for ((start, key), mut members) in windows {
        members.sort();
        let texts: String = members.iter().map(|&(_, _, _, place)| text(place)).collect();
        outcome.rows.push((start, start + world.size, key, texts));
    }
    outcome.rows.sort();
    outcome
}

/// How the operator is run; no answer may depend on it.
#[derive(Debug, Clone, Copy)]
struct Way {
    strategy: ReadStrategy,
    keys_per_chunk: usize,
    cached_rows: usize,
    /// The operator is called after so many steps.
    steps_at_once: usize,
}

fn run(world: World, script: &[Step], way: Way, store: Store) -> Outcome {
    let store = Rc::new(store.with_cache(CacheBudget::rows(way.cached_rows)));
    let operator = WindowOperator::open(&store, "window", way.strategy, world.windows(), Join).unwrap();
    let policy = BatchPolicy { keys_per_chunk: way.keys_per_chunk };
    let mut keyed = Keyed::new(operator, Rc::clone(&store), way.strategy, policy);
    let mut watermarks = [FIRST_WATERMARK; PARTITIONS];
    let mut outcome = Outcome::default();
    // The least time of a result that the operator may still have.
    let mut held = if world.lateness > 0 { Time::MIN } else { Time::MAX };
    for (place, step) in script.iter().enumerate() {
        let frontier = *watermarks.iter().min().unwrap();
        match *step {
            Step::Watermark { partition, by } => watermarks[partition] += by,
            Step::Record { partition, time, key } => {
                let rank = if time < watermarks[partition] {
                    Rank::late_record(partition as u32, place as u64, watermarks[partition])
                } else {
                    Rank::record(partition as u32, place as u64)
                };
                held = held.min(frontier);
                if keyed.accept(Event { time, rank, data: (key, text(place)) }).is_some() {
                    outcome.dropped.push(place);
                }
            }
        }
        if place % way.steps_at_once == 0 {
            let frontier = *watermarks.iter().min().unwrap();
            advance(&mut keyed, Frontier::At(frontier), world, &mut held, &mut outcome.rows);
        }
    }
    advance(&mut keyed, Frontier::Ended, world, &mut held, &mut outcome.rows);
    assert_eq!(keyed.earliest_result(), None, "an operator whose input has ended waits for nothing");
    assert_eq!(store.cache_budget().used_bytes(), 0, "rows are left in memory");
    for state in 0..2 {
        assert!(store.is_empty(StateId(state)).unwrap(), "rows are left in the store");
    }
    outcome.rows.sort();
    outcome
}

fn advance(
    keyed: &mut Keyed<WindowOperator<u8, String, Join>>,
    frontier: Frontier,
    world: World,
    held: &mut Time,
    rows: &mut Vec<Row>,
) {
    let progress = keyed.advance(frontier, |events| {
        for event in events.drain(..) {
            let (_, end, _, _) = event.data;
            assert_eq!(event.time, end - 1);
            assert!(event.time >= *held, "a result at {} behind the capability at {held}", event.time);
            assert!(frontier.is_past(end + world.lateness - 1), "a window's result before it is closed");
            rows.push(event.data);
        }
    });
    assert_eq!(progress.unwrap(), Progress::Done);
    *held = keyed.earliest_result().unwrap_or(Time::MAX);
}

fn ways() -> Vec<Way> {
    let mut ways = Vec::new();
    for strategy in ReadStrategy::ALL {
        for (keys_per_chunk, cached_rows, steps_at_once) in
            [(100, 0, 1), (2, 1, 3), (1, 10, 2), (100, 1000, 1000)]
        {
            ways.push(Way { strategy, keys_per_chunk, cached_rows, steps_at_once });
        }
    }
    ways
}

fn memory_store() -> Store {
    Store::new(MemoryBackend::new(), KeyGroups::default())
}

fn worlds() -> impl Strategy<Value = World> {
    (1i64..12, 1i64..12, -5i64..5, prop_oneof![Just(0i64), 1i64..12])
        .prop_map(|(size, slide, offset, lateness)| World { size, slide, offset, lateness })
}

fn steps() -> impl Strategy<Value = Step> {
    let partition = 0..PARTITIONS;
    prop_oneof![
        4 => (partition.clone(), -25i64..25, 0u8..3)
            .prop_map(|(partition, time, key)| Step::Record { partition, time, key }),
        1 => (partition, 0i64..12).prop_map(|(partition, by)| Step::Watermark { partition, by }),
    ]
}

proptest! {
    #[test]
    fn windows_equal_the_rules(world in worlds(), script in proptest::collection::vec(steps(), 0..60)) {
        let expected = model(world, &script);
        for way in ways() {
            prop_assert_eq!(&run(world, &script, way, memory_store()), &expected, "{:?}", way);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn windows_in_rocksdb_equal_the_rules(world in worlds(), script in proptest::collection::vec(steps(), 0..60)) {
        let expected = model(world, &script);
        for way in ways().into_iter().step_by(3) {
            let directory = tempfile::tempdir().unwrap();
            let options = RocksOptions { memory_bytes: 4 << 20, ..RocksOptions::default() };
            let backend = RocksBackend::open(directory.path(), &options).unwrap();
            let store = Store::new(backend, KeyGroups::default());
            prop_assert_eq!(&run(world, &script, way, store), &expected, "{:?}", way);
        }
    }
}

/// Every script of four steps over a few records and watermarks, with every kind of window.
#[test]
fn small_worlds_one_after_the_other() {
    let mut choices = Vec::new();
    for partition in 0..PARTITIONS {
        choices.extend([-1, 0, 2].map(|time| Step::Record { partition, time, key: 7 }));
        choices.push(Step::Watermark { partition, by: 21 });
    }
    let mut count = 0;
    for (size, slide) in [(2, 2), (3, 2), (2, 3), (3, 1)] {
        for lateness in [0, 1] {
            let world = World { size, slide, offset: 0, lateness };
            for number in 0..choices.len().pow(4) {
                let place = |digit: u32| choices[number / choices.len().pow(digit) % choices.len()];
                let script: Vec<Step> = (0..4).map(place).collect();
                let strategy = ReadStrategy::ALL[number % ReadStrategy::ALL.len()];
                let way = Way {
                    strategy,
                    keys_per_chunk: 1,
                    cached_rows: number % 3,
                    steps_at_once: 1 + number % 2,
                };
                let outcome = run(world, &script, way, memory_store());
                assert_eq!(outcome, model(world, &script), "{world:?}, {script:?}, {way:?}");
                count += 1;
            }
        }
    }
    assert_eq!(count, 8 * 4096);
}
