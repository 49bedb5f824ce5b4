//! Sessions against a model that goes by the rules alone and shares no code with the operator.

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::rc::Rc;
use tidegate_operators::event::{Event, Rank, Time};
use tidegate_operators::frontier::Frontier;
use tidegate_operators::keyed::{Keyed, Progress};
use tidegate_operators::policy::BatchPolicy;
use tidegate_operators::window::{Aggregate, SessionOperator, Sessions};
use tidegate_state::backend::StateId;
use tidegate_state::group::KeyGroups;
use tidegate_state::memory::MemoryBackend;
use tidegate_state::rocks::{RocksBackend, RocksOptions};
use tidegate_state::store::Store;
use tidegate_state::strategy::ReadStrategy;
use tidegate_state::table::CacheBudget;

const PARTITIONS: usize = 2;
const FIRST_WATERMARK: Time = -20;

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
    gap: Time,
    lateness: Time,
}

/// Joins texts in the order in which it is given them, so that every other order shows; and shows
/// where accumulators were merged.
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
        if !text.is_empty() {
            text.push('|');
        }
        text.push_str(later);
    }
    fn result(&self, text: &String) -> String {
        text.clone()
    }
}

/// First record, end, key, texts.
type Row = (Time, Time, u8, String);

#[derive(Debug, Default, PartialEq)]
struct Outcome {
    rows: Vec<Row>,
    dropped: Vec<usize>,
}

fn text(place: usize) -> String {
    format!("{place};")
}

#[derive(Debug, Clone, Copy)]
struct Record {
    time: Time,
    partition: usize,
    place: usize,
    /// The watermark that it missed.
    missed: Option<Time>,
}

impl World {
    /// Whether a record at this time is closed, by itself, for a watermark.
    fn is_closed(self, time: Time, watermark: Option<Time>) -> bool {
        watermark.is_some_and(|watermark| time + self.gap + self.lateness <= watermark)
    }

    fn belong_together(self, a: Record, b: Record) -> bool {
        let (earlier, later) = if a.time <= b.time { (a, b) } else { (b, a) };
        later.time - earlier.time < self.gap
            && (later.time == earlier.time || !self.is_closed(earlier.time, later.missed))
    }
}

