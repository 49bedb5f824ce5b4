//! Logarithm, exponential and power that give the same bits everywhere.
//!
//! IEEE 754 says to the last bit what `+`, `-`, `*`, `/`, `sqrt` and rounding to an integer give,
//! and Rust neither reorders nor fuses them. It does not say so of `ln`, `exp` and `pow`: the
//! ones of the standard library differ between platforms in the last bit, which is enough to
//! make two traces of one seed part ways. These are made of exactly specified operations only.
//! (The one platform that does not keep to IEEE 754 is 32-bit x86 without SSE2.)
//!
//! They are accurate to a few units in the last place over the arguments that the distributions
//! use, which their tests hold against the standard library.

/// The high part of ln 2; its last 32 bits are 0, so that a small integer times it is exact.
const LN_2_HIGH: f64 = f64::from_bits(0x3FE6_2E42_FEE0_0000);
/// ln 2 less [`LN_2_HIGH`].
const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;

const MANTISSA: u64 = (1 << 52) - 1;
const ONE: u64 = 1023 << 52;

/// 2 artanh(s) = 2 (s + s³/3 + s⁵/5 + …), for |s| < 0.18. The first term left out is below 2^-56
/// of the sum.
#[inline]
fn two_artanh(s: f64) -> f64 {
    let z = s * s;
    let z2 = z * z;
    let z4 = z2 * z2;
    // In pairs, and not one after the other, so that the processor can work on several at once.
    let low = (1.0 + z * (1.0 / 3.0)) + z2 * (1.0 / 5.0 + z * (1.0 / 7.0));
    let middle = (1.0 / 9.0 + z * (1.0 / 11.0)) + z2 * (1.0 / 13.0 + z * (1.0 / 15.0));
    let high = (1.0 / 17.0 + z * (1.0 / 19.0)) + z2 * (1.0 / 21.0);
    2.0 * s * (low + z4 * (middle + z4 * high))
}

/// The natural logarithm.
///
/// # Contract
/// `x` is positive, finite and not subnormal; for others the result means nothing.
#[inline]
pub(super) fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let mut exponent = ((bits >> 52) & 0x7FF) as i64 - 1023;
    let mut mantissa = f64::from_bits(bits & MANTISSA | ONE);
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa *= 0.5;
        exponent += 1;
    }
    let f = mantissa - 1.0;
    let fraction = two_artanh(f / (2.0 + f));
    let exponent = exponent as f64;
    exponent * LN_2_HIGH + (fraction + exponent * LN_2_LOW)
}

/// e^r - 1 for |r| < 0.36, by its power series.
#[inline]
fn exp_m1_near_0(r: f64) -> f64 {
    let r2 = r * r;
    let r4 = r2 * r2;
    let low = (1.0 / 2.0 + r * (1.0 / 6.0)) + r2 * (1.0 / 24.0 + r * (1.0 / 120.0));
    let middle = (1.0 / 720.0 + r * (1.0 / 5_040.0)) + r2 * (1.0 / 40_320.0 + r * (1.0 / 362_880.0));
    let high = (1.0 / 3_628_800.0 + r * (1.0 / 39_916_800.0))
        + r2 * (1.0 / 479_001_600.0 + r * (1.0 / 6_227_020_800.0));
    r + r2 * (low + r4 * (middle + r4 * high))
}

/// e^x.
///
/// # Contract
/// `x` is not NaN. What lies outside -700..=700 is taken for the end of that range.
#[inline]
pub(super) fn exp(x: f64) -> f64 {
    let x = x.clamp(-700.0, 700.0);
    let power = (x * std::f64::consts::LOG2_E + 0.5).floor();
    let r = (x - power * LN_2_HIGH) - power * LN_2_LOW;
    // |power| <= 1010, so the sum is the biased exponent of a normal number.
    let scale = f64::from_bits(((power as i64 + 1023) as u64) << 52);
    scale * (1.0 + exp_m1_near_0(r))
}

/// e^x - 1, accurate also where `x` is near 0. The contract is that of [`exp`].
#[inline]
pub(super) fn exp_m1(x: f64) -> f64 {
    if x > -0.34 && x < 0.34 { exp_m1_near_0(x) } else { exp(x) - 1.0 }
}

/// `base` to the power of `exponent`.
///
/// # Contract
/// That of [`ln`] for `base`; the result is within e^-700 and e^700.
#[inline]
pub(super) fn pow(base: f64, exponent: f64) -> f64 {
    exp(exponent * ln(base))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Units in the last place of `expected` by which `actual` is off.
    fn off_by(actual: f64, expected: f64) -> f64 {
        (actual - expected).abs() / (expected.abs() * f64::EPSILON).max(f64::MIN_POSITIVE)
    }

    #[test]
    fn ln_agrees_with_the_standard_library() {
        for step in 1..200_000u32 {
            for x in [
                f64::from(step) / 100_000.0,
                f64::from(step) * 1e9,
                1.0 + f64::from(step) * 1e-9,
                f64::from(step) * 1e-20,
            ] {
                assert!(off_by(ln(x), x.ln()) <= 4.0, "{x}: {} {}", ln(x), x.ln());
            }
        }
        assert_eq!(ln(1.0).to_bits(), 0);
    }

    #[test]
    fn exp_and_exp_m1_agree_with_the_standard_library() {
        for step in -200_000..200_000i32 {
            for x in [f64::from(step) / 10_000.0, f64::from(step) / 300.0, f64::from(step) * 1e-12] {
                assert!(off_by(exp(x), x.exp()) <= 4.0, "exp {x}");
                assert!(off_by(exp_m1(x), x.exp_m1()) <= 8.0, "exp_m1 {x}");
            }
        }
        assert_eq!(exp(0.0), 1.0);
        assert!(exp(f64::INFINITY).is_finite() && exp(f64::NEG_INFINITY) > 0.0);
    }

    #[test]
    fn pow_agrees_with_the_standard_library() {
        for base in [0.001, 0.5, 1.0, 3.0, 1e6, 4e18] {
            for exponent in [-2.5, -1.0, -0.1, 0.0, 0.9, 2.0] {
                let (actual, expected) = (pow(base, exponent), f64::powf(base, exponent));
                assert!((actual / expected - 1.0).abs() < 1e-13, "{base}^{exponent}");
            }
        }
    }

    #[test]
    fn results_are_these_to_the_last_bit() {
        // These fail if a change, however accurate, would make old seeds give new traces.
        let mut checksum = 0u64;
        for step in 1..10_000u32 {
            let x = f64::from(step) / 777.0;
            for value in [ln(x), exp(x), exp_m1(x), pow(x, 0.77)] {
                checksum = super::super::workload::mix(checksum ^ value.to_bits());
            }
        }
        assert_eq!(checksum, 0x8962_2B69_DBA1_CD1E, "{checksum:#x}");
    }
}
