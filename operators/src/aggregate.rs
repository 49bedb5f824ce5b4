//! The usual running aggregates, as a state and a step of a [`Fold`](crate::fold::Fold).
//!
//! Each is a pair of functions: what a new key starts with, and how a record changes it.

use serde::{Deserialize, Serialize};
use std::ops::AddAssign;

/// Counts records.
pub fn count<V>(count: &mut u64, _: V) -> u64 {
    *count += 1;
    *count
}

/// Adds up values; a new key starts with the default, which is 0 for numbers.
pub fn sum<V: AddAssign + Clone>(sum: &mut V, value: V) -> V {
    *sum += value;
    sum.clone()
}

/// Keeps the least value. The state is empty for a new key.
pub fn min<V: PartialOrd + Clone>(least: &mut Option<V>, value: V) -> V {
    match least {
        Some(least) if *least <= value => least.clone(),
        _ => least.insert(value).clone(),
    }
}

/// Keeps the largest value. The state is empty for a new key.
pub fn max<V: PartialOrd + Clone>(largest: &mut Option<V>, value: V) -> V {
    match largest {
        Some(largest) if *largest >= value => largest.clone(),
        _ => largest.insert(value).clone(),
    }
}

/// Appends texts.
pub fn append(text: &mut String, value: impl AsRef<str>) -> String {
    text.push_str(value.as_ref());
    text.clone()
}

/// Count, mean and spread of numbers, kept by Welford's method.
///
/// The method is that of B. P. Welford, "Note on a method for calculating corrected sums of
/// squares and products", Technometrics 4 (1962): it subtracts the mean before it squares, so
/// that numbers with a large common part lose no digits.
///
/// ```
/// use tidegate_operators::aggregate::Moments;
/// let mut moments = Moments::default();
/// for value in [1e9, 1e9 + 2.0, 1e9 + 4.0] {
///     moments.add(value);
/// }
/// assert_eq!((moments.count(), moments.mean()), (3, 1e9 + 2.0));
/// assert_eq!(moments.variance(), 4.0);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Moments {
    count: u64,
    mean: f64,
    squares: f64,
}

impl Moments {
    /// Takes a number in.
    pub fn add(&mut self, value: f64) {
        self.count += 1;
        let before = value - self.mean;
        self.mean += before / self.count as f64;
        self.squares += before * (value - self.mean);
    }

    /// Takes in what `later` has taken in (T. F. Chan, G. H. Golub and R. J. LeVeque, "Updating
    /// formulae and a pairwise algorithm for computing sample variances", 1979).
    pub fn merge(&mut self, later: &Moments) {
        if later.count == 0 {
            return;
        }
        let count = self.count + later.count;
        let between = later.mean - self.mean;
        let share = later.count as f64 / count as f64;
        self.squares += later.squares + between * between * self.count as f64 * share;
        self.mean += between * share;
        self.count = count;
    }

    /// How many numbers there were.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their mean; 0 for none.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// Their variance, with n - 1 in the denominator; 0 for fewer than two.
    pub fn variance(&self) -> f64 {
        if self.count < 2 { 0.0 } else { self.squares / (self.count - 1) as f64 }
    }

    /// How many standard deviations `value` lies above the mean; none before there is a spread.
    pub fn z_score(&self, value: f64) -> Option<f64> {
        let deviation = self.variance().sqrt();
        (deviation > 0.0).then(|| (value - self.mean) / deviation)
    }
}

/// The running mean.
pub fn mean(moments: &mut Moments, value: f64) -> f64 {
    moments.add(value);
    moments.mean()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn moments_equal_the_two_pass_formulas(values in proptest::collection::vec(-1e6f64..1e6, 2..50)) {
            let mut moments = Moments::default();
            values.iter().for_each(|&value| moments.add(value));
            let n = values.len() as f64;
            let mean = values.iter().sum::<f64>() / n;
            let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
            prop_assert!((moments.mean() - mean).abs() <= 1e-6);
            prop_assert!((moments.variance() - variance).abs() <= 1e-9 * variance.max(1.0));
        }

        #[test]
        fn extremes_equal_those_of_the_list(values in proptest::collection::vec(any::<i32>(), 1..50)) {
            let (mut least, mut largest) = (None, None);
            for (index, &value) in values.iter().enumerate() {
                prop_assert_eq!(Some(&min(&mut least, value)), values[..=index].iter().min());
                prop_assert_eq!(Some(&max(&mut largest, value)), values[..=index].iter().max());
            }
        }
    }

    proptest! {
        #[test]
        fn merged_moments_are_those_of_all_numbers(values in proptest::collection::vec(-1e3f64..1e3, 0..50), cut in 0usize..50) {
            let of = |values: &[f64]| {
                let mut moments = Moments::default();
                values.iter().for_each(|&value| moments.add(value));
                moments
            };
            let cut = cut.min(values.len());
            let (all, mut merged) = (of(&values), of(&values[..cut]));
            merged.merge(&of(&values[cut..]));
            prop_assert_eq!(merged.count(), all.count());
            prop_assert!((merged.mean() - all.mean()).abs() < 1e-9);
            prop_assert!((merged.variance() - all.variance()).abs() <= 1e-9 * all.variance().max(1.0));
        }
    }

    #[test]
    fn a_number_that_is_none_does_not_stick() {
        // NaN compares with nothing; the next number replaces it.
        let mut least = Some(f64::NAN);
        assert_eq!(min(&mut least, 3.0), 3.0);
    }
}
