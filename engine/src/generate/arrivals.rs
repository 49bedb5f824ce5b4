//! When events happen: steadily, at random, in bursts, by the hour of the day, or after others.

use super::delay::DelayDistribution;
use super::diurnal::Diurnal;
use super::error::{GenerateError, Place};
use super::moment::{END_US, Moment};
use super::random::Random;
use super::ziggurat::exponential;
use serde::{Deserialize, Serialize};

/// Rates that can be asked for, in events per second.
const RATES: (f64, f64) = (1e-9, 1e9);
/// Most weights of a daily profile: one for each minute.
const MAX_WEIGHTS: usize = 1_440;
/// The times at which a stream's events happen, or its sessions begin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum ArrivalProcess {
    /// One every `1 / rate_per_s` seconds, exactly.
    Steady {
        /// Events per second.
        rate_per_s: f64,
    },
    /// Independent of each other: exponentially distributed gaps.
    Poisson {
        /// Mean number of events per second.
        rate_per_s: f64,
    },
    /// Quiet times and bursts that take turns, each of an exponentially distributed length, with
    /// a Poisson process of its own rate in each (a Markov-modulated Poisson process). It begins
    /// with a quiet time.
    Bursts {
        /// Events per second in quiet times; may be 0.
        quiet_rate_per_s: f64,
        /// Events per second in bursts.
        burst_rate_per_s: f64,
        /// Mean length of a quiet time in microseconds.
        mean_quiet_us: f64,
        /// Mean length of a burst in microseconds.
        mean_burst_us: f64,
    },
    /// A Poisson process whose rate goes up and down with the time of day (or another period).
    Diurnal {
        /// Mean number of events per second over a period.
        rate_per_s: f64,
        /// Length of the period in microseconds. Periods begin at multiples of it since 1970, so
        /// that a day of 86,400,000,000 us is a day of UTC.
        period_us: u64,
        /// Relative rates at evenly spaced times of the period, the first at its beginning, with
        /// straight lines between them and from the last back to the first.
        weights: Vec<f64>,
    },
    /// Each event of another stream is followed by one of this stream, of the same key, after a
    /// delay: the partner that a join looks for. The stream's own keys and sessions are not used.
    Follow {
        /// Index of the other stream, which must come before this one in the list.
        stream: usize,
        /// Share of the other stream's events that have a partner.
        share: f64,
        /// Event time of the partner less that of the event.
        #[serde(default)]
        delay: DelayDistribution,
    },
}

impl Default for ArrivalProcess {
    fn default() -> Self {
        Self::Steady { rate_per_s: 1_000.0 }
    }
}

impl ArrivalProcess {
    /// Looks over the process of stream number `stream`.
    pub(super) fn validate(&self, stream: usize, place: Place<'_>) -> Result<(), GenerateError> {
        let require_rate = |name: &str, rate: f64| place.field(name).require_within(rate, RATES.0, RATES.1);
        match self {
            Self::Steady { rate_per_s } | Self::Poisson { rate_per_s } => {
                require_rate("rate_per_s", *rate_per_s)
            }
            Self::Bursts { quiet_rate_per_s, burst_rate_per_s, mean_quiet_us, mean_burst_us } => {
                if *quiet_rate_per_s != 0.0 {
                    require_rate("quiet_rate_per_s", *quiet_rate_per_s)?;
                }
                require_rate("burst_rate_per_s", *burst_rate_per_s)?;
                place.field("mean_quiet_us").require_within(*mean_quiet_us, 1.0, 1e15)?;
                place.field("mean_burst_us").require_within(*mean_burst_us, 1.0, 1e15)?;
                // Otherwise the search for the next event could take very long.
                let per_turn = burst_rate_per_s * mean_burst_us + quiet_rate_per_s * mean_quiet_us;
                place.require(per_turn >= 1_000.0, || {
                    "fewer than one event in a thousand turns: give higher rates or longer bursts".to_owned()
                })
            }
            Self::Diurnal { rate_per_s, period_us, weights } => {
                require_rate("rate_per_s", *rate_per_s)?;
                place.field("period_us").require((1_000..=1 << 53).contains(period_us), || {
                    format!("{period_us} us is not between 1,000 and 2^53 us")
                })?;
                let place = place.field("weights");
                place.require((1..=MAX_WEIGHTS).contains(&weights.len()), || {
                    format!("{} weights: give 1 to {MAX_WEIGHTS}", weights.len())
                })?;
                for (index, &weight) in weights.iter().enumerate() {
                    place.element(index).require_within(weight, 0.0, 1e9)?;
                }
                place.require(weights.iter().any(|&weight| weight >= 1e-9), || {
                    "all weights are 0: give at least one that is not".to_owned()
                })
            }
            Self::Follow { stream: leader, share, delay } => {
                place.field("stream").require(*leader < stream, || {
                    format!("{leader} does not come before this stream, which is number {stream}")
                })?;
                place.field("share").require_share(*share)?;
                delay.validate(place.field("delay"))
            }
        }
    }
}

