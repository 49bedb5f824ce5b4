//! A distribution given by its quantiles: whatever was measured of a real trace, as it is.

use super::error::{GenerateError, Place};
use super::random::Random;
use serde::{Deserialize, Serialize};

/// Most points that a distribution may have.
const MAX_POINTS: usize = 4_096;

/// Points (share, value) of a distribution function, with straight lines between them.
///
/// `[[0, 0], [0.5, 20], [0.99, 400], [1, 9000]]` says: nothing below 0, half of all values below
/// 20, one in a hundred above 400, none above 9000. Two points of one value make that value as
/// likely as the distance of their shares. In JSON it is just this list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Quantiles {
    /// Share of all values at or below (rising, from 0 to 1), and the value (not falling).
    pub points: Vec<(f64, i64)>,
}

impl Quantiles {
    pub(super) fn validate(&self, place: Place<'_>) -> Result<(), GenerateError> {
        let points = &self.points;
        place.require((2..=MAX_POINTS).contains(&points.len()), || {
            format!("{} points: give 2 to {MAX_POINTS}", points.len())
        })?;
        // Both exist: there are at least two points.
        place.require(points[0].0 == 0.0 && points[points.len() - 1].0 == 1.0, || {
            "the shares must begin with 0 and end with 1".to_owned()
        })?;
        for (index, pair) in points.windows(2).enumerate() {
            place.element(index + 1).require(pair[0].0 < pair[1].0, || {
                format!("share {} does not rise above {}", pair[1].0, pair[0].0)
            })?;
            place.element(index + 1).require(pair[0].1 <= pair[1].1, || {
                format!("value {} falls below {}", pair[1].1, pair[0].1)
            })?;
        }
        Ok(())
    }

    /// The least and the largest value. (0, 0) without points.
    pub(super) fn range(&self) -> (i64, i64) {
        match (self.points.first(), self.points.last()) {
            (Some(first), Some(last)) => (first.1, last.1),
            _ => (0, 0),
        }
    }

    #[inline]
    pub(super) fn sample(&self, random: &mut Random) -> i64 {
        let share = random.unit();
        // A validated list has a point at share 0 and one at share 1, and `share` is below 1.
        let upper = self.points.partition_point(|point| point.0 <= share);
        let (Some(&(low_share, low)), Some(&(high_share, high))) =
            (self.points.get(upper.wrapping_sub(1)), self.points.get(upper))
        else {
            return self.range().0;
        };
        let within = (share - low_share) / (high_share - low_share);
        let width = high as f64 - low as f64;
        // Rounding may end above `high`, or where i64 ends: both are cut off.
        low.saturating_add((within * width) as i64).min(high)
    }
}

#[cfg(test)]
mod tests {
    use super::super::random::Purpose;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_fall_where_the_points_say() {
        let quantiles = Quantiles { points: vec![(0.0, 0), (0.25, 0), (0.75, 100), (1.0, 10_000)] };
        let mut random = Random::new(1, 0, Purpose::Values);
        let drawn: Vec<i64> = (0..100_000).map(|_| quantiles.sample(&mut random)).collect();
        let share = |limit| drawn.iter().filter(|&&v| v <= limit).count() as f64 / 100_000.0;
        assert!((share(0) - 0.255).abs() < 0.01, "{}", share(0));
        assert!((share(50) - 0.505).abs() < 0.01, "{}", share(50));
        assert!((share(5_050) - 0.875).abs() < 0.01, "{}", share(5_050));
        assert_eq!(share(10_000), 1.0);
    }

    proptest! {
        #[test]
        fn a_value_is_within_the_range(a: i64, b: i64, c: i64, seed: u64) {
            let mut values = [a, b, c];
            values.sort_unstable();
            let quantiles = Quantiles {
                points: vec![(0.0, values[0]), (0.3, values[1]), (1.0, values[2])],
            };
            prop_assert!(quantiles.validate(Place::top("values")).is_ok());
            let mut random = Random::new(seed, 0, Purpose::Values);
            for _ in 0..20 {
                let value = quantiles.sample(&mut random);
                prop_assert!((values[0]..=values[2]).contains(&value));
            }
        }
    }
}
