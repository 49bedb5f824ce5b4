//! What a record carries: a whole number, or a decimal one in units of its last digit.

use super::error::{GenerateError, Place};
use super::exact_math::exp;
use super::keys::KeySpec;
use super::quantiles::Quantiles;
use super::random::Random;
use super::workload;
use super::ziggurat::normal;
use serde::{Deserialize, Serialize};

/// Most keys that a random walk remembers the values of (8 bytes each).
pub const MAX_WALK_KEYS: u64 = 1 << 24;
/// Largest size of a value where it is computed in floating point.
const MAX_COMPUTED: f64 = 9_007_199_254_740_992.0;

/// The values of a stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum ValueDistribution {
    /// Always the same.
    Constant {
        /// The value.
        value: i64,
    },
    /// 0, 1, 2, … in the order of event time, over all keys.
    Sequence,
    /// Each of a range equally likely.
    Uniform {
        /// The least.
        min: i64,
        /// The largest (included).
        max: i64,
    },
    /// Normally distributed; what lies outside the range is taken for its end.
    Normal {
        /// The mean.
        mean: f64,
        /// The standard deviation.
        deviation: f64,
        /// The least.
        min: i64,
        /// The largest (included).
        max: i64,
    },
    /// Amounts of money, sizes: the logarithm is normally distributed. What lies outside the range
    /// is taken for its end.
    LogNormal {
        /// Half of all values lie below.
        median: f64,
        /// Standard deviation of the natural logarithm; 0.01 to 10.
        sigma: f64,
        /// The least.
        min: i64,
        /// The largest (included).
        max: i64,
    },
    /// Prices, temperatures: each key has a value that moves by up to `step` with each of its
    /// records, and turns back at the ends of the range. It begins anywhere in it.
    RandomWalk {
        /// The largest move, at most the width of the range.
        step: i64,
        /// The least.
        min: i64,
        /// The largest (included).
        max: i64,
    },
    /// As measured: points (share, value).
    Quantiles {
        /// The points.
        points: Quantiles,
    },
}

impl Default for ValueDistribution {
    fn default() -> Self {
        Self::Uniform { min: 0, max: 999 }
    }
}

impl ValueDistribution {
    /// Looks over the values of a stream whose keys are `keys`.
    pub(super) fn validate(&self, keys: &KeySpec, place: Place<'_>) -> Result<(), GenerateError> {
        let require_range =
            |min: i64, max: i64| place.require(min <= max, || format!("min {min} is more than max {max}"));
        match self {
            Self::Constant { .. } | Self::Sequence => Ok(()),
            Self::Uniform { min, max } => require_range(*min, *max),
            Self::Normal { mean, deviation, min, max } => {
                require_range(*min, *max)?;
                place.field("mean").require_within(*mean, -MAX_COMPUTED, MAX_COMPUTED)?;
                place.field("deviation").require_within(*deviation, 0.0, MAX_COMPUTED)
            }
            Self::LogNormal { median, sigma, min, max } => {
                require_range(*min, *max)?;
                place.field("median").require_within(*median, 1e-3, MAX_COMPUTED)?;
                place.field("sigma").require_within(*sigma, 0.01, 10.0)
            }
            Self::RandomWalk { step, min, max } => {
                require_range(*min, *max)?;
                place.require(min.checked_sub(1).is_some() && max.checked_sub(*min).is_some(), || {
                    format!("{min} to {max} is too wide a range")
                })?;
                place.field("step").require((0..=max.saturating_sub(*min)).contains(step), || {
                    format!("{step} is not between 0 and the width of the range")
                })?;
                place.require(keys.count <= MAX_WALK_KEYS, || {
                    format!(
                        "a random walk remembers a value for each key, and takes {MAX_WALK_KEYS} \
                         keys at most; there are {}",
                        keys.count
                    )
                })
            }
            Self::Quantiles { points } => points.validate(place.field("points")),
        }
    }
}

/// Draws from a [`ValueDistribution`].
#[derive(Debug, Clone)]
pub(super) enum ValueSampler {
    Constant(i64),
    Sequence(i64),
    Uniform { min: i64, max: i64 },
    Normal { mean: f64, deviation: f64, min: i64, max: i64 },
    LogNormal { median: f64, sigma: f64, min: i64, max: i64 },
    RandomWalk { step: i64, min: i64, max: i64, values: Vec<i64> },
    Quantiles(Quantiles),
}

