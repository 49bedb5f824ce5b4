//! Each distribution once, and the checksum of what it gives.

use crate::records;
use tidegate::generate::workload::mix;
use tidegate::generate::{
    ActivePeriods, ArrivalProcess, CountDistribution, DelayDistribution, KeyDistribution, KeyOrder,
    Quantiles, SessionSpec, StoppingKeys, StreamSpec, TraceSpec, ValueDistribution, preset,
};

fn checksum(spec: &TraceSpec) -> u64 {
    records(spec).iter().fold(0, |sum, record| {
        [u64::from(record.stream), record.time as u64, record.key, record.value as u64]
            .iter()
            .fold(sum, |sum, &field| mix(sum ^ field))
    })
}

/// A trace of one stream.
pub fn one(change: impl FnOnce(&mut StreamSpec)) -> TraceSpec {
    let mut spec = TraceSpec { records: 20_000, ..TraceSpec::default() };
    change(&mut spec.streams[0]);
    spec
}

fn keys(distribution: KeyDistribution) -> TraceSpec {
    one(|stream| stream.keys.distribution = distribution)
}

pub fn lag(usual: DelayDistribution) -> TraceSpec {
    one(|stream| stream.lag.usual = usual)
}

fn values(values: ValueDistribution) -> TraceSpec {
    one(|stream| stream.values = values)
}

pub fn sessions(count: u64) -> TraceSpec {
    one(|stream| {
        stream.keys.count = count;
        stream.keys.distribution = KeyDistribution::Sequential;
        stream.sessions = Some(SessionSpec {
            events: CountDistribution::Geometric { mean: 5.0, max: 50 },
            gap: DelayDistribution::Uniform { min_us: 1_000, max_us: 30_000 },
        });
    })
}

/// Each distribution once.
pub fn distributions() -> Vec<(&'static str, TraceSpec)> {
    let quantiles = || Quantiles { points: vec![(0.0, 0), (0.5, 20_000), (0.9, 100_000), (1.0, 5_000_000)] };
    vec![
        ("uniform keys", keys(KeyDistribution::Uniform)),
        ("zipf 0.9", keys(KeyDistribution::Zipf { exponent: 0.9 })),
        ("zipf 1", keys(KeyDistribution::Zipf { exponent: 1.0 })),
        ("zipf 1.5", keys(KeyDistribution::Zipf { exponent: 1.5 })),
        ("octaves", keys(KeyDistribution::ZipfOctaves)),
        ("hot set", keys(KeyDistribution::HotSet { hot_keys: 10, hot_share: 0.9 })),
        ("sequential", keys(KeyDistribution::Sequential)),
        (
            "moving hot set",
            keys(KeyDistribution::MovingHotSet {
                hot_keys: 10,
                hot_share: 0.9,
                move_every_us: 100_000,
                move_by: 3,
            }),
        ),
        ("exponential keys", keys(KeyDistribution::Exponential { mean_index: 50.0 })),
        ("shuffled", one(|stream| stream.keys.order = KeyOrder::Shuffled)),
        ("hashed", one(|stream| stream.keys.order = KeyOrder::Hashed)),
        ("lifetimes", one(|stream| stream.keys.lifetime_us = 3_000_000)),
        (
            "active periods and stops",
            one(|stream| {
                stream.keys.active = Some(ActivePeriods { period_us: 2_000_000, active_share: 0.5 });
                stream.keys.stopping =
                    Some(StoppingKeys { keys: 100, from_us: 1_000_000, until_us: 9_000_000 });
            }),
        ),
        ("poisson", one(|stream| stream.arrivals = ArrivalProcess::Poisson { rate_per_s: 700.0 })),
        (
            "bursts",
            one(|stream| {
                stream.arrivals = ArrivalProcess::Bursts {
                    quiet_rate_per_s: 50.0,
                    burst_rate_per_s: 5_000.0,
                    mean_quiet_us: 500_000.0,
                    mean_burst_us: 100_000.0,
                };
            }),
        ),
        (
            "diurnal",
            one(|stream| {
                stream.arrivals = ArrivalProcess::Diurnal {
                    rate_per_s: 700.0,
                    period_us: 10_000_000,
                    weights: vec![1.0, 0.0, 3.0],
                };
            }),
        ),
        ("sessions", sessions(1_000_000)),
        ("uniform lag", lag(DelayDistribution::Uniform { min_us: 100, max_us: 50_000 })),
        ("exponential lag", lag(DelayDistribution::Exponential { mean_us: 20_000.0, max_us: 100_000 })),
        ("short exponential lag", lag(DelayDistribution::Exponential { mean_us: 20_000.0, max_us: 10_000 })),
        (
            "heavy lag",
            lag(DelayDistribution::HeavyTail { scale_us: 1_000.0, exponent: 0.8, max_us: 20_000_000 }),
        ),
        ("measured lag", lag(DelayDistribution::Quantiles { points: quantiles() })),
        ("sequence", values(ValueDistribution::Sequence)),
        (
            "normal",
            values(ValueDistribution::Normal { mean: 0.0, deviation: 1_000.0, min: -5_000, max: 5_000 }),
        ),
        (
            "log-normal",
            values(ValueDistribution::LogNormal { median: 1_000.0, sigma: 1.0, min: 1, max: 1_000_000 }),
        ),
        ("random walk", values(ValueDistribution::RandomWalk { step: 10, min: 0, max: 1_000 })),
        ("measured values", values(ValueDistribution::Quantiles { points: quantiles() })),
        ("preset orders", preset("orders").unwrap()),
        ("preset sensors", preset("sensors").unwrap()),
        ("preset clicks", preset("clicks").unwrap()),
        ("preset payments", preset("payments").unwrap()),
        ("preset trades", preset("trades").unwrap()),
    ]
}

