//! Lengths of time: how late a record arrives, how long a session pauses, when a partner follows.

use super::error::{GenerateError, Place};
use super::exact_math::{exp_m1, ln, pow};
use super::quantiles::Quantiles;
use super::random::Random;
use super::ziggurat::exponential;
use serde::{Deserialize, Serialize};

/// The longest delay that can be asked for, in microseconds: 2^53, or 285 years.
pub const MAX_DELAY_US: u64 = 1 << 53;

/// A distribution of lengths of time in microseconds. Every one of them has an upper end, so that
/// what must wait for it can be bounded.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum DelayDistribution {
    /// Always 0.
    #[default]
    None,
    /// Always the same.
    Fixed {
        /// The delay in microseconds.
        us: u64,
    },
    /// Each length of a range equally likely.
    Uniform {
        /// The shortest in microseconds.
        #[serde(default)]
        min_us: u64,
        /// The longest in microseconds (included).
        max_us: u64,
    },
    /// Exponentially distributed, with the tail beyond `max_us` cut off (which makes the true
    /// mean a little smaller than `mean_us`).
    Exponential {
        /// The mean before the cut, in microseconds.
        mean_us: f64,
        /// The longest in microseconds.
        max_us: u64,
    },
    /// Most are short and a few very long: P(more than x) = (1 + x/scale)^-exponent (Lomax, also
    /// called Pareto II), with the tail beyond `max_us` cut off. For an exponent of 1 half of all
    /// are shorter than `scale_us`, and one in a hundred is longer than 99 times that.
    HeavyTail {
        /// The scale in microseconds.
        scale_us: f64,
        /// The exponent; the smaller, the heavier the tail. 0.05 to 20.
        exponent: f64,
        /// The longest in microseconds.
        max_us: u64,
    },
    /// As measured: points (share, microseconds).
    Quantiles {
        /// The points.
        points: Quantiles,
    },
}

impl DelayDistribution {
    pub(super) fn validate(&self, place: Place<'_>) -> Result<(), GenerateError> {
        let require_max = |us: u64| {
            place.require(us <= MAX_DELAY_US, || {
                format!("{us} us is more than the longest delay, {MAX_DELAY_US} us")
            })
        };
        match self {
            Self::None => Ok(()),
            Self::Fixed { us } => require_max(*us),
            Self::Uniform { min_us, max_us } => {
                require_max(*max_us)?;
                place.require(min_us <= max_us, || format!("min_us {min_us} is more than max_us {max_us}"))
            }
            Self::Exponential { mean_us, max_us } => {
                require_max(*max_us)?;
                place.field("mean_us").require_within(*mean_us, 1e-3, MAX_DELAY_US as f64)
            }
            Self::HeavyTail { scale_us, exponent, max_us } => {
                require_max(*max_us)?;
                place.field("scale_us").require_within(*scale_us, 1e-3, MAX_DELAY_US as f64)?;
                place.field("exponent").require_within(*exponent, 0.05, 20.0)
            }
            Self::Quantiles { points } => {
                points.validate(place.field("points"))?;
                let (low, high) = points.range();
                place.require(low >= 0, || format!("a delay of {low} us is negative"))?;
                require_max(high.unsigned_abs())
            }
        }
    }

    /// The longest delay that can come out, in microseconds.
    ///
    /// ```
    /// use tidegate::generate::DelayDistribution;
    /// let delay = DelayDistribution::Exponential { mean_us: 500.0, max_us: 2_000 };
    /// assert_eq!(delay.max_us(), 2_000);
    /// ```
    pub fn max_us(&self) -> u64 {
        match self {
            Self::None => 0,
            Self::Fixed { us } => *us,
            Self::Uniform { max_us, .. }
            | Self::Exponential { max_us, .. }
            | Self::HeavyTail { max_us, .. } => *max_us,
            Self::Quantiles { points } => points.range().1.max(0).unsigned_abs(),
        }
    }
}