impl ValueSampler {
    /// `keys` are those of the stream, or of the one that it follows.
    pub(super) fn new(values: &ValueDistribution, keys: &KeySpec, seed: u64) -> Self {
        match *values {
            ValueDistribution::Constant { value } => Self::Constant(value),
            ValueDistribution::Sequence => Self::Sequence(0),
            ValueDistribution::Uniform { min, max } => Self::Uniform { min, max },
            ValueDistribution::Normal { mean, deviation, min, max } => {
                Self::Normal { mean, deviation, min, max }
            }
            ValueDistribution::LogNormal { median, sigma, min, max } => {
                Self::LogNormal { median, sigma, min, max }
            }
            ValueDistribution::RandomWalk { step, min, max } => {
                let choices = max.abs_diff(min).saturating_add(1);
                Self::RandomWalk {
                    step,
                    min,
                    max,
                    values: (0..keys.count.min(MAX_WALK_KEYS))
                        .map(|index| {
                            let start = workload::mix(workload::mix(seed) ^ index) % choices;
                            min.saturating_add_unsigned(start)
                        })
                        .collect(),
                }
            }
            ValueDistribution::Quantiles { ref points } => Self::Quantiles(points.clone()),
        }
    }

    /// The value of the next record, whose key has this index.
    #[inline]
    pub(super) fn sample(&mut self, index: u64, random: &mut Random) -> i64 {
        match self {
            Self::Constant(value) => *value,
            Self::Sequence(next) => {
                let value = *next;
                *next = value.wrapping_add(1);
                value
            }
            Self::Uniform { min, max } => random.between(*min, *max),
            Self::Normal { mean, deviation, min, max } => {
                ((*mean + *deviation * normal(random)).round() as i64).clamp(*min, *max)
            }
            Self::LogNormal { median, sigma, min, max } => {
                ((*median * exp(*sigma * normal(random))).round() as i64).clamp(*min, *max)
            }
            Self::RandomWalk { step, min, max, values } => {
                // An index is below the number of keys, for each of which there is a value.
                let Some(value) = values.get_mut(index as usize) else {
                    return *min;
                };
                let by = random.between(-*step, *step);
                let mut next = value.saturating_add(by);
                if !(*min..=*max).contains(&next) {
                    // The step is at most the width, so a step the other way stays inside
                    // unless it crosses the other end.
                    next = value.saturating_sub(by).clamp(*min, *max);
                }
                *value = next;
                next
            }
            Self::Quantiles(points) => points.sample(random),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::random::Purpose;
    use super::*;

    fn draw(values: &ValueDistribution) -> Vec<i64> {
        let keys = KeySpec { count: 10, ..KeySpec::default() };
        assert!(values.validate(&keys, Place::top("values")).is_ok());
        let mut sampler = ValueSampler::new(values, &keys, 42);
        let mut random = Random::new(8, 0, Purpose::Values);
        (0..100_000).map(|i| sampler.sample(i % 10, &mut random)).collect()
    }

    fn share_below(drawn: &[i64], limit: i64) -> f64 {
        drawn.iter().filter(|&&value| value < limit).count() as f64 / drawn.len() as f64
    }

    #[test]
    fn normal_values_have_their_mean_and_deviation() {
        let drawn = draw(&ValueDistribution::Normal { mean: 500.0, deviation: 100.0, min: 300, max: 10_000 });
        assert!((share_below(&drawn, 500) - 0.5).abs() < 0.01);
        assert!((share_below(&drawn, 600) - 0.841).abs() < 0.01);
        assert_eq!(drawn.iter().min(), Some(&300));
    }

    #[test]
    fn log_normal_values_have_their_median_and_tail() {
        let drawn = draw(&ValueDistribution::LogNormal { median: 2_500.0, sigma: 1.0, min: 1, max: 200_000 });
        assert!((share_below(&drawn, 2_500) - 0.5).abs() < 0.01);
        assert!((share_below(&drawn, 6_796) - 0.841).abs() < 0.01);
        assert!(drawn.iter().any(|&value| value > 100_000));
    }

    #[test]
    fn a_walk_takes_small_steps_within_its_range() {
        let drawn = draw(&ValueDistribution::RandomWalk { step: 50, min: -1_000, max: 1_000 });
        for key in 0..10 {
            let walk: Vec<i64> = drawn.iter().skip(key).step_by(10).copied().collect();
            assert!(walk.windows(2).all(|w| (w[1] - w[0]).abs() <= 50));
            assert!(walk.iter().all(|value| (-1_000..=1_000).contains(value)));
            // 10,000 steps lead everywhere.
            assert!(walk.iter().any(|&v| v < -800) && walk.iter().any(|&v| v > 800));
        }
    }

    #[test]
    fn ranges_at_the_ends_of_i64_are_taken() {
        for (min, max) in [(i64::MIN, i64::MAX), (i64::MIN, i64::MIN), (i64::MAX, i64::MAX), (0, i64::MAX)] {
            let uniform = draw(&ValueDistribution::Uniform { min, max });
            assert!(uniform.iter().all(|value| (min..=max).contains(value)));
            draw(&ValueDistribution::Normal { mean: MAX_COMPUTED, deviation: MAX_COMPUTED, min, max });
            draw(&ValueDistribution::LogNormal { median: MAX_COMPUTED, sigma: 10.0, min, max });
        }
        draw(&ValueDistribution::RandomWalk { step: i64::MAX, min: 0, max: i64::MAX });
    }
}
