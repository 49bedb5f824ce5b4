//! The source of randomness of generated traces: xoshiro256++, seeded by splitmix64.
//!
//! It is written out here, and not taken from a library, because a trace must come out the same
//! to the byte on every machine and in every later version. That is a promise of these few
//! lines: random-number libraries keep the right to change how they turn bits into numbers.
//!
//! Source of the formulas: D. Blackman, S. Vigna, "Scrambled linear pseudorandom number
//! generators", ACM Transactions on Mathematical Software 47 (2021); G. Steele, D. Lea, C. Flood,
//! "Fast splittable pseudorandom number generators", OOPSLA 2014; D. Lemire, "Fast random integer
//! generation in an interval", ACM Transactions on Modeling and Computer Simulation 29 (2019).

use super::workload::{GOLDEN_GAMMA, mix};

/// What the numbers of one generator are for.
///
/// Each stream of a trace has a generator of its own for each purpose. So a change of, say, the
/// lag leaves every key, value and event time as it was, and two traces can be compared.
#[derive(Debug, Clone, Copy)]
pub(super) enum Purpose {
    Arrivals = 1,
    Keys = 2,
    Sessions = 3,
    Values = 4,
    Lags = 5,
}

/// A xoshiro256++ generator.
#[derive(Debug, Clone)]
pub(super) struct Random {
    state: [u64; 4],
}

impl Random {
    /// The generator of a stream of a trace, for one purpose.
    pub(super) fn new(seed: u64, stream: usize, purpose: Purpose) -> Self {
        let tag = (stream as u64) << 8 | purpose as u64;
        let base = mix(seed.wrapping_add(GOLDEN_GAMMA)) ^ mix(tag.wrapping_mul(GOLDEN_GAMMA));
        // The four words are the mix of four different numbers, and mix is one to one: at most
        // one of them is 0, so the one forbidden state (all 0) does not occur.
        Self {
            state: std::array::from_fn(|word| {
                mix(base.wrapping_add((word as u64 + 1).wrapping_mul(GOLDEN_GAMMA)))
            }),
        }
    }

    /// 64 random bits.
    #[inline]
    pub(super) fn bits(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        // In the names of the reference: s[0] to s[3], which it updates in place.
        let result = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let c = c ^ a;
        let d = d ^ b;
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        result
    }

    /// A number of `0..bound`, each equally likely. 0 for a bound of 0.
    ///
    /// Lemire's method: the high half of a product, and a redraw in the rare case that would be
    /// counted once too often.
    #[inline]
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 {
            return 0;
        }
        let mut product = u128::from(self.bits()) * u128::from(bound);
        if (product as u64) < bound {
            let threshold = bound.wrapping_neg() % bound;
            while (product as u64) < threshold {
                product = u128::from(self.bits()) * u128::from(bound);
            }
        }
        (product >> 64) as u64
    }

    /// A number of `low..=high`, each equally likely. `low` if the range is empty.
    #[inline]
    pub(super) fn between(&mut self, low: i64, high: i64) -> i64 {
        if high <= low {
            return low;
        }
        let width = high.wrapping_sub(low) as u64;
        let step = match width.checked_add(1) {
            Some(choices) => self.below(choices),
            None => self.bits(),
        };
        low.wrapping_add(step as i64)
    }

    /// A number of [0, 1), a multiple of 2^-53.
    #[inline]
    pub(super) fn unit(&mut self) -> f64 {
        self.bits_and_unit().1
    }

    /// 64 random bits, and the number of [0, 1) that the upper 53 of them stand for: the lower 11
    /// are free for another use.
    #[inline]
    pub(super) fn bits_and_unit(&mut self) -> (u64, f64) {
        let bits = self.bits();
        // Both steps are exact: 53 bits fit a f64, and so does their multiple of a power of two.
        // Signed, as processors convert signed numbers faster.
        let unit = (bits >> 11) as i64 as f64 * (1.0 / 9_007_199_254_740_992.0);
        (bits, unit)
    }

    /// True with the given probability.
    #[inline]
    pub(super) fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_those_of_the_reference_implementation() {
        let mut random = Random { state: [1, 2, 3, 4] };
        let expected: [u64; 6] = [
            41_943_041,
            58_720_359,
            3_588_806_011_781_223,
            3_591_011_842_654_386,
            9_228_616_714_210_784_205,
            9_973_669_472_204_895_162,
        ];
        for bits in expected {
            assert_eq!(random.bits(), bits);
        }
    }

    #[test]
    fn below_is_even_over_a_bound_that_does_not_divide_the_range() {
        let mut random = Random::new(1, 0, Purpose::Keys);
        let mut counts = [0u32; 7];
        for _ in 0..70_000 {
            counts[random.below(7) as usize] += 1;
        }
        let chi_square: f64 =
            counts.iter().map(|&count| (f64::from(count) - 10_000.0).powi(2) / 10_000.0).sum();
        assert!(chi_square < 22.5, "{counts:?}");
    }

    #[test]
    fn below_redraws_where_a_bound_leaves_a_remainder() {
        // Without the redraw, two thirds of 2^64 as a bound would make even numbers twice as
        // likely as odd ones.
        let bound = u64::MAX / 3 * 2;
        let mut random = Random::new(2, 0, Purpose::Keys);
        let even = (0..10_000).filter(|_| random.below(bound).is_multiple_of(2)).count();
        assert!((4_800..5_200).contains(&even), "{even}");
    }

    #[test]
    fn between_takes_the_whole_range_of_i64() {
        let mut random = Random::new(3, 0, Purpose::Values);
        let drawn: Vec<i64> = (0..64).map(|_| random.between(i64::MIN, i64::MAX)).collect();
        assert!(drawn.iter().any(|&v| v < 0) && drawn.iter().any(|&v| v > 0));
        assert_eq!(random.between(5, 5), 5);
        assert_eq!(random.between(5, 4), 5);
        assert_eq!(random.below(0), 0);
    }

    #[test]
    fn streams_and_purposes_draw_different_numbers() {
        let mut seen = std::collections::HashSet::new();
        for stream in 0..4 {
            for purpose in
                [Purpose::Arrivals, Purpose::Keys, Purpose::Sessions, Purpose::Values, Purpose::Lags]
            {
                assert!(seen.insert(Random::new(9, stream, purpose).bits()));
            }
        }
    }
}
