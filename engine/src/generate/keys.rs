//! Which key a record has: how popular the keys are, how they are numbered, how long they live.
//!
//! A draw gives an *index* of `0..count` first: by the distribution, hot ones low. It may then be
//! shuffled, so that hot keys do not lie side by side in a store's files, and at last becomes the
//! *key*, which also tells the lives of one index apart. All streams of a trace shuffle alike, so
//! that streams with as many keys share them.

use super::error::{GenerateError, Place};
use super::exact_math::{exp_m1, ln};
use super::random::Random;
use super::workload;
use super::zipf::Zipf;
use serde::{Deserialize, Serialize};

/// Most keys of a stream.
pub const MAX_KEYS: u64 = 1 << 52;
/// Most keys of [`KeyDistribution::ZipfOctaves`], whose formula uses half a random number.
const MAX_OCTAVE_KEYS: u64 = u32::MAX as u64;

/// How often each key comes.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum KeyDistribution {
    /// All equally often.
    #[default]
    Uniform,
    /// The key of rank r (index r - 1) in proportion to r^-exponent.
    Zipf {
        /// The exponent: 0.01 to 20. The larger, the more skewed; 1 is Zipf's law.
        exponent: f64,
    },
    /// A staircase under Zipf's law: see [`workload::zipf_index`].
    ZipfOctaves,
    /// The first `hot_keys` indices take a share of all records, evenly; the others share the rest.
    HotSet {
        /// Number of hot keys, less than all.
        hot_keys: u64,
        /// Share of the records that are theirs.
        hot_share: f64,
    },
    /// 0, 1, 2, … and round again.
    Sequential,
    /// A hot set that moves on as event time passes, and round again.
    MovingHotSet {
        /// Number of hot keys, less than all.
        hot_keys: u64,
        /// Share of the records that are theirs.
        hot_share: f64,
        /// Event time between two moves, in microseconds.
        move_every_us: u64,
        /// Number of keys that it moves by.
        move_by: u64,
    },
    /// Index i in proportion to e^(-i / mean_index).
    Exponential {
        /// The mean index, before what lies beyond the last key is cut off.
        mean_index: f64,
    },
}

/// How indices are numbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum KeyOrder {
    /// The key is the index: hot keys are neighbours.
    #[default]
    Ranked,
    /// A permutation of `0..count` that the seed decides.
    Shuffled,
    /// Spread over all of `u64`, one to one: [`workload::index_key`].
    Hashed,
}

/// Periods in which a key takes part and periods in which it does not, in turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActivePeriods {
    /// Length of an active and an inactive period together, in microseconds.
    pub period_us: u64,
    /// Share of it that is active, above 0. Each key begins at its own point of the period.
    pub active_share: f64,
}

/// Keys that fall silent for good, like sensors that break.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoppingKeys {
    /// How many: less than all. They lie evenly spread among the indices.
    pub keys: u64,
    /// Event time, from the start of the trace, before which none stops, in microseconds.
    pub from_us: u64,
    /// Event time, from the start of the trace, by which all have stopped, in microseconds.
    pub until_us: u64,
}

/// The keys of a stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KeySpec {
    /// How many keys there are at any time.
    pub count: u64,
    /// How often each comes.
    pub distribution: KeyDistribution,
    /// How they are numbered.
    pub order: KeyOrder,
    /// How long a key lives, in microseconds of event time: after that a new key (its number
    /// `count` higher) takes its place. 0: for ever. Each begins at its own point of its life.
    pub lifetime_us: u64,
    /// When a key takes part; a draw of an inactive key makes no record, so that the stream's rate
    /// is the less by the inactive share.
    pub active: Option<ActivePeriods>,
    /// Keys that stop; a draw of one makes no record.
    pub stopping: Option<StoppingKeys>,
}

impl Default for KeySpec {
    fn default() -> Self {
        Self {
            count: 1_000,
            distribution: KeyDistribution::Uniform,
            order: KeyOrder::Ranked,
            lifetime_us: 0,
            active: None,
            stopping: None,
        }
    }
}

impl KeySpec {
    pub(super) fn validate(&self, place: Place<'_>) -> Result<(), GenerateError> {
        place.field("count").require((1..=MAX_KEYS).contains(&self.count), || {
            format!("{} is not between 1 and 2^52", self.count)
        })?;
        self.validate_distribution(place.field("distribution"))?;
        if let Some(active) = &self.active {
            let place = place.field("active");
            place.field("period_us").require((1..=1 << 53).contains(&active.period_us), || {
                format!("{} us is not between 1 and 2^53", active.period_us)
            })?;
            place.field("active_share").require_within(active.active_share, 1e-3, 1.0)?;
        }
        if let Some(stopping) = &self.stopping {
            let place = place.field("stopping");
            place.field("keys").require(stopping.keys < self.count, || {
                format!("{} of {} keys: at least one must go on", stopping.keys, self.count)
            })?;
            place.field("until_us").require(stopping.from_us <= stopping.until_us, || {
                format!("{} is before from_us", stopping.until_us)
            })?;
        }
        Ok(())
    }