/// Draws from a [`DelayDistribution`].
#[derive(Debug, Clone)]
pub(super) enum DelaySampler {
    Fixed(u64),
    Uniform {
        min: u64,
        choices: u64,
    },
    /// `kept` is the share of the distribution that lies below the cut.
    Exponential {
        mean: f64,
        kept: f64,
        max: u64,
    },
    /// The same, where little is cut off.
    LongExponential {
        mean: f64,
        max: u64,
    },
    HeavyTail {
        scale: f64,
        power: f64,
        kept: f64,
        max: u64,
    },
    Quantiles(Quantiles),
}

impl DelaySampler {
    pub(super) fn new(delay: &DelayDistribution) -> Self {
        match delay {
            DelayDistribution::None => Self::Fixed(0),
            DelayDistribution::Fixed { us } => Self::Fixed(*us),
            DelayDistribution::Uniform { min_us, max_us } => {
                Self::Uniform { min: *min_us, choices: max_us.saturating_sub(*min_us).saturating_add(1) }
            }
            DelayDistribution::Exponential { mean_us, max_us } if *max_us as f64 >= *mean_us => {
                Self::LongExponential { mean: *mean_us, max: *max_us }
            }
            DelayDistribution::Exponential { mean_us, max_us } => {
                Self::Exponential { mean: *mean_us, kept: -exp_m1(-(*max_us as f64) / mean_us), max: *max_us }
            }
            DelayDistribution::HeavyTail { scale_us, exponent, max_us } => Self::HeavyTail {
                scale: *scale_us,
                power: -1.0 / exponent,
                kept: 1.0 - pow(1.0 + *max_us as f64 / scale_us, -exponent),
                max: *max_us,
            },
            DelayDistribution::Quantiles { points } => Self::Quantiles(points.clone()),
        }
    }

    /// True if every delay is 0.
    pub(super) fn is_none(&self) -> bool {
        matches!(self, Self::Fixed(0))
    }

    /// The next delay in microseconds.
    #[inline]
    pub(super) fn sample(&self, random: &mut Random) -> u64 {
        match self {
            Self::Fixed(us) => *us,
            Self::Uniform { min, choices } => min + random.below(*choices),
            Self::Exponential { mean, kept, max } => {
                // The distribution function turned around.
                let delay = -mean * ln(1.0 - random.unit() * kept);
                (delay as u64).min(*max)
            }
            Self::LongExponential { mean, max } => loop {
                // Six in ten draws are short enough, or more.
                let delay = (mean * exponential(random)) as u64;
                if delay <= *max {
                    return delay;
                }
            },
            Self::HeavyTail { scale, power, kept, max } => {
                let delay = scale * (pow(1.0 - random.unit() * kept, *power) - 1.0);
                (delay as u64).min(*max)
            }
            Self::Quantiles(points) => points.sample(random).max(0).unsigned_abs(),
        }
    }
}

/// How late records arrive: a usual delay, and a few stragglers that are far later.
///
/// A record of event time `t` and lag `g` arrives at `t + g`. When it does, no record with a time
/// above `t + g` has arrived, so no record is ever behind the largest time seen by more than the
/// largest lag: a watermark that allows this much disorder loses nothing.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LagDistribution {
    /// The lag of most records.
    pub usual: DelayDistribution,
    /// Share of the records that take their lag from `straggler` instead.
    pub straggler_share: f64,
    /// The lag of the others.
    pub straggler: DelayDistribution,
}

impl LagDistribution {
    pub(super) fn validate(&self, place: Place<'_>) -> Result<(), GenerateError> {
        place.field("straggler_share").require_share(self.straggler_share)?;
        self.usual.validate(place.field("usual"))?;
        self.straggler.validate(place.field("straggler"))
    }

    /// The largest lag in microseconds.
    pub fn max_us(&self) -> u64 {
        if self.straggler_share > 0.0 {
            self.usual.max_us().max(self.straggler.max_us())
        } else {
            self.usual.max_us()
        }
    }
}

/// Draws from a [`LagDistribution`].
#[derive(Debug, Clone)]
pub(super) struct LagSampler {
    usual: DelaySampler,
    straggler_share: f64,
    straggler: DelaySampler,
}

impl LagSampler {
    pub(super) fn new(lag: &LagDistribution) -> Self {
        Self {
            usual: DelaySampler::new(&lag.usual),
            straggler_share: lag.straggler_share,
            straggler: DelaySampler::new(&lag.straggler),
        }
    }

