//! Each key distribution against its law, and the life of keys.

use super::super::random::Purpose;
use super::*;
use proptest::prelude::*;
use std::collections::HashSet;

const DRAWN: usize = 200_000;

fn spec(count: u64, distribution: KeyDistribution) -> KeySpec {
    KeySpec { count, distribution, ..KeySpec::default() }
}

/// Draws one key each microsecond.
fn draw(spec: &KeySpec) -> Vec<Option<DrawnKey>> {
    assert!(spec.validate(Place::top("keys")).is_ok());
    let mut sampler = KeySampler::new(spec, 42);
    let mut random = Random::new(42, 0, Purpose::Keys);
    (0..DRAWN).map(|time| sampler.draw(time as i64, &mut random)).collect()
}

fn counts(spec: &KeySpec) -> Vec<f64> {
    let mut counts = vec![0.0; spec.count as usize];
    for drawn in draw(spec).into_iter().flatten() {
        counts[drawn.key as usize] += 1.0;
    }
    counts
}

/// Each count must be within 5 standard deviations of what its share gives.
fn assert_counts(counts: &[f64], share: impl Fn(usize) -> f64) {
    for (index, &count) in counts.iter().enumerate() {
        let expected = share(index) * DRAWN as f64;
        assert!(
            (count - expected).abs() <= 5.0 * expected.sqrt() + 1.0,
            "index {index}: {count}, expected {expected}"
        );
    }
}

#[test]
fn uniform_keys_come_equally_often() {
    assert_counts(&counts(&spec(100, KeyDistribution::Uniform)), |_| 0.01);
}

#[test]
fn zipf_keys_follow_their_law() {
    let total: f64 = (1..=1_000).map(|rank| f64::from(rank).powf(-0.9)).sum();
    assert_counts(&counts(&spec(1_000, KeyDistribution::Zipf { exponent: 0.9 })), |index| {
        ((index + 1) as f64).powf(-0.9) / total
    });
}

#[test]
fn octaves_come_equally_often() {
    assert_counts(&counts(&spec(15, KeyDistribution::ZipfOctaves)), |index| {
        0.25 / f64::from(1u32 << (index + 1).ilog2())
    });
}

#[test]
fn hot_keys_take_their_share() {
    let distribution = KeyDistribution::HotSet { hot_keys: 10, hot_share: 0.8 };
    assert_counts(&counts(&spec(100, distribution)), |index| if index < 10 { 0.08 } else { 0.2 / 90.0 });
}

#[test]
fn sequential_keys_take_turns() {
    let drawn = draw(&spec(7, KeyDistribution::Sequential));
    for (index, drawn) in drawn.iter().enumerate() {
        assert_eq!(drawn.map(|drawn| drawn.key), Some(index as u64 % 7));
    }
}

#[test]
fn the_hot_set_moves_and_wraps_around() {
    let keys = spec(
        100,
        KeyDistribution::MovingHotSet { hot_keys: 10, hot_share: 1.0, move_every_us: 1_000, move_by: 5 },
    );
    for (time, drawn) in draw(&keys).into_iter().enumerate() {
        let first = time as u64 / 1_000 * 5 % 100;
        let from_first = (drawn.map_or(0, |drawn| drawn.key) + 100 - first) % 100;
        assert!(from_first < 10, "{time}: {drawn:?}");
    }
    assert_counts(&counts(&keys), |_| 0.01);
}

#[test]
fn exponential_keys_follow_their_law_up_to_the_last() {
    let distribution = KeyDistribution::Exponential { mean_index: 20.0 };
    let kept = 1.0 - (-50.0f64 / 20.0).exp();
    assert_counts(&counts(&spec(50, distribution)), |index| {
        let from = index as f64 / 20.0;
        ((-from).exp() - (-from - 0.05).exp()) / kept
    });
}

#[test]
fn a_lifetime_gives_each_key_its_length_and_a_successor() {
    let keys = KeySpec { lifetime_us: 10_000, ..spec(20, KeyDistribution::Sequential) };
    let mut lives = std::collections::BTreeMap::<u64, (usize, usize)>::new();
    for (time, drawn) in draw(&keys).into_iter().enumerate() {
        let key = drawn.expect("every key takes part").key;
        lives.entry(key).or_insert((time, time)).1 = time;
    }
    // 20 at a time, 20 lifetimes, and the first and last life of each cut short.
    assert!((400..=420).contains(&lives.len()), "{}", lives.len());
    for (key, (first, last)) in lives {
        assert!(last - first < 10_000, "{key}");
        if first > 10_000 && last < DRAWN - 10_000 {
            assert!(last - first >= 10_000 - 2 * 20, "{key}");
        }
    }
}

#[test]
fn keys_rest_for_their_share_of_the_period() {
    let keys = KeySpec {
        active: Some(ActivePeriods { period_us: 10_000, active_share: 0.3 }),
        ..spec(50, KeyDistribution::Sequential)
    };
    let drawn = draw(&keys);
    let share = drawn.iter().flatten().count() as f64 / DRAWN as f64;
    assert!((share - 0.3).abs() < 0.01, "{share}");
    let times: Vec<usize> =
        (0..DRAWN).filter(|&time| drawn[time].is_some_and(|drawn| drawn.key == 7)).collect();
    // Within a period a key comes every 50 us; between two there are 7,000 us of silence.
    for pair in times.windows(2) {
        let gap = pair[1] - pair[0];
        assert!(gap == 50 || (6_950..=7_050).contains(&gap), "{gap}");
    }
}

#[test]
fn stopping_keys_stop_in_their_time_and_the_others_go_on() {
    let keys = KeySpec {
        stopping: Some(StoppingKeys { keys: 3, from_us: 50_000, until_us: 100_000 }),
        ..spec(10, KeyDistribution::Sequential)
    };
    let mut last = [0; 10];
    for (time, drawn) in draw(&keys).into_iter().enumerate() {
        if let Some(drawn) = drawn {
            last[drawn.key as usize] = time;
        }
    }
    let stopped: Vec<usize> = (0..10).filter(|&key| last[key] < DRAWN - 10).collect();
    assert_eq!(stopped, [3, 6, 9]);
    for key in stopped {
        assert!((49_990..=100_000).contains(&last[key]), "{key}: {}", last[key]);
    }
}

#[test]
fn hashed_keys_are_those_of_the_workloads() {
    let keys = KeySpec { order: KeyOrder::Hashed, ..spec(5, KeyDistribution::Sequential) };
    let drawn = draw(&keys);
    assert_eq!(drawn[3].map(|drawn| drawn.key), Some(workload::index_key(3)));
    assert_eq!(drawn[3].map(|drawn| drawn.index), Some(3));
}

#[test]
fn a_shuffle_tears_neighbours_apart() {
    let shuffle = Shuffle::new(1_000_000, 42);
    let near =
        (0..999u64).filter(|&index| shuffle.apply(index).abs_diff(shuffle.apply(index + 1)) < 1_000).count();
    assert!(near < 20, "{near}");
}

proptest! {
    #[test]
    fn a_shuffle_is_a_permutation(count in 1u64..3_000, seed: u64) {
        let shuffle = Shuffle::new(count, seed);
        let images: HashSet<u64> = (0..count).map(|index| shuffle.apply(index)).collect();
        prop_assert_eq!(images.len() as u64, count);
        prop_assert!(images.iter().all(|&image| image < count));
    }

    #[test]
    fn a_shuffle_of_many_keys_stays_among_them(count in 1u64..=MAX_KEYS, index: u64, seed: u64) {
        prop_assert!(Shuffle::new(count, seed).apply(index % count) < count);
    }
}
