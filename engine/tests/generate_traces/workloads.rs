//! The workloads' checksums, by the plainest program that counts.

use std::collections::HashMap;
use tidegate::generate::workload::{
    event_key, watermark_ms, window_checksum, window_start_ms, windowed_event_ms,
};

#[test]
fn running_counts_add_up_to_the_published_checksums() {
    for (events, keys, zipf, expected) in [
        (200_000, 50_000, false, 0x0000_0000_0009_25c7),
        (200_000, 100_000, false, 0x0000_0000_0006_17a2),
        (500_000, 200_000, false, 0x0000_0000_0011_2846),
        (500_000, 200_000, true, 0x0000_0000_2d8e_4663),
        (1_000_000, 400_000, false, 0x0000_0000_0022_54bc),
    ] {
        let mut counts: HashMap<u64, u64> = HashMap::new();
        let mut sum = 0u64;
        for i in 0..events {
            let count = counts.entry(event_key(i, keys, zipf)).or_default();
            *count += 1;
            sum += *count;
        }
        assert_eq!(sum, expected, "{events} events, {keys} keys, zipf {zipf}");
    }
}

#[test]
fn window_counts_add_up_to_the_published_checksums() {
    for (events, keys, events_per_ms, expected, outputs) in [
        (100_000, 10_000, 20, 0x4214_7e79_13a4_9f25, 45_059),
        (200_000, 5_000, 20, 0x7430_e1bb_460e_0517, 51_007),
        (200_000, 20_000, 20, 0xd737_ee18_4df6_e897, 127_838),
    ] {
        let mut counts: HashMap<(u64, u64), u64> = HashMap::new();
        for i in 0..events {
            let time_ms = windowed_event_ms(i, events_per_ms);
            // Nothing is late.
            assert!(watermark_ms(i / events_per_ms).is_none_or(|passed| passed < time_ms));
            let key = event_key(i, keys, false);
            *counts.entry((window_start_ms(time_ms), key)).or_default() += 1;
        }
        let sum = counts
            .iter()
            .fold(0u64, |sum, (&(start, key), &count)| sum.wrapping_add(window_checksum(start, key, count)));
        assert_eq!((sum, counts.len()), (expected, outputs), "{events} events");
    }
}
