//! The watermark of one source partition.

use crate::event::Time;

/// Turns the times of a partition's records, in their order, into the partition's watermark.
///
/// The watermark is the largest time seen, less the allowed disorder, rounded down to the epoch
/// length. It depends on nothing but the records before: not on other partitions, on how many
/// records are read at once, or on when. So a record is late, or is not, in every run alike.
///
/// ```
/// use tidegate_operators::watermark::Watermark;
/// let mut watermark = Watermark::new(5, 10);
/// assert_eq!(watermark.observe(27), None);     // on time; the watermark is now 22 -> 20
/// assert_eq!(watermark.current(), 20);
/// assert_eq!(watermark.observe(20), None);     // at the watermark is on time
/// assert_eq!(watermark.observe(19), Some(20)); // late for watermark 20
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watermark {
    allowed_disorder: Time,
    epoch: Time,
    current: Time,
}

impl Watermark {
    /// A watermark that lags `allowed_disorder` behind the largest time and moves in steps of
    /// `epoch`. Both are in the unit of the times; below 0 and below 1 count as 0 and as 1.
    pub fn new(allowed_disorder: Time, epoch: Time) -> Self {
        Watermark { allowed_disorder: allowed_disorder.max(0), epoch: epoch.max(1), current: Time::MIN }
    }

    /// The promise that holds now: no record with a time below it is on time any more.
    pub fn current(&self) -> Time {
        self.current
    }

    /// Takes note of a record's time; for a late record, gives the watermark that it missed.
    #[inline]
    pub fn observe(&mut self, time: Time) -> Option<Time> {
        if time < self.current {
            return Some(self.current);
        }
        // Below the least multiple of the epoch there is no step to stand on.
        let step = time
            .checked_sub(self.allowed_disorder)
            .and_then(|time| time.div_euclid(self.epoch).checked_mul(self.epoch));
        if let Some(step) = step
            && step > self.current
        {
            self.current = step;
        }
        None
    }

    /// Raises the watermark to `floor`, where it is below: a partition that was idle comes back
    /// into a world that went on without it.
    pub fn raise(&mut self, floor: Time) {
        self.current = self.current.max(floor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watermarks_equal_the_definition() {
        // All sequences of four times out of nine values, against the definition in words.
        let times = [i64::MIN, i64::MIN + 1, -11, -10, -1, 0, 9, 10, i64::MAX];
        for (disorder, epoch) in [(0, 1), (0, 10), (3, 10), (20, 7), (i64::MAX, 5)] {
            for index in 0..times.len().pow(4) {
                let sequence: Vec<i64> =
                    (0..4).map(|place| times[index / times.len().pow(place) % times.len()]).collect();
                let mut watermark = Watermark::new(disorder, epoch);
                for (place, &time) in sequence.iter().enumerate() {
                    let before = sequence[..place].iter().max().map_or(i128::MIN, |&largest| {
                        (i128::from(largest) - i128::from(disorder)).div_euclid(i128::from(epoch))
                            * i128::from(epoch)
                    });
                    let before = if before < i128::from(i64::MIN) { i64::MIN } else { before as i64 };
                    assert_eq!(watermark.current(), before);
                    assert_eq!(watermark.observe(time), (time < before).then_some(before));
                }
            }
        }
    }
}