/// By the rules: what belongs together, directly or through others, is a session.
fn model(world: World, script: &[Step]) -> Outcome {
    let mut watermarks = [FIRST_WATERMARK; PARTITIONS];
    let mut records: BTreeMap<u8, Vec<Record>> = BTreeMap::new();
    let mut outcome = Outcome::default();
    for (place, step) in script.iter().enumerate() {
        match *step {
            Step::Watermark { partition, by } => watermarks[partition] += by,
            Step::Record { partition, time, key } => {
                let missed = Some(watermarks[partition]).filter(|&watermark| time < watermark);
                match world.is_closed(time, missed) {
                    true => outcome.dropped.push(place),
                    false => records.entry(key).or_default().push(Record { time, partition, place, missed }),
                }
            }
        }
    }
    for (key, records) in records {
        let mut session_of: Vec<usize> = (0..records.len()).collect();
        for a in 0..records.len() {
            for b in 0..a {
                if world.belong_together(records[a], records[b]) {
                    let (from, to) = (session_of[a], session_of[b]);
                    session_of
                        .iter_mut()
                        .filter(|session| **session == from)
                        .for_each(|session| *session = to);
                }
            }
        }
        let mut sessions: BTreeMap<usize, Vec<Record>> = BTreeMap::new();
        for (record, session) in records.into_iter().zip(session_of) {
            sessions.entry(session).or_default().push(record);
        }
        for mut members in sessions.into_values() {
            members
                .sort_by_key(|record| (record.missed.is_some(), record.time, record.partition, record.place));
            let mut texts = String::new();
            let mut last_in_time = None;
            for record in &members {
                if record.missed.is_none() {
                    // Late records do not bring accumulators together before the end.
                    let apart = last_in_time.is_some_and(|last| record.time - last >= world.gap);
                    texts.push_str(if apart { "|" } else { "" });
                    last_in_time = Some(record.time);
                }
                texts.push_str(&text(record.place));
            }
            let first = members.iter().map(|record| record.time).min().unwrap();
            let last = members.iter().map(|record| record.time).max().unwrap();
            outcome.rows.push((first, last + world.gap, key, texts));
        }
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
    steps_at_once: usize,
}

fn run(world: World, script: &[Step], way: Way, store: Store) -> Outcome {
    let store = Rc::new(store.with_cache(CacheBudget::rows(way.cached_rows)));
    let sessions = Sessions::with_gap(world.gap).unwrap().with_allowed_lateness(world.lateness).unwrap();
    let operator = SessionOperator::open(&store, "session", way.strategy, sessions, Join).unwrap();
    let policy = BatchPolicy { keys_per_chunk: way.keys_per_chunk };
    let mut keyed = Keyed::new(operator, Rc::clone(&store), way.strategy, policy);
    let mut watermarks = [FIRST_WATERMARK; PARTITIONS];
    let mut outcome = Outcome::default();
    let mut held = if world.lateness > 0 { Time::MIN } else { Time::MAX };
    let frontier = |watermarks: &[Time]| Frontier::At(*watermarks.iter().min().unwrap());
    for (place, step) in script.iter().enumerate() {
        match *step {
            Step::Watermark { partition, by } => watermarks[partition] += by,
            Step::Record { partition, time, key } => {
                held = held.min(*watermarks.iter().min().unwrap());
                let rank = match time < watermarks[partition] {
                    true => Rank::late_record(partition as u32, place as u64, watermarks[partition]),
                    false => Rank::record(partition as u32, place as u64),
                };
                if keyed.accept(Event { time, rank, data: (key, text(place)) }).is_some() {
                    outcome.dropped.push(place);
                }
            }
        }
        if place % way.steps_at_once == 0 {
            advance(&mut keyed, frontier(&watermarks), world, &mut held, &mut outcome.rows);
        }
    }
    advance(&mut keyed, Frontier::Ended, world, &mut held, &mut outcome.rows);
    assert_eq!(keyed.earliest_result(), None, "an operator whose input has ended waits for nothing");
    keyed.flush().unwrap();
    for state in 0..2 {
        assert!(store.is_empty(StateId(state)).unwrap(), "rows are left in the store");
    }
    outcome.rows.sort();
    outcome
}

fn advance(
    keyed: &mut Keyed<SessionOperator<u8, String, Join>>,
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
            assert!(frontier.is_past(end + world.lateness - 1), "a session's result before it is closed");
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
    (1i64..10, prop_oneof![Just(0i64), 1i64..10]).prop_map(|(gap, lateness)| World { gap, lateness })
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
    fn sessions_equal_the_rules(world in worlds(), script in proptest::collection::vec(steps(), 0..60)) {
        let expected = model(world, &script);
        for way in ways() {
            prop_assert_eq!(&run(world, &script, way, memory_store()), &expected, "{:?}", way);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn sessions_in_rocksdb_equal_the_rules(world in worlds(), script in proptest::collection::vec(steps(), 0..60)) {
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

/// Every script of five steps over a few records and watermarks of one key.
#[test]
fn small_worlds_one_after_the_other() {
    let mut choices: Vec<Step> = [0, 2, 3, 5].map(|time| Step::Record { partition: 0, time, key: 7 }).into();
    choices.push(Step::Record { partition: 1, time: 1, key: 7 });
    choices.extend([(0, 24), (1, 24), (1, 3)].map(|(partition, by)| Step::Watermark { partition, by }));
    for (gap, lateness) in [(2, 0), (3, 0), (3, 1)] {
        let world = World { gap, lateness };
        for number in 0..choices.len().pow(5) {
            let place = |digit: u32| choices[number / choices.len().pow(digit) % choices.len()];
            let script: Vec<Step> = (0..5).map(place).collect();
            let strategy = ReadStrategy::ALL[number % ReadStrategy::ALL.len()];
            let way =
                Way { strategy, keys_per_chunk: 1, cached_rows: number % 3, steps_at_once: 1 + number % 2 };
            let outcome = run(world, &script, way, memory_store());
            assert_eq!(outcome, model(world, &script), "{world:?}, {script:?}, {way:?}");
        }
    }
}