    fn validate_distribution(&self, place: Place<'_>) -> Result<(), GenerateError> {
        match &self.distribution {
            KeyDistribution::Uniform | KeyDistribution::Sequential => Ok(()),
            KeyDistribution::Zipf { exponent } => {
                place.field("exponent").require_within(*exponent, 0.01, 20.0)
            }
            KeyDistribution::ZipfOctaves => place.require(self.count <= MAX_OCTAVE_KEYS, || {
                format!("{} keys: by octaves there can be {MAX_OCTAVE_KEYS}", self.count)
            }),
            KeyDistribution::HotSet { hot_keys, hot_share }
            | KeyDistribution::MovingHotSet { hot_keys, hot_share, .. } => {
                place.field("hot_keys").require((1..self.count).contains(hot_keys), || {
                    format!("{hot_keys} of {} keys: give at least 1, not all", self.count)
                })?;
                place.field("hot_share").require_share(*hot_share)?;
                match &self.distribution {
                    KeyDistribution::MovingHotSet { move_every_us, .. } => place
                        .field("move_every_us")
                        .require(*move_every_us > 0, || "give at least 1 us".to_owned()),
                    _ => Ok(()),
                }
            }
            KeyDistribution::Exponential { mean_index } => {
                place.field("mean_index").require_within(*mean_index, 1e-3, MAX_KEYS as f64)
            }
        }
    }
}

/// A key that was drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DrawnKey {
    /// Below the number of keys: tells the keys apart that live at one time.
    pub index: u64,
    /// As the record shows it.
    pub key: u64,
}

/// Draws from a [`KeySpec`].
#[derive(Debug, Clone)]
pub(super) struct KeySampler {
    count: u64,
    distribution: Sampler,
    shuffle: Option<Shuffle>,
    hashed: bool,
    /// Some feature beyond distribution and order is in use.
    timed: bool,
    lifetime: u64,
    active: Option<(u64, u64)>,
    stopping: Option<StoppingKeys>,
}

#[derive(Debug, Clone)]
enum Sampler {
    Uniform,
    Zipf(Zipf),
    ZipfOctaves,
    HotSet { hot: u64, share: f64 },
    Sequential { next: u64 },
    MovingHotSet { hot: u64, share: f64, every: u64, by: u64 },
    Exponential { mean: f64, kept: f64 },
}

/// What is hashed with an index for its point of a life, of a period, and for its stop.
const LIFE_SALT: u64 = 1 << 60;
const PERIOD_SALT: u64 = 2 << 60;
const STOP_SALT: u64 = 3 << 60;

impl KeySampler {
    /// `seed` is that of the trace: all its streams shuffle alike.
    pub(super) fn new(spec: &KeySpec, seed: u64) -> Self {
        let distribution = match &spec.distribution {
            KeyDistribution::Uniform => Sampler::Uniform,
            KeyDistribution::Zipf { exponent } => Sampler::Zipf(Zipf::new(spec.count, *exponent)),
            KeyDistribution::ZipfOctaves => Sampler::ZipfOctaves,
            KeyDistribution::HotSet { hot_keys, hot_share } => {
                Sampler::HotSet { hot: *hot_keys, share: *hot_share }
            }
            KeyDistribution::Sequential => Sampler::Sequential { next: 0 },
            KeyDistribution::MovingHotSet { hot_keys, hot_share, move_every_us, move_by } => {
                Sampler::MovingHotSet {
                    hot: *hot_keys,
                    share: *hot_share,
                    every: *move_every_us,
                    by: move_by % spec.count,
                }
            }
            KeyDistribution::Exponential { mean_index } => {
                Sampler::Exponential { mean: *mean_index, kept: -exp_m1(-(spec.count as f64) / mean_index) }
            }
        };
        Self {
            count: spec.count,
            distribution,
            shuffle: (spec.order == KeyOrder::Shuffled).then(|| Shuffle::new(spec.count, seed)),
            hashed: spec.order == KeyOrder::Hashed,
            timed: spec.lifetime_us > 0 || spec.active.is_some() || spec.stopping.is_some(),
            lifetime: spec.lifetime_us,
            active: spec.active.as_ref().map(|active| {
                let share = active.period_us as f64 * active.active_share;
                (active.period_us, (share as u64).max(1))
            }),
            stopping: spec.stopping.clone().filter(|stopping| stopping.keys > 0),
        }
    }