/// Of all records of each trace above. They never change: old seeds give old traces.
const CHECKSUMS: [(&str, u64); 32] = [
    ("uniform keys", 0xb43a_d9e8_e1e5_9ae7),
    ("zipf 0.9", 0x16bb_295b_4b9a_5d05),
    ("zipf 1", 0xfd16_15f1_46f6_e571),
    ("zipf 1.5", 0x0e53_c9a4_2401_1724),
    ("octaves", 0xae3e_230f_8b92_6013),
    ("hot set", 0x0dcd_4c11_4563_38f0),
    ("sequential", 0xc335_76c1_bb2b_e81b),
    ("moving hot set", 0x1964_3c5e_a987_1756),
    ("exponential keys", 0xf829_9ea9_46f1_ebbe),
    ("shuffled", 0x7eaa_b001_58b3_3e6f),
    ("hashed", 0x1c44_f3c9_f4a6_1be7),
    ("lifetimes", 0xf925_9175_7ade_df99),
    ("active periods and stops", 0x6e1e_6455_5127_50e9),
    ("poisson", 0xa970_786b_2476_c283),
    ("bursts", 0x5b79_514e_c9f5_c825),
    ("diurnal", 0x3dfe_49bd_2d61_00a4),
    ("sessions", 0xa95d_0775_8298_5a23),
    ("uniform lag", 0x5025_de41_9bf6_a8d3),
    ("exponential lag", 0x2b6d_222a_cb2e_106b),
    ("short exponential lag", 0xbdd5_f194_a927_2307),
    ("heavy lag", 0x8626_48b0_991e_14b3),
    ("measured lag", 0x0a4c_332b_3e13_5836),
    ("sequence", 0xf99f_7eed_2834_6326),
    ("normal", 0xc015_cea9_50e7_b38b),
    ("log-normal", 0x4739_1cc7_363e_88a4),
    ("random walk", 0x2123_4efd_0d98_c7a1),
    ("measured values", 0x790f_fe40_e85b_98a4),
    ("preset orders", 0xb3a1_fffd_342e_38ff),
    ("preset sensors", 0xe2ae_4b14_f47b_f046),
    ("preset clicks", 0xfa6c_08cd_083d_b75e),
    ("preset payments", 0x18ed_d77b_7b3a_c459),
    ("preset trades", 0xbf95_3c59_5400_d98f),
];

#[test]
fn each_distribution_gives_the_records_it_always_gave() {
    let actual: Vec<(&str, u64)> =
        distributions().iter().map(|(name, spec)| (*name, checksum(spec))).collect();
    let listing: String =
        actual.iter().map(|(name, sum)| format!("    (\"{name}\", {sum:#018x}),\n")).collect();
    assert!(actual == CHECKSUMS, "now:\n{listing}");
}

#[test]
fn another_seed_gives_another_trace() {
    for (name, mut spec) in distributions() {
        let before = checksum(&spec);
        assert_eq!(checksum(&spec), before, "{name}");
        spec.seed += 1;
        assert_ne!(checksum(&spec), before, "{name}");
    }
}
