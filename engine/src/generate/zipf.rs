//! Zipf-distributed ranks: exactly, in a time that does not depend on the number of keys.
//!
//! The ranks are cut into steps, each at most a sixteenth wider than where it begins, and a step is
//! chosen as if all its ranks were as likely as its first (A. Walker's alias method, ACM
//! Transactions on Mathematical Software 3, 1977, with the tables of M. Vose, IEEE Transactions on
//! Software Engineering 17, 1991). A rank of the step is then kept with the chance that its own
//! likelihood bears to the first's; if it is not, all begins anew. As the last rank of a step is
//! little less likely than the first, a rank is almost always kept without its likelihood being
//! computed. (L. Devroye, "Non-Uniform Random Variate Generation", 1986, chapters II and III.)

use super::exact_math::pow;
use super::random::Random;

/// Steps of each octave of ranks; those before the first whole octave have one rank each.
const STEPS_PER_OCTAVE: u64 = 16;

/// Draws ranks of `1..=keys` with probability proportional to `rank^-exponent`.
#[derive(Debug, Clone)]
pub(super) struct Zipf {
    exponent: f64,
    steps: Vec<Step>,
}

#[derive(Debug, Clone, Copy)]
struct Step {
    first: u64,
    ranks: u64,
    /// How likely the last rank is, relative to the first.
    sure: f64,
    /// Of the draws that meet this step, those whose fraction (of 2^64) is below go to it, and the
    /// rest to the other.
    below: u64,
    other: u32,
}

impl Zipf {
    /// # Contract
    /// `1 <= keys <= 2^52` and `0.01 <= exponent <= 20`.
    pub(super) fn new(keys: u64, exponent: f64) -> Self {
        let mut steps = Vec::new();
        let mut weights = Vec::new();
        let mut first = 1;
        while first <= keys {
            let octave = 1 << first.ilog2();
            let width = (octave / STEPS_PER_OCTAVE).max(1);
            let ranks = width.min(keys - first + 1);
            let last = (first + ranks - 1) as f64;
            steps.push(Step {
                first,
                ranks,
                sure: pow(last / first as f64, -exponent),
                below: u64::MAX,
                other: steps.len() as u32,
            });
            weights.push(ranks as f64 * pow(first as f64, -exponent));
            first += ranks;
        }
        let mut zipf = Self { exponent, steps };
        zipf.share_out(weights);
        zipf
    }

    /// Sets up the alias table: each step gives what it has below the average to its own, and
    /// fills the rest from one that has more.
    fn share_out(&mut self, mut weights: Vec<f64>) {
        let average = weights.iter().sum::<f64>() / weights.len() as f64;
        let (mut poor, mut rich): (Vec<usize>, Vec<usize>) =
            (0..weights.len()).partition(|&index| weights[index] < average);
        while let (Some(&from), Some(to)) = (rich.last(), poor.pop()) {
            let share = weights[to] / average;
            self.steps[to].below = (share * 18_446_744_073_709_551_616.0) as u64;
            self.steps[to].other = from as u32;
            weights[from] -= average - weights[to];
            if weights[from] < average {
                rich.pop();
                poor.push(from);
            }
        }
        // Those left over have the average but for rounding, and keep it to themselves.
    }

    #[inline]
    pub(super) fn sample(&self, random: &mut Random) -> u64 {
        loop {
            let product = u128::from(random.bits()) * self.steps.len() as u128;
            let mut step = &self.steps[(product >> 64) as usize];
            if product as u64 >= step.below {
                step = &self.steps[step.other as usize];
            }
            if step.ranks == 1 {
                return step.first;
            }
            let rank = step.first + random.below(step.ranks);
            let chance = random.unit();
            if chance < step.sure || chance < pow(rank as f64 / step.first as f64, -self.exponent) {
                return rank;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::random::Purpose;
    use super::*;

    const DRAWN: usize = 400_000;

    /// Chi-square over the ranks (the rare ones put together), against `rank^-s` summed up
    /// plainly: within 4.5 standard deviations of what chance gives.
    fn assert_zipf(keys: u64, exponent: f64) {
        let zipf = Zipf::new(keys, exponent);
        let mut random = Random::new(5, 0, Purpose::Keys);
        let mut counts = vec![0u32; keys as usize + 1];
        for _ in 0..DRAWN {
            counts[zipf.sample(&mut random) as usize] += 1;
        }
        assert_eq!(counts[0], 0);
        let weights: Vec<f64> = (1..=keys).map(|rank| (rank as f64).powf(-exponent)).collect();
        let total: f64 = weights.iter().sum();
        let (mut chi_square, mut cells) = (0.0, 0.0);
        let (mut expected, mut actual) = (0.0, 0.0);
        for (index, weight) in weights.iter().enumerate() {
            expected += weight / total * DRAWN as f64;
            actual += f64::from(counts[index + 1]);
            if expected >= 20.0 || index + 1 == weights.len() {
                chi_square += (actual - expected) * (actual - expected) / expected.max(1.0);
                cells += 1.0;
                (expected, actual) = (0.0, 0.0);
            }
        }
        let freedom: f64 = cells - 1.0;
        let limit = freedom + 4.5 * (2.0 * freedom).sqrt() + 3.0;
        assert!(chi_square <= limit, "{keys} keys, exponent {exponent}: {chi_square} over {cells} cells");
    }

    #[test]
    fn ranks_follow_the_law_for_every_exponent() {
        for exponent in [0.01, 0.5, 0.9, 0.99, 1.0, 1.000_001, 1.1, 1.5, 2.0, 3.0, 20.0] {
            for keys in [1, 2, 3, 10, 31, 32, 33, 1_000, 50_000] {
                assert_zipf(keys, exponent);
            }
        }
    }

    #[test]
    fn most_ranks_of_many_keys_are_as_far_out_as_the_law_says() {
        // With s = 0.5 the share of ranks up to x is sqrt(x / keys), but for the first few.
        let zipf = Zipf::new(1 << 52, 0.5);
        let mut random = Random::new(6, 0, Purpose::Keys);
        let drawn: Vec<u64> = (0..100_000).map(|_| zipf.sample(&mut random)).collect();
        assert!(drawn.iter().all(|rank| (1..=1 << 52).contains(rank)));
        for (limit, expected) in [(1u64 << 44, 0.0625), (1 << 48, 0.25), (1 << 50, 0.5)] {
            let share = drawn.iter().filter(|&&rank| rank <= limit).count() as f64 / 1e5;
            assert!((share - expected).abs() < 0.0065, "{limit}: {share}");
        }
    }

    #[test]
    fn the_table_gives_each_step_its_weight() {
        for (keys, exponent) in [(1_000, 1.0), (77, 2.0), (1 << 40, 0.3), (5, 20.0)] {
            let zipf = Zipf::new(keys, exponent);
            let count = zipf.steps.len();
            let mut shares = vec![0.0; count];
            for (index, step) in zipf.steps.iter().enumerate() {
                let own = step.below as f64 / 2f64.powi(64) / count as f64;
                shares[index] += own;
                shares[step.other as usize] += 1.0 / count as f64 - own;
            }
            let weight = |step: &Step| step.ranks as f64 * (step.first as f64).powf(-exponent);
            let total: f64 = zipf.steps.iter().map(weight).sum();
            for (step, share) in zipf.steps.iter().zip(shares) {
                assert!((share - weight(step) / total).abs() < 1e-12);
            }
        }
    }
}
