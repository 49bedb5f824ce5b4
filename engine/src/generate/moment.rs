//! A point of a stream's time that does not drift.

/// Where a stream ends at the latest, in microseconds from its start; no sum of a start, an
/// offset and this overflows an `i64`.
pub(super) const END_US: u64 = 1 << 61;

/// 2^32, the parts of a microsecond.
const PARTS: f64 = 4_294_967_296.0;

/// A moment, or a length of time, in microseconds and parts of 2^-32 of one: steps of any length
/// add up without an error that grows with the time passed, as it would in floating point.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment {
    pub us: u64,
    pub part: u32,
}

impl Moment {
    /// A length of time that is not negative; beyond [`END_US`] it is that.
    #[inline]
    pub(super) fn length(us: f64) -> Self {
        let us = us.min(END_US as f64);
        // Signed, as processors convert signed numbers faster; END_US fits.
        let whole = us as i64;
        // Exact: both are f64 of the same size, and the difference is below 1.
        let part = ((us - whole as f64) * PARTS) as i64;
        Self { us: whole as u64, part: part as u32 }
    }

    #[inline]
    pub(super) fn after(self, step: Self) -> Self {
        let (part, carry) = self.part.overflowing_add(step.part);
        let us = self.us.saturating_add(step.us);
        Self { us: us.saturating_add(u64::from(carry)), part }
    }

    /// The length of time from an earlier moment to this one, in microseconds.
    #[inline]
    pub(super) fn since(self, earlier: Self) -> f64 {
        let us = self.us.saturating_sub(earlier.us) as i64 as f64;
        us + (f64::from(self.part) - f64::from(earlier.part)) / PARTS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_add_up_and_can_be_measured() {
        let third = Moment::length(1.0 / 3.0);
        let mut now = Moment::default();
        for _ in 0..3_000_000 {
            now = now.after(third);
        }
        assert!((now.since(Moment::default()) - 1e6).abs() < 0.001);
        assert!((now.since(third) - (1e6 - 1.0 / 3.0)).abs() < 0.001);
    }

    #[test]
    fn the_longest_lengths_end_at_the_end() {
        for us in [f64::MAX, f64::INFINITY, END_US as f64] {
            let length = Moment::length(us);
            assert_eq!((length.us, length.part), (END_US, 0));
        }
        let end = Moment { us: u64::MAX, part: u32::MAX };
        assert_eq!(end.after(end).us, u64::MAX);
    }
}