    #[inline]
    pub(super) fn sample(&self, random: &mut Random) -> u64 {
        if self.straggler_share > 0.0 && random.chance(self.straggler_share) {
            self.straggler.sample(random)
        } else if self.usual.is_none() {
            0
        } else {
            self.usual.sample(random)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::random::Purpose;
    use super::*;

    fn draw(delay: &DelayDistribution) -> Vec<u64> {
        assert!(delay.validate(Place::top("lag")).is_ok());
        let sampler = DelaySampler::new(delay);
        let mut random = Random::new(7, 0, Purpose::Lags);
        let mut drawn: Vec<u64> = (0..100_000).map(|_| sampler.sample(&mut random)).collect();
        drawn.sort_unstable();
        assert!(drawn[drawn.len() - 1] <= delay.max_us());
        drawn
    }

    /// The share of `drawn` at or below each of the given lengths must be the given one.
    fn assert_shares(drawn: &[u64], expected: impl Fn(f64) -> f64, at: &[u64]) {
        for &length in at {
            let share = drawn.partition_point(|&us| us <= length) as f64 / drawn.len() as f64;
            // 4.5 standard deviations of a share of 100,000.
            let off = (share - expected(length as f64 + 1.0)).abs();
            assert!(off < 0.0072, "{length}: {share} {}", expected(length as f64));
        }
    }

    #[test]
    fn uniform_covers_its_range_evenly() {
        let drawn = draw(&DelayDistribution::Uniform { min_us: 100, max_us: 1_099 });
        assert_eq!((drawn[0], drawn[99_999]), (100, 1_099));
        assert_shares(&drawn, |x| (x - 100.0) / 1_000.0, &[200, 500, 900]);
    }

    #[test]
    fn exponential_follows_its_law_up_to_the_cut() {
        for max_us in [3_000, 9_999, 10_000, 20_000, 100_000] {
            let drawn = draw(&DelayDistribution::Exponential { mean_us: 10_000.0, max_us });
            let kept = 1.0 - (-(max_us as f64) / 10_000.0).exp();
            let law = |x: f64| (1.0 - (-x / 10_000.0).exp()) / kept;
            assert_shares(&drawn, law, &[100, 1_000, max_us / 3, max_us / 2]);
            assert!(drawn[99_999] > max_us / 100 * 99 || max_us == 100_000);
        }
    }

    #[test]
    fn heavy_tail_follows_its_law_up_to_the_cut() {
        let drawn =
            draw(&DelayDistribution::HeavyTail { scale_us: 1_000.0, exponent: 1.5, max_us: 10_000_000 });
        let law = |x: f64| 1.0 - (1.0 + x / 1_000.0).powf(-1.5);
        assert_shares(&drawn, law, &[100, 1_000, 10_000, 100_000, 1_000_000]);
        assert!(drawn[99_999] > 500_000, "{}", drawn[99_999]);
    }

    #[test]
    fn stragglers_are_as_many_as_asked_for() {
        let lag = LagSampler::new(&LagDistribution {
            usual: DelayDistribution::Fixed { us: 1 },
            straggler_share: 0.01,
            straggler: DelayDistribution::Fixed { us: 1_000 },
        });
        let mut random = Random::new(7, 0, Purpose::Lags);
        let late = (0..100_000).filter(|_| lag.sample(&mut random) == 1_000).count();
        assert!((860..1_140).contains(&late), "{late}");
    }

    #[test]
    fn lengths_at_the_limits_are_taken() {
        for max_us in [0, 1, MAX_DELAY_US] {
            draw(&DelayDistribution::Uniform { min_us: 0, max_us });
            draw(&DelayDistribution::Fixed { us: max_us });
            for size in [1e-3, 1.0, MAX_DELAY_US as f64] {
                draw(&DelayDistribution::Exponential { mean_us: size, max_us });
                for exponent in [0.05, 20.0] {
                    draw(&DelayDistribution::HeavyTail { scale_us: size, exponent, max_us });
                }
            }
        }
    }
}