/// Draws the times of an [`ArrivalProcess`].
#[derive(Debug, Clone)]
pub(super) struct ArrivalSampler {
    process: Process,
    now: Moment,
}

#[derive(Debug, Clone)]
enum Process {
    Steady {
        step: Moment,
        begun: bool,
    },
    Poisson {
        mean_gap: f64,
    },
    Bursts {
        /// Mean gaps between events in quiet times (none if there are no events) and in bursts.
        mean_gaps: [Option<f64>; 2],
        mean_lengths: [f64; 2],
        /// 0 in quiet times, 1 in bursts.
        phase: usize,
        /// When the other phase begins; `None` before the start.
        turn: Option<Moment>,
    },
    Diurnal(Box<Diurnal>),
    /// Has no times of its own.
    Follow,
}

impl ArrivalSampler {
    /// The times of a stream that starts at `start_us`.
    pub(super) fn new(process: &ArrivalProcess, start_us: i64) -> Self {
        let gap = |rate_per_s: f64| 1e6 / rate_per_s;
        let process = match process {
            ArrivalProcess::Steady { rate_per_s } => {
                Process::Steady { step: Moment::length(gap(*rate_per_s)), begun: false }
            }
            ArrivalProcess::Poisson { rate_per_s } => Process::Poisson { mean_gap: gap(*rate_per_s) },
            ArrivalProcess::Bursts { quiet_rate_per_s, burst_rate_per_s, mean_quiet_us, mean_burst_us } => {
                Process::Bursts {
                    mean_gaps: [
                        (*quiet_rate_per_s > 0.0).then(|| gap(*quiet_rate_per_s)),
                        Some(gap(*burst_rate_per_s)),
                    ],
                    mean_lengths: [*mean_quiet_us, *mean_burst_us],
                    phase: 0,
                    turn: None,
                }
            }
            ArrivalProcess::Diurnal { rate_per_s, period_us, weights } => {
                Process::Diurnal(Box::new(Diurnal::new(*rate_per_s, *period_us, weights, start_us)))
            }
            ArrivalProcess::Follow { .. } => Process::Follow,
        };
        Self { process, now: Moment::default() }
    }

