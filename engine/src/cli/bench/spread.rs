//! A number that was measured several times.

use crate::cli::compare::median;
use serde::Serialize;

/// The middle of several measurements, and how far they lie apart. An average would let one
/// disturbed run speak for all of them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// The one in the middle.
    pub median: f64,
    /// The least.
    pub least: f64,
    /// The largest.
    pub largest: f64,
}

impl Spread {
    /// Of these measurements; not a number where there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let values: Vec<f64> = values.into_iter().collect();
        Spread {
            least: values.iter().copied().fold(f64::NAN, f64::min),
            largest: values.iter().copied().fold(f64::NAN, f64::max),
            median: median(values),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_disturbed_run_does_not_move_the_middle() {
        let spread = Spread::of([3.0, 1.0, 900.0]);
        assert_eq!(spread, Spread { median: 3.0, least: 1.0, largest: 900.0 });
        assert!(Spread::of([]).median.is_nan());
    }
}
