//! Specifications: what is refused, and that nothing else fails.

use crate::distributions::{distributions, one};
use crate::{max_lag_us, records};
use proptest::prelude::*;
use tidegate::generate::{
    ActivePeriods, ArrivalProcess, CountDistribution, DelayDistribution, KeyDistribution, KeyOrder, KeySpec,
    LagDistribution, SessionSpec, StreamSpec, TraceSpec, ValueDistribution, preset,
};

#[test]
fn a_specification_survives_json() {
    for (name, spec) in distributions() {
        let text = spec.to_json().unwrap();
        assert_eq!(TraceSpec::from_json(&text).unwrap(), spec, "{name}");
    }
    assert_eq!(TraceSpec::from_json("{}").unwrap(), TraceSpec::default());
}

#[test]
fn a_number_survives_json_to_the_last_bit() {
    // It does not without serde_json's feature `float_roundtrip`.
    for divisor in 1..20_000 {
        let rate_per_s = 1e6 / f64::from(divisor);
        let spec = one(|stream| stream.arrivals = ArrivalProcess::Steady { rate_per_s });
        assert_eq!(TraceSpec::from_json(&spec.to_json().unwrap()).unwrap(), spec, "{rate_per_s}");
    }
}

#[test]
fn what_makes_no_sense_is_named_with_its_place() {
    for (text, expected) in [
        (r#"{"streams": []}"#, "streams: 0 streams"),
        (r#"{"streams": [{}, {"keys": {"count": 0}}]}"#, "streams[1].keys.count: 0"),
        (
            r#"{"streams": [{"keys": {"distribution": {"kind": "zipf", "exponent": 0}}}]}"#,
            "streams[0].keys.distribution.exponent: 0",
        ),
        (
            r#"{"streams": [{"arrivals": {"kind": "steady", "rate_per_s": -1}}]}"#,
            "streams[0].arrivals.rate_per_s: -1",
        ),
        (
            r#"{"streams": [{"arrivals": {"kind": "follow", "stream": 0, "share": 1}}]}"#,
            "streams[0].arrivals.stream: 0 does not come before",
        ),
        (
            r#"{"streams": [{"lag": {"usual": {"kind": "uniform", "min_us": 5, "max_us": 4}}}]}"#,
            "streams[0].lag.usual: min_us 5",
        ),
        (
            r#"{"streams": [{"values": {"kind": "quantiles", "points": [[0, 1], [0.5, 0], [1, 3]]}}]}"#,
            "streams[0].values.points[1]: value 0 falls",
        ),
        (r#"{"streams": [{"name": "a,b"}]}"#, r#"streams[0].name: "a,b""#),
        (r#"{"output": {"time_column": "key"}}"#, "output.key_column: another column"),
        (r#"{"output": {"decimals": 19}}"#, "output.decimals: 19"),
        (r#"{"strems": []}"#, "unknown field `strems`"),
        (r#"{"streams": [{"arrivals": {"kind": "steady", "rate": 1}}]}"#, "unknown field `rate`"),
        (r#"{"streams": [{"arrivals": {"kind": "tidal"}}]}"#, "unknown variant `tidal`"),
        (r#"{"records": -1}"#, "line 1 column 14"),
    ] {
        let error = TraceSpec::from_json(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
    let error = preset("ordres").unwrap_err().to_string();
    assert!(error.contains("orders, sensors, clicks"), "{error}");
    for number in [f64::NAN, f64::INFINITY, -0.5, 1.5] {
        let spec = one(|stream| stream.lag.straggler_share = number);
        assert!(spec.validate().is_err(), "{number}");
    }
}

/// Distributions with arguments from one end of their ranges to the other. Their parts are boxed: as one
/// value the strategy is larger than the stack of a test without optimization.
fn any_stream() -> impl Strategy<Value = StreamSpec> {
    let us = || prop_oneof![Just(0u64), Just(1 << 53), 0u64..10, 0u64..10_000_000].boxed();
    let size = || prop_oneof![Just(1e-3f64), Just(1e-9), Just(1e9), Just(1e15), 0.0f64..1e6].boxed();
    let share = || prop_oneof![Just(0.0f64), Just(1.0), 0.0f64..1.0].boxed();
    let whole = || prop_oneof![Just(i64::MIN), Just(i64::MAX), any::<i64>(), -10i64..10].boxed();
    let delay = move || {
        prop_oneof![
            Just(DelayDistribution::None),
            us().prop_map(|us| DelayDistribution::Fixed { us }),
            (us(), us()).prop_map(|(min_us, max_us)| DelayDistribution::Uniform { min_us, max_us }),
            (size(), us()).prop_map(|(mean_us, max_us)| DelayDistribution::Exponential { mean_us, max_us }),
            (size(), size(), us()).prop_map(|(scale_us, exponent, max_us)| {
                DelayDistribution::HeavyTail { scale_us, exponent, max_us }
            }),
        ]
        .boxed()
    };
    let arrivals = prop_oneof![
        size().prop_map(|rate_per_s| ArrivalProcess::Steady { rate_per_s }),
        size().prop_map(|rate_per_s| ArrivalProcess::Poisson { rate_per_s }),
        (size(), us(), prop::collection::vec(share(), 1..5)).prop_map(|(rate_per_s, period_us, weights)| {
            ArrivalProcess::Diurnal { rate_per_s, period_us, weights }
        }),
        (size(), size(), 1.0f64..1e9, 1.0f64..1e9).prop_map(
            |(quiet_rate_per_s, burst_rate_per_s, mean_quiet_us, mean_burst_us)| {
                ArrivalProcess::Bursts { quiet_rate_per_s, burst_rate_per_s, mean_quiet_us, mean_burst_us }
            }
        ),
    ]
    .boxed();
    let distribution = prop_oneof![
        Just(KeyDistribution::Uniform),
        Just(KeyDistribution::Sequential),
        Just(KeyDistribution::ZipfOctaves),
        (0.01f64..20.0).prop_map(|exponent| KeyDistribution::Zipf { exponent }),
        size().prop_map(|mean_index| KeyDistribution::Exponential { mean_index }),
        (us(), share(), us(), any::<u64>()).prop_map(|(hot_keys, hot_share, move_every_us, move_by)| {
            KeyDistribution::MovingHotSet { hot_keys, hot_share, move_every_us, move_by }
        }),
    ]
    .boxed();
    let count = prop_oneof![Just(1u64), Just(1 << 52), 1u64..100, 1u64..1 << 32];
    let lives = prop_oneof![Just(0), Just(u64::MAX), us()];
    // Short periods: in a long silence of all keys the trace would be looked for in vain.
    let periods = prop::option::of(
        (1u64..1_000, 0.001f64..=1.0)
            .prop_map(|(period_us, active_share)| ActivePeriods { period_us, active_share }),
    );
    let keys = (count, distribution, lives, periods, 0u32..3)
        .prop_map(|(count, distribution, lifetime_us, active, order)| KeySpec {
            count,
            distribution,
            order: [KeyOrder::Ranked, KeyOrder::Shuffled, KeyOrder::Hashed][order as usize],
            lifetime_us,
            active,
            stopping: None,
        })
        .boxed();
    let values = prop_oneof![
        Just(ValueDistribution::Sequence),
        (whole(), whole()).prop_map(|(min, max)| ValueDistribution::Uniform { min, max }),
        (size(), whole(), whole()).prop_map(|(median, min, max)| ValueDistribution::LogNormal {
            median,
            sigma: 10.0,
            min,
            max,
        }),
        (0i64..100, -10i64..10, 0i64..100).prop_map(|(step, min, max)| ValueDistribution::RandomWalk {
            step,
            min,
            max
        }),
    ]
    .boxed();
    let sessions = prop::option::of((delay(), 1u32..5, size()).prop_map(|(gap, max, mean)| SessionSpec {
        events: CountDistribution::Geometric { mean, max },
        gap,
    }))
    .boxed();
    let lag = (delay(), share(), delay())
        .prop_map(|(usual, straggler_share, straggler)| LagDistribution { usual, straggler_share, straggler })
        .boxed();
    (us(), arrivals, sessions, keys, values, lag, us()).prop_map(
        |(offset_us, arrivals, sessions, keys, values, lag, resolution_us)| StreamSpec {
            offset_us,
            arrivals,
            sessions,
            keys,
            values,
            lag,
            resolution_us,
            ..StreamSpec::default()
        },
    )
}

proptest! {
    #[test]
    fn whatever_passes_can_be_generated(
        streams in prop::collection::vec(any_stream(), 1..16),
        partner_share in 0.0f64..2.0,
        start_us in prop_oneof![Just(1i64 << 61), Just(-1i64 << 61), Just(0)],
        max_in_flight in 1u64..100,
        seed: u64,
    ) {
        // A stream that is refused is left out, so that most cases are of use.
        let passes = |stream: &StreamSpec| {
            let alone = TraceSpec {
                streams: vec![stream.clone()],
                ..TraceSpec::default()
            };
            alone.validate().is_ok()
        };
        let mut streams: Vec<StreamSpec> = streams.into_iter().filter(passes).take(4).collect();
        if partner_share <= 1.0 && let Some(leader) = streams.first() {
            streams.push(StreamSpec {
                arrivals: ArrivalProcess::Follow {
                    stream: 0,
                    share: partner_share,
                    delay: leader.lag.usual.clone(),
                },
                ..leader.clone()
            });
        }
        prop_assume!(!streams.is_empty());
        let spec = TraceSpec { seed, records: 300, start_us, max_in_flight, streams, ..TraceSpec::default() };
        let made = records(&spec);
        prop_assert!(made.len() <= 300);
        let bound = spec.streams.iter().map(|s| s.lag.max_us() + s.resolution_us).max();
        prop_assert!(max_lag_us(&made) as u64 <= bound.unwrap());
        let text = spec.to_json().unwrap();
        prop_assert_eq!(TraceSpec::from_json(&text).unwrap(), spec);
    }
}
