//! Every small world of a running fold, one after the other: all scripts of records and frontier
//! steps up to a length, under every strategy and several chunk limits, against a model that
//! shares no code with the operator.

use std::collections::HashMap;
use std::rc::Rc;
use tidegate_operators::aggregate;
use tidegate_operators::event::{Event, Rank};
use tidegate_operators::fold::Fold;
use tidegate_operators::frontier::Frontier;
use tidegate_operators::keyed::{Keyed, Progress};
use tidegate_operators::policy::BatchPolicy;
use tidegate_state::backend::StateName;
use tidegate_state::group::KeyGroups;
use tidegate_state::memory::MemoryBackend;
use tidegate_state::store::Store;
use tidegate_state::strategy::ReadStrategy;
use tidegate_state::table::CacheBudget;

#[derive(Debug, Clone, Copy)]
enum Step {
    Record { time: i64, key: char },
    Frontier(i64),
}

/// What came out: time, key and value of each row, and the position of each late record.
type Outcome = (Vec<(i64, char, String)>, Vec<usize>);

/// The value of the record at a place of a script: a letter.
fn letter(place: usize) -> String {
    char::from(b'A' + place as u8).to_string()
}

/// What must come out, by the rules alone: late records are those below the frontier when they
/// come; the others are appended to their key's text in the order of (time, arrival).
fn model(script: &[Step]) -> Outcome {
    let mut frontier = i64::MIN;
    let (mut on_time, mut late) = (Vec::new(), Vec::new());
    for (place, step) in script.iter().enumerate() {
        match *step {
            Step::Frontier(to) => frontier = frontier.max(to),
            Step::Record { time, .. } if time < frontier => late.push(place),
            Step::Record { time, key } => on_time.push((time, place, key)),
        }
    }
    on_time.sort();
    let mut texts: HashMap<char, String> = HashMap::new();
    let rows = on_time.into_iter().map(|(time, place, key)| {
        let text = texts.entry(key).or_default();
        text.push_str(&letter(place));
        (time, key, text.clone())
    });
    (rows.collect(), late)
}

fn run(script: &[Step], strategy: ReadStrategy, keys_per_chunk: usize, cached_rows: usize) -> Outcome {
    let store = Store::new(MemoryBackend::new(), KeyGroups::default());
    let store = Rc::new(store.with_cache(CacheBudget::rows(cached_rows)));
    let name = StateName::new("fold", "text").unwrap();
    let fold = Fold::open(&store, &name, strategy, String::new, aggregate::append).unwrap();
    let mut keyed = Keyed::new(fold, store, strategy, BatchPolicy { keys_per_chunk });
    let mut frontier = i64::MIN;
    let (mut rows, mut late) = (Vec::new(), Vec::new());
    let mut advance = |keyed: &mut Keyed<_>, to: Frontier, held: i64| {
        let promised = keyed.earliest_result();
        let progress = keyed
            .advance(to, |events| {
                for Event { time, data: (key, text), .. } in events.drain(..) {
                    assert!(promised.is_some_and(|promised| promised <= time), "a result behind the promise");
                    assert!(time >= held && to.is_past(time), "a result outside of its epoch");
                    rows.push((time, key, text));
                }
            })
            .unwrap();
        assert_eq!(progress, Progress::Done, "there is nobody to wait for");
        assert!(keyed.earliest_result().is_none_or(|earliest| !to.is_past(earliest)));
    };
    for (place, step) in script.iter().enumerate() {
        match *step {
            Step::Frontier(to) => {
                advance(&mut keyed, Frontier::At(to.max(frontier)), frontier);
                frontier = frontier.max(to);
            }
            Step::Record { time, key } => {
                let rank = match time < frontier {
                    true => Rank::late_record(0, place as u64, frontier),
                    false => Rank::record(0, place as u64),
                };
                let refused = keyed.accept(Event { time, rank, data: (key, letter(place)) });
                late.extend(refused.map(|_| place));
            }
        }
    }
    advance(&mut keyed, Frontier::Ended, frontier);
    assert_eq!(keyed.stashed(), 0);
    assert_eq!(keyed.statistics().events_late, late.len() as u64);
    // Keys of one release come out chunk by chunk; rows are compared by time, key and text.
    rows.sort();
    (rows, late)
}

#[test]
fn all_scripts_of_five_steps() {
    let mut alphabet = Vec::new();
    for time in 0..3 {
        alphabet.extend(['a', 'b'].map(|key| Step::Record { time, key }));
        alphabet.push(Step::Frontier(time + 1));
    }
    let mut scripts = 0;
    for length in 0..=5u32 {
        for number in 0..alphabet.len().pow(length) {
            let script: Vec<Step> = (0..length)
                .map(|place| alphabet[number / alphabet.len().pow(place) % alphabet.len()])
                .collect();
            let (mut rows, late) = model(&script);
            rows.sort();
            let expected = (rows, late);
            for strategy in ReadStrategy::ALL {
                for (keys_per_chunk, cached_rows) in [(1, 0), (16, 0), (1, 1), (16, 1), (16, 10)] {
                    let outcome = run(&script, strategy, keys_per_chunk, cached_rows);
                    assert_eq!(
                        outcome, expected,
                        "{script:?} under {strategy}, {keys_per_chunk} keys a chunk, {cached_rows} rows cached"
                    );
                }
            }
            scripts += 1;
        }
    }
    assert_eq!(scripts, (9usize.pow(6) - 1) / 8);
}

#[test]
fn f03_older_work_first_also_when_it_was_set_aside() {
    let record = |time, key| Step::Record { time, key };
    let script = [
        record(7, 'k'),
        record(5, 'k'),
        record(6, 'k'),
        Step::Frontier(6),
        record(6, 'k'),
        Step::Frontier(8),
    ];
    for strategy in ReadStrategy::ALL {
        let (rows, late) = run(&script, strategy, 10, 0);
        let texts: Vec<_> = rows.iter().map(|(time, _, text)| (*time, text.as_str())).collect();
        // C is the letter of the third step, E of the fifth.
        assert_eq!(texts, [(5, "B"), (6, "BC"), (6, "BCE"), (7, "BCEA")]);
        assert!(late.is_empty());
    }
}
