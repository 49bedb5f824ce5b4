//! The two workloads that every stream processor is measured with: their keys, times, checksums.
//!
//! * **W1**, a running count: after each event its key's new count is emitted.
//! * **W2**, a count per key in tumbling windows of one second of event time.
//!
//! Event `i` of a workload is a function of `i` alone, so that any number of workers can make
//! their share (worker `w` of `p` makes the events `i = w mod p`), in any language, with nothing
//! to read from disk. All arithmetic is on `u64` and wraps. The formulas are fixed: numbers
//! measured with them are compared with numbers measured elsewhere.
//!
//! `mix` is the finalizer of splitmix64 (G. Steele, D. Lea, C. Flood, OOPSLA 2014), and the
//! random number of event `i` is the `i`-th number of the splitmix64 generator seeded with 42.

/// 2^64 divided by the golden ratio, odd: the step of splitmix64.
pub const GOLDEN_GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;
/// The seed of both workloads.
pub const SEED: u64 = 42;
/// Length of W2's windows in milliseconds.
pub const WINDOW_MS: u64 = 1_000;
/// Distance of W2's watermarks in milliseconds of event time.
pub const WATERMARK_STEP_MS: u64 = 100;

const KEY_SALT: u64 = 0xD1B5_4A32_D192_ED03;

/// Splitmix64's finalizer: one to one on `u64`, and every bit of the input moves every bit of the
/// output.
///
/// ```
/// use tidegate::generate::workload::mix;
/// assert_eq!(mix(0), 0);
/// assert_ne!(mix(1), mix(2));
/// ```
#[inline]
pub const fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The random number of event `i`.
#[inline]
pub const fn event_random(i: u64) -> u64 {
    mix(SEED.wrapping_add(i.wrapping_add(1).wrapping_mul(GOLDEN_GAMMA)))
}

/// The index of `0..keys` that a random number `r` stands for, each equally likely.
///
/// # Contract
/// `1 <= keys < 2^32`, here and below.
#[inline]
pub const fn uniform_index(r: u64, keys: u64) -> u64 {
    (r >> 32).wrapping_mul(keys) >> 32
}

/// The index of `0..keys` that a random number `r` stands for, by octaves of Zipf(1).
///
/// Rank 1 is one octave, ranks 2 and 3 the next, then 4 to 7, and so on. The octaves are equally
/// likely, and so are the ranks within one: a staircase under 1/rank that needs no logarithm.
#[inline]
pub const fn zipf_index(r: u64, keys: u64) -> u64 {
    let octaves = (u64::BITS - keys.leading_zeros()) as u64;
    let octave = (r & 0xFFFF_FFFF).wrapping_mul(octaves) >> 32;
    // Below 64, as `octaves` is at most 64 and the random factor below 1.
    let low = 1u64 << octave;
    let double = low.wrapping_mul(2);
    let end = if double <= keys { double } else { keys.wrapping_add(1) };
    low.wrapping_add((r >> 32).wrapping_mul(end.wrapping_sub(low)) >> 32).wrapping_sub(1)
}

/// The key that an index stands for: spread over all of `u64`, one to one.
#[inline]
pub const fn index_key(index: u64) -> u64 {
    mix(index ^ KEY_SALT)
}

/// The key of event `i` among `keys` keys.
///
/// ```
/// use tidegate::generate::workload::event_key;
/// let distinct: std::collections::HashSet<u64> =
///     (0..10_000).map(|i| event_key(i, 100, false)).collect();
/// assert_eq!(distinct.len(), 100);
/// ```
#[inline]
pub const fn event_key(i: u64, keys: u64, zipf: bool) -> u64 {
    let r = event_random(i);
    index_key(if zipf { zipf_index(r, keys) } else { uniform_index(r, keys) })
}

/// The arrival time of event `i` in milliseconds, at `events_per_ms` events a millisecond: the
/// event time of W1, and what W2's watermark goes by. 0 for a rate of 0.
#[inline]
pub const fn arrival_ms(i: u64, events_per_ms: u64) -> u64 {
    match i.checked_div(events_per_ms) {
        Some(time_ms) => time_ms,
        None => 0,
    }
}

/// The event time of W2's event `i` in milliseconds: its arrival, plus 0 to 255 ms of disorder.
#[inline]
pub const fn windowed_event_ms(i: u64, events_per_ms: u64) -> u64 {
    arrival_ms(i, events_per_ms).wrapping_add(event_random(i) & 255)
}