    /// The next time in microseconds from the start of the stream; never falls. `None` at the end
    /// of time (2^61 us), and always for a stream that follows another.
    #[inline]
    pub(super) fn next(&mut self, random: &mut Random) -> Option<i64> {
        match &mut self.process {
            Process::Steady { step, begun } => {
                if *begun {
                    self.now = self.now.after(*step);
                }
                *begun = true;
            }
            Process::Poisson { mean_gap } => {
                let gap = *mean_gap * exponential(random);
                self.now = self.now.after(Moment::length(gap));
            }
            Process::Bursts { mean_gaps, mean_lengths, phase, turn } => loop {
                let length = |phase: usize, random: &mut Random| {
                    Moment::length(mean_lengths[phase] * exponential(random))
                };
                let end = match *turn {
                    Some(end) => end,
                    None => *turn.insert(self.now.after(length(*phase, random))),
                };
                // A gap that reaches beyond the phase is drawn again in the next one: an
                // exponential gap does not remember how long it has lasted.
                let next = mean_gaps[*phase]
                    .map(|mean_gap| self.now.after(Moment::length(mean_gap * exponential(random))));
                match next {
                    Some(next) if next < end => {
                        self.now = next;
                        break;
                    }
                    _ if end.us >= END_US => return None,
                    _ => {
                        self.now = end;
                        *phase = 1 - *phase;
                        *turn = Some(end.after(length(*phase, random)));
                    }
                }
            },
            // At most END_US, which is far below the largest i64.
            Process::Diurnal(diurnal) => return diurnal.next(random).map(|us| us as i64),
            Process::Follow => return None,
        }
        // END_US is far below the largest i64.
        (self.now.us < END_US).then_some(self.now.us as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::super::random::Purpose;
    use super::*;

    fn times(process: &ArrivalProcess, count: usize) -> Vec<i64> {
        assert!(process.validate(0, Place::top("arrivals")).is_ok());
        let mut sampler = ArrivalSampler::new(process, 0);
        let mut random = Random::new(11, 0, Purpose::Arrivals);
        let times: Vec<i64> = std::iter::from_fn(|| sampler.next(&mut random)).take(count).collect();
        assert!(times.is_sorted());
        times
    }

    #[test]
    fn steady_does_not_drift() {
        let drawn = times(&ArrivalProcess::Steady { rate_per_s: 3.0 }, 3_000_001);
        assert_eq!(drawn[..4], [0, 333_333, 666_666, 999_999]);
        // A million seconds later the fractions of 2^-32 us have added up to less than 1 ms.
        assert!((drawn[3_000_000] - 1_000_000_000_000).abs() < 1_000);
        let drawn = times(&ArrivalProcess::Steady { rate_per_s: 1e6 }, 1_001);
        assert_eq!(drawn[1_000], 1_000);
    }

    #[test]
    fn poisson_gaps_are_exponential() {
        let drawn = times(&ArrivalProcess::Poisson { rate_per_s: 100.0 }, 100_001);
        let seconds = drawn[100_000] as f64 / 1e6;
        assert!((seconds / 1_000.0 - 1.0).abs() < 0.015, "{seconds}");
        let share = |limit: i64| drawn.windows(2).filter(|w| w[1] - w[0] <= limit).count() as f64 / 100_000.0;
        for gap_us in [1_000, 10_000, 40_000] {
            let expected = 1.0 - (-(gap_us as f64) / 10_000.0).exp();
            assert!((share(gap_us) - expected).abs() < 0.007, "{gap_us}");
        }
        // Counts in seconds have the variance of a Poisson distribution: that of their mean.
        let mut counts = [0.0; 1_000];
        for time in drawn {
            if let Some(count) = counts.get_mut(time as usize / 1_000_000) {
                *count += 1.0;
            }
        }
        let counts = &counts[..990];
        let mean = counts.iter().sum::<f64>() / 990.0;
        let variance = counts.iter().map(|c: &f64| (c - mean).powi(2)).sum::<f64>() / 990.0;
        assert!((variance / mean - 1.0).abs() < 0.2, "{}", variance / mean);
    }

    #[test]
    fn bursts_have_their_mean_rate_and_are_uneven() {
        let process = ArrivalProcess::Bursts {
            quiet_rate_per_s: 10.0,
            burst_rate_per_s: 1_000.0,
            mean_quiet_us: 900_000.0,
            mean_burst_us: 100_000.0,
        };
        let drawn = times(&process, 400_000);
        let rate = 400_000.0 / (drawn[399_999] as f64 / 1e6);
        assert!((rate / 109.0 - 1.0).abs() < 0.06, "{rate}");
        // Almost all events lie in bursts, where the mean gap is 1 ms instead of 9.
        let short = drawn.windows(2).filter(|w| w[1] - w[0] < 5_000).count();
        assert!(short > 350_000, "{short}");
    }

    #[test]
    fn bursts_may_be_silent_between() {
        let process = ArrivalProcess::Bursts {
            quiet_rate_per_s: 0.0,
            burst_rate_per_s: 1e6,
            mean_quiet_us: 1e6,
            mean_burst_us: 1_000.0,
        };
        let drawn = times(&process, 100_000);
        let long = drawn.windows(2).filter(|w| w[1] - w[0] > 10_000).count();
        assert!((60..140).contains(&long), "{long}");
    }

    #[test]
    fn diurnal_follows_its_profile() {
        let process = ArrivalProcess::Diurnal {
            rate_per_s: 1_000.0,
            period_us: 4_000_000,
            weights: vec![0.0, 1.0, 2.0, 1.0],
        };
        let drawn = times(&process, 400_000);
        let seconds = drawn[399_999] as f64 / 1e6;
        assert!((seconds / 400.0 - 1.0).abs() < 0.01, "{seconds}");
        let mut counts = [0.0f64; 4];
        for time in &drawn {
            counts[(time / 1_000_000 % 4) as usize] += 1.0 / 400_000.0;
        }
        // The areas under the straight lines.
        for (count, expected) in counts.iter().zip([0.125, 0.375, 0.375, 0.125]) {
            assert!((count - expected).abs() < 0.01, "{counts:?}");
        }
    }

    #[test]
    fn diurnal_goes_by_the_time_since_1970() {
        let process = ArrivalProcess::Diurnal {
            rate_per_s: 1_000.0,
            period_us: 4_000_000,
            weights: vec![0.0, 1.0, 0.0, 0.0],
        };
        let mut random = Random::new(11, 0, Purpose::Arrivals);
        let mut sampler = ArrivalSampler::new(&process, -1_000_000);
        for _ in 0..10_000 {
            let time = sampler.next(&mut random).map(|time| time - 1_000_000);
            assert!(time.is_some_and(|time| time.rem_euclid(4_000_000) <= 2_000_000));
        }
    }

    #[test]
    fn the_slowest_stream_ends_without_a_panic() {
        for process in [
            ArrivalProcess::Steady { rate_per_s: 1e-9 },
            ArrivalProcess::Poisson { rate_per_s: 1e-9 },
            ArrivalProcess::Bursts {
                quiet_rate_per_s: 0.0,
                burst_rate_per_s: 1e-9,
                mean_quiet_us: 1e15,
                mean_burst_us: 1e12,
            },
            ArrivalProcess::Diurnal { rate_per_s: 1e-9, period_us: 1_000, weights: vec![1.0] },
        ] {
            let count = times(&process, 1_000_000).len();
            assert!(count < 5_000, "{process:?}: {count}");
        }
    }
}