    /// A key for a record `time_us` microseconds after the start of the trace. `None` if the key
    /// drawn does not take part at that time.
    #[inline]
    pub(super) fn draw(&mut self, time_us: i64, random: &mut Random) -> Option<DrawnKey> {
        // Streams start at or after the trace does, so the time is not negative.
        let time = time_us.max(0).unsigned_abs();
        let drawn = self.draw_index(time, random);
        if self.timed && !self.takes_part(drawn, time) {
            return None;
        }
        let index = match &self.shuffle {
            Some(shuffle) => shuffle.apply(drawn),
            None => drawn,
        };
        let mut key = index;
        if self.lifetime > 0 {
            let phase = workload::mix(index ^ LIFE_SALT) % self.lifetime;
            let lives = time.saturating_add(phase) / self.lifetime;
            key = index.wrapping_add(lives.wrapping_mul(self.count));
        }
        if self.hashed {
            key = workload::index_key(key);
        }
        Some(DrawnKey { index, key })
    }

    #[inline]
    fn draw_index(&mut self, time: u64, random: &mut Random) -> u64 {
        let count = self.count;
        match &mut self.distribution {
            Sampler::Uniform => random.below(count),
            Sampler::Zipf(zipf) => zipf.sample(random) - 1,
            Sampler::ZipfOctaves => workload::zipf_index(random.bits(), count),
            Sampler::HotSet { hot, share } => hot_or_not(*hot, *share, count, random),
            Sampler::Sequential { next } => {
                let index = *next;
                *next = if index + 1 == count { 0 } else { index + 1 };
                index
            }
            Sampler::MovingHotSet { hot, share, every, by } => {
                let first = (u128::from(time / *every) * u128::from(*by) % u128::from(count)) as u64;
                let index = first + hot_or_not(*hot, *share, count, random);
                if index >= count { index - count } else { index }
            }
            Sampler::Exponential { mean, kept } => {
                let index = -*mean * ln(1.0 - random.unit() * *kept);
                (index as u64).min(count - 1)
            }
        }
    }

    fn takes_part(&self, index: u64, time: u64) -> bool {
        if let Some((period, active)) = self.active {
            let phase = workload::mix(index ^ PERIOD_SALT) % period;
            if time.saturating_add(phase) % period >= active {
                return false;
            }
        }
        if let Some(stopping) = &self.stopping {
            // Every (count / keys)-th index, counted from the end, so that the hottest goes on.
            let distance = self.count / stopping.keys;
            let from_end = self.count - 1 - index;
            if from_end.is_multiple_of(distance) && from_end / distance < stopping.keys {
                let width = (stopping.until_us - stopping.from_us).saturating_add(1);
                let stop = stopping.from_us + workload::mix(index ^ STOP_SALT) % width;
                return time < stop;
            }
        }
        true
    }
}

/// One of the first `hot` of `count` indices with the given share, otherwise one of the others.
#[inline]
fn hot_or_not(hot: u64, share: f64, count: u64, random: &mut Random) -> u64 {
    if random.chance(share) { random.below(hot) } else { hot + random.below(count - hot) }
}

/// A permutation of `0..count` that needs no memory.
///
/// It permutes the numbers of as many bits as `count` needs (an odd factor and a xor with the
/// number's own upper half can both be undone), again and again until the result is below
/// `count`: "cycle walking" of J. Black, P. Rogaway, "Ciphers with arbitrary finite domains"
/// (2002). Less than half of the numbers lie beyond, so this takes fewer than two rounds on average.
#[derive(Debug, Clone)]
struct Shuffle {
    count: u64,
    mask: u64,
    shift: u32,
    factors: [u64; 2],
    offset: u64,
}

impl Shuffle {
    fn new(count: u64, seed: u64) -> Self {
        let bits = (u64::BITS - (count - 1).leading_zeros()).max(1);
        let word = |index: u64| workload::mix(seed ^ index.wrapping_mul(workload::GOLDEN_GAMMA));
        Self {
            count,
            mask: u64::MAX >> (u64::BITS - bits),
            shift: bits.div_ceil(2),
            factors: [word(1) | 1, word(2) | 1],
            offset: word(3),
        }
    }

    #[inline]
    fn apply(&self, index: u64) -> u64 {
        let mut x = index;
        loop {
            x = x.wrapping_add(self.offset) & self.mask;
            for factor in self.factors {
                x ^= x >> self.shift;
                x = x.wrapping_mul(factor) & self.mask;
            }
            x ^= x >> self.shift;
            if x < self.count {
                return x;
            }
        }
    }
}

#[cfg(test)]
#[path = "keys_tests.rs"]
mod tests;