/// The watermark of W2 after the event that arrives at `arrival_ms`, a multiple of
/// [`WATERMARK_STEP_MS`]: no later event has a time at or below it. `None` before the first one.
#[inline]
pub const fn watermark_ms(arrival_ms: u64) -> Option<u64> {
    (arrival_ms - arrival_ms % WATERMARK_STEP_MS).checked_sub(1)
}

/// The start of the window of W2 that holds an event time.
#[inline]
pub const fn window_start_ms(time_ms: u64) -> u64 {
    time_ms - time_ms % WINDOW_MS
}

/// What one result of W2 adds to the checksum. (W1 adds the emitted counts themselves.)
#[inline]
pub const fn window_checksum(window_start_ms: u64, key: u64, count: u64) -> u64 {
    window_start_ms.wrapping_mul(31).wrapping_add(key.wrapping_mul(17)).wrapping_add(count)
}

/// Writes the state of a key of W1 over `value`: the count in the first 8 bytes (little-endian),
/// then words that no compressor makes smaller. A value shorter than 8 bytes takes the low bytes
/// of the count.
///
/// ```
/// use tidegate::generate::workload::{fill_value, value_count};
/// let mut value = [0; 100];
/// fill_value(&mut value, 7, 3);
/// assert_eq!(value_count(&value), 3);
/// ```
pub fn fill_value(value: &mut [u8], key: u64, count: u64) {
    let mut word = count;
    for (index, bytes) in (1u64..).zip(value.chunks_mut(8)) {
        bytes.copy_from_slice(&word.to_le_bytes()[..bytes.len()]);
        word = mix(key.wrapping_add(index.wrapping_mul(GOLDEN_GAMMA)));
    }
}

/// The count in a value that [`fill_value`] wrote. Bytes that are missing count as 0.
pub fn value_count(value: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let length = value.len().min(8);
    bytes[..length].copy_from_slice(&value[..length]);
    u64::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_first_numbers_are_those_of_splitmix64() {
        // The generator's published sequence for seed 42.
        assert_eq!(event_random(0), 13_679_457_532_755_275_413);
        assert_eq!(event_random(1), 2_949_826_092_126_892_291);
        assert_eq!(event_random(2), 5_139_283_748_462_763_858);
    }

    #[test]
    fn octaves_are_equally_likely_and_even_within() {
        let mut counts = [0u32; 7];
        for i in 0..300_000 {
            counts[zipf_index(event_random(i), 7) as usize] += 1;
        }
        for (rank, octave_size) in [(0, 1), (1, 2), (2, 2), (3, 4), (4, 4), (5, 4), (6, 4)] {
            let expected = 100_000.0 / f64::from(octave_size);
            let off = (f64::from(counts[rank]) - expected).abs() / expected.sqrt();
            assert!(off < 5.0, "{counts:?}");
        }
    }

    #[test]
    fn the_watermark_is_a_multiple_less_one() {
        assert_eq!(watermark_ms(0), None);
        assert_eq!(watermark_ms(99), None);
        assert_eq!(watermark_ms(100), Some(99));
        assert_eq!(watermark_ms(1_234), Some(1_199));
    }

    #[test]
    fn values_hold_their_count_at_every_length() {
        for length in 0..40 {
            let mut value = vec![0xAA; length];
            fill_value(&mut value, 5, 0x0102_0304);
            let seen = value_count(&value);
            let mask = if length >= 8 { u64::MAX } else { (1u64 << (8 * length)) - 1 };
            assert_eq!(seen, 0x0102_0304 & mask, "{length}");
            if length >= 16 {
                assert_eq!(value[8..16], mix(5u64.wrapping_add(GOLDEN_GAMMA)).to_le_bytes());
            }
        }
    }

    proptest! {
        #[test]
        fn an_index_is_below_the_number_of_keys(r: u64, keys in 1u64..1 << 32) {
            prop_assert!(uniform_index(r, keys) < keys);
            prop_assert!(zipf_index(r, keys) < keys);
        }

        #[test]
        fn no_argument_makes_it_panic(i: u64, keys: u64, rate: u64, zipf: bool) {
            event_key(i, keys, zipf);
            let time = windowed_event_ms(i, rate);
            window_checksum(window_start_ms(time), keys, i);
            watermark_ms(time);
        }
    }
}
