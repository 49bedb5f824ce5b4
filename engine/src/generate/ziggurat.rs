//! Exponentially and normally distributed numbers, most of them for one multiplication.
//!
//! The area under a falling curve is cut into 256 layers of the same area, each a rectangle as wide
//! as the curve at its lower edge. A point of a random layer almost always lies so far left that it
//! is under the curve for sure; only the rest needs the curve itself.
//!
//! Source: G. Marsaglia, W. Tsang, "The ziggurat method for generating random variables", Journal
//! of Statistical Software 5 (2000). Layer and position are taken from different bits of a 64-bit
//! number, which J. Doornik, "An improved ziggurat method to generate normal random samples"
//! (2005) found to matter. The tables are computed with this module's own exact functions.

use super::exact_math::{exp, ln};
use super::random::Random;
use std::sync::LazyLock;

const LAYERS: usize = 256;

/// Width of the curve at the lower edge of each layer, and its height there. Layer 0 is the
/// widest: its width is that of a rectangle with the area of the layer, tail included.
struct Layers {
    edges: [(f64, f64); LAYERS + 1],
}

impl Layers {
    /// `start` is where the tail begins, `area` the area of each layer.
    fn new(start: f64, area: f64, curve: fn(f64) -> f64, inverse: fn(f64) -> f64) -> Self {
        let mut edges = [(0.0, 0.0); LAYERS + 1];
        edges[0] = (area / curve(start), 0.0);
        edges[1] = (start, curve(start));
        for layer in 2..LAYERS {
            let (width, height) = edges[layer - 1];
            let height = height + area / width;
            edges[layer] = (inverse(height), height);
        }
        edges[LAYERS] = (0.0, 1.0);
        Self { edges }
    }
}

/// Where the tail of e^-x begins, and the area of each layer, for 256 of them.
const EXPONENTIAL: (f64, f64) = (7.697_117_470_131_05, 3.949_659_822_581_557e-3);
/// The same for e^(-x²/2).
const NORMAL: (f64, f64) = (3.654_152_885_361_009, 4.928_673_233_974_655e-3);

static EXPONENTIAL_LAYERS: LazyLock<Layers> =
    LazyLock::new(|| Layers::new(EXPONENTIAL.0, EXPONENTIAL.1, |x| exp(-x), |y| -ln(y)));
static NORMAL_LAYERS: LazyLock<Layers> =
    LazyLock::new(|| Layers::new(NORMAL.0, NORMAL.1, |x| exp(-0.5 * x * x), |y| (-2.0 * ln(y)).sqrt()));

/// An exponentially distributed number of mean 1.
#[inline]
pub(super) fn exponential(random: &mut Random) -> f64 {
    let layers = &*EXPONENTIAL_LAYERS;
    let mut base = 0.0;
    loop {
        let (bits, position) = random.bits_and_unit();
        let layer = bits as usize % LAYERS;
        let (width, low) = layers.edges[layer];
        let (sure, high) = layers.edges[layer + 1];
        let x = position * width;
        if x < sure {
            return base + x;
        }
        if layer == 0 {
            // What is left beyond the start of the tail is distributed as the whole is.
            base += EXPONENTIAL.0;
        } else if low + (high - low) * random.unit() < exp(-x) {
            return base + x;
        }
    }
}

/// A normally distributed number of mean 0 and deviation 1.
#[inline]
pub(super) fn normal(random: &mut Random) -> f64 {
    let layers = &*NORMAL_LAYERS;
    loop {
        let (bits, position) = random.bits_and_unit();
        let layer = bits as usize % LAYERS;
        let sign = if bits & LAYERS as u64 == 0 { 1.0 } else { -1.0 };
        let (width, low) = layers.edges[layer];
        let (sure, high) = layers.edges[layer + 1];
        let x = position * width;
        if x < sure {
            return sign * x;
        }
        if layer == 0 {
            return sign * normal_tail(random);
        }
        if low + (high - low) * random.unit() < exp(-0.5 * x * x) {
            return sign * x;
        }
    }
}

/// A normally distributed number beyond the start of the tail (G. Marsaglia, "Generating a
/// variable from the tail of the normal distribution", Technometrics 6, 1964).
#[cold]
fn normal_tail(random: &mut Random) -> f64 {
    loop {
        let x = exponential(random) / NORMAL.0;
        if 2.0 * exponential(random) > x * x {
            return NORMAL.0 + x;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::random::Purpose;
    use super::*;

    const DRAWN: usize = 2_000_000;

    /// The share of the numbers at or below each limit must be the given one, within 4.5 standard
    /// deviations.
    fn assert_law(mut drawn: Vec<f64>, law: &[(f64, f64)]) {
        drawn.sort_by(f64::total_cmp);
        for &(limit, expected) in law {
            let share = drawn.partition_point(|&x| x <= limit) as f64 / drawn.len() as f64;
            let deviation = (expected * (1.0 - expected) / drawn.len() as f64).sqrt();
            assert!((share - expected).abs() < 4.5 * deviation, "{limit}: {share}, expected {expected}");
        }
    }

    #[test]
    fn exponential_follows_its_law_into_the_tail() {
        let mut random = Random::new(21, 0, Purpose::Values);
        let drawn = (0..DRAWN).map(|_| exponential(&mut random)).collect();
        let law: Vec<(f64, f64)> =
            (1..60).map(|step| f64::from(step) * 0.2).map(|x| (x, 1.0 - (-x).exp())).collect();
        assert_law(drawn, &law);
    }

    #[test]
    fn normal_follows_its_law_into_the_tail() {
        let mut random = Random::new(22, 0, Purpose::Values);
        let drawn = (0..DRAWN).map(|_| normal(&mut random)).collect();
        // From tables of the normal distribution.
        let upper = [
            (0.0, 0.5),
            (0.25, 0.598_706_325_7),
            (0.5, 0.691_462_461_3),
            (1.0, 0.841_344_746_1),
            (1.5, 0.933_192_798_7),
            (2.0, 0.977_249_868_1),
            (3.0, 0.998_650_102_0),
            (3.7, 0.999_892_200_3),
            (4.0, 0.999_968_328_8),
        ];
        let lower = upper.map(|(x, share)| (-x, 1.0 - share));
        assert_law(drawn, &[upper, lower].concat());
    }

    #[test]
    fn layers_end_at_the_top_of_the_curve() {
        // They would not if the start of the tail and the area did not belong together.
        for (layers, (_, area)) in [(&*EXPONENTIAL_LAYERS, EXPONENTIAL), (&*NORMAL_LAYERS, NORMAL)] {
            let (width, height) = layers.edges[LAYERS - 1];
            assert!((height + area / width - 1.0).abs() < 1e-9, "{height}");
            assert!(layers.edges.is_sorted_by(|a, b| a.0 > b.0 && a.1 < b.1));
        }
    }
}
