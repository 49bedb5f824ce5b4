//! Events whose rate goes up and down with the time of day.
//!
//! The rate is a line with a corner at each weight of the profile. Events of such a process are a
//! Poisson process of rate 1 on a clock that runs with the rate (E. Çinlar, "Introduction to
//! Stochastic Processes", 1975): an exponentially distributed amount is drawn, and time moves on
//! until the area under the rate has reached it. Under a straight line that is a quadratic
//! equation, so nothing is drawn in vain, however quiet the night is.

use super::moment::{END_US, Moment};
use super::random::Random;
use super::ziggurat::exponential;

/// Draws the times of a diurnal process.
#[derive(Debug, Clone)]
pub(super) struct Diurnal {
    /// Rates at the corners, in events per microsecond, with the first repeated at the end.
    rates: Vec<f64>,
    /// Length of a segment between two corners in microseconds.
    length: f64,
    period_us: f64,
    events_per_period: f64,
    /// The segment that holds the last event, and its beginning. Moments are from the beginning of
    /// the period that the stream starts in.
    segment: usize,
    segment_start: Moment,
    segment_end: Moment,
    now: Moment,
    /// Where in its period the stream starts.
    start: u64,
}

impl Diurnal {
    /// # Contract
    /// The arguments are those of a validated [`super::ArrivalProcess::Diurnal`].
    pub(super) fn new(rate_per_s: f64, period_us: u64, weights: &[f64], start_us: i64) -> Self {
        let mean = weights.iter().sum::<f64>() / weights.len() as f64;
        let mut rates: Vec<f64> = weights.iter().map(|weight| rate_per_s / 1e6 * (weight / mean)).collect();
        rates.extend(rates.first().copied());
        // A validated period fits an i64.
        let start = start_us.rem_euclid(period_us as i64) as u64;
        let length = period_us as f64 / weights.len() as f64;
        let mut diurnal = Self {
            rates,
            length,
            period_us: period_us as f64,
            events_per_period: rate_per_s / 1e6 * period_us as f64,
            segment: 0,
            segment_start: Moment::default(),
            segment_end: Moment::length(length),
            now: Moment { us: start, part: 0 },
            start,
        };
        while diurnal.segment_end < diurnal.now {
            diurnal.next_segment();
        }
        diurnal
    }

    fn next_segment(&mut self) {
        self.segment = (self.segment + 1) % (self.rates.len() - 1);
        self.segment_start = self.segment_end;
        self.segment_end = self.segment_end.after(Moment::length(self.length));
    }

    /// The time of the next event in microseconds from the start; `None` at the end of time.
    #[inline]
    pub(super) fn next(&mut self, random: &mut Random) -> Option<u64> {
        let mut left = exponential(random);
        if left >= self.events_per_period {
            let periods = (left / self.events_per_period).floor();
            left -= periods * self.events_per_period;
            let step = Moment::length(periods * self.period_us);
            for moment in [&mut self.now, &mut self.segment_start, &mut self.segment_end] {
                *moment = moment.after(step);
            }
        }
        while self.now.us < END_US {
            let high = self.rates[self.segment + 1];
            let slope = (high - self.rates[self.segment]) / self.length;
            // Rounding must not make it negative.
            let rate = (self.rates[self.segment] + slope * self.now.since(self.segment_start)).max(0.0);
            let remaining = self.segment_end.since(self.now);
            let area = 0.5 * (rate + high) * remaining;
            if left < area {
                // rate * x + slope / 2 * x² = left, solved so that nothing cancels out.
                let root = (rate * rate + 2.0 * slope * left).max(0.0).sqrt();
                let step = (2.0 * left / (rate + root)).min(remaining);
                self.now = self.now.after(Moment::length(step));
                return Some(self.now.us - self.start);
            }
            left -= area;
            self.now = self.segment_end;
            self.next_segment();
        }
        None
    }
}
