//! Traces that have a name.
//!
//! Each shows one side of real traffic. The first three are bundled as files under `traces/`.

use super::arrivals::ArrivalProcess;
use super::delay::{DelayDistribution, LagDistribution};
use super::error::GenerateError;
use super::keys::{KeyDistribution, KeyOrder, KeySpec, StoppingKeys};
use super::output::{Compression, KeyFormat, OutputSpec, TextFormat, TimeFormat};
use super::spec::{CountDistribution, SessionSpec, StreamSpec, TraceSpec};
use super::values::ValueDistribution;

const SECOND_US: u64 = 1_000_000;
const MINUTE_US: u64 = 60 * SECOND_US;
const HOUR_US: u64 = 60 * MINUTE_US;

/// Name and specification of each.
type Preset = (&'static str, fn() -> TraceSpec);

const PRESETS: [Preset; 5] = [
    ("orders", orders),
    ("sensors", sensors),
    ("clicks", clicks),
    ("payments", payments),
    ("trades", trades),
];

/// The names of all presets.
///
/// ```
/// use tidegate::generate::{preset, preset_names};
/// for name in preset_names() {
///     preset(name)?.validate()?;
/// }
/// # Ok::<(), tidegate::generate::GenerateError>(())
/// ```
pub fn preset_names() -> impl Iterator<Item = &'static str> {
    PRESETS.iter().map(|(name, _)| *name)
}

/// The specification of a preset; its seed, number of records and output may be changed.
///
/// # Errors
/// [`GenerateError::UnknownPreset`], which names those that exist.
pub fn preset(name: &str) -> Result<TraceSpec, GenerateError> {
    PRESETS.iter().find(|preset| preset.0 == name).map(|preset| preset.1()).ok_or_else(|| {
        GenerateError::UnknownPreset {
            name: name.to_owned(),
            known: preset_names().collect::<Vec<_>>().join(", "),
        }
    })
}

fn text_key(prefix: &str, digits: u8) -> KeyFormat {
    KeyFormat::Text { prefix: prefix.to_owned(), digits }
}

fn exponential(mean_us: u64, max_us: u64) -> DelayDistribution {
    DelayDistribution::Exponential { mean_us: mean_us as f64, max_us }
}

/// Orders of a shop: few customers order much, and records come a little out of order.
fn order_stream() -> StreamSpec {
    StreamSpec {
        name: "orders".to_owned(),
        arrivals: ArrivalProcess::Poisson { rate_per_s: 50.0 },
        keys: KeySpec {
            count: 5_000,
            distribution: KeyDistribution::Zipf { exponent: 1.0 },
            order: KeyOrder::Shuffled,
            ..KeySpec::default()
        },
        values: ValueDistribution::LogNormal { median: 2_500.0, sigma: 0.9, min: 100, max: 500_000 },
        lag: LagDistribution {
            usual: exponential(700_000, 5 * SECOND_US),
            straggler_share: 0.000_2,
            straggler: DelayDistribution::Uniform { min_us: 6 * SECOND_US, max_us: 60 * SECOND_US },
        },
        resolution_us: 1_000,
        ..StreamSpec::default()
    }
}

fn orders() -> TraceSpec {
    TraceSpec {
        description: "Orders of a shop in 20 minutes: the customer and the amount in cents. \
                      Customers follow Zipf's law; records come up to 5 s late, and about one in \
                      5,000 up to a minute."
            .to_owned(),
        seed: 1,
        records: 60_000,
        streams: vec![order_stream()],
        output: OutputSpec {
            compression: Compression::Gzip,
            key: text_key("c", 5),
            key_column: "customer".to_owned(),
            value_column: "amount".to_owned(),
            ..OutputSpec::default()
        },
        ..TraceSpec::default()
    }
}

fn sensors() -> TraceSpec {
    TraceSpec {
        description: "Temperatures of 40 sensors, each once a second; the network delays a \
                      reading by up to 2 s. Three sensors break and are not heard of again."
            .to_owned(),
        seed: 2,
        records: 20_000,
        streams: vec![StreamSpec {
            name: "sensors".to_owned(),
            arrivals: ArrivalProcess::Steady { rate_per_s: 40.0 },
            keys: KeySpec {
                count: 40,
                distribution: KeyDistribution::Sequential,
                stopping: Some(StoppingKeys { keys: 3, from_us: 2 * MINUTE_US, until_us: 6 * MINUTE_US }),
                ..KeySpec::default()
            },
            values: ValueDistribution::RandomWalk { step: 15, min: 1_500, max: 3_000 },
            lag: LagDistribution {
                usual: DelayDistribution::Uniform { min_us: 0, max_us: 2 * SECOND_US },
                ..LagDistribution::default()
            },
            ..StreamSpec::default()
        }],
        output: OutputSpec {
            format: TextFormat::Jsonl,
            compression: Compression::Gzip,
            time: TimeFormat::Rfc3339,
            key: text_key("sensor-", 2),
            key_column: "sensor".to_owned(),
            decimals: 2,
            value_column: "reading".to_owned(),
            ..OutputSpec::default()
        },
        ..TraceSpec::default()
    }
}

fn clicks() -> TraceSpec {
    TraceSpec {
        description: "Clicks of a web site over a day: the user and the number of the page. \
                      Users come for sessions of about 8 clicks with pauses of up to 10 minutes, \
                      more of them in the evening than at night."
            .to_owned(),
        seed: 3,
        records: 40_000,
        streams: vec![StreamSpec {
            name: "clicks".to_owned(),
            arrivals: ArrivalProcess::Diurnal {
                rate_per_s: 0.058,
                period_us: 24 * HOUR_US,
                weights: vec![
                    3.0, 2.0, 1.0, 1.0, 1.0, 1.0, 2.0, 4.0, 6.0, 7.0, 7.0, 7.0, 8.0, 8.0, 7.0, 7.0, 8.0, 9.0,
                    10.0, 12.0, 13.0, 12.0, 9.0, 5.0,
                ],
            },
            sessions: Some(SessionSpec {
                events: CountDistribution::Geometric { mean: 8.0, max: 200 },
                gap: DelayDistribution::HeavyTail {
                    scale_us: 30_000_000.0,
                    exponent: 2.0,
                    max_us: 10 * MINUTE_US,
                },
            }),
            keys: KeySpec {
                count: 3_000,
                distribution: KeyDistribution::Zipf { exponent: 0.8 },
                order: KeyOrder::Shuffled,
                ..KeySpec::default()
            },
            values: ValueDistribution::Quantiles {
                points: super::quantiles::Quantiles {
                    points: vec![(0.0, 1), (0.4, 5), (0.8, 50), (1.0, 500)],
                },
            },
            lag: LagDistribution {
                usual: exponential(2 * SECOND_US, 20 * SECOND_US),
                straggler_share: 0.001,
                straggler: exponential(2 * MINUTE_US, 15 * MINUTE_US),
            },
            resolution_us: 1_000,
            ..StreamSpec::default()
        }],
        output: OutputSpec {
            format: TextFormat::Tsv,
            compression: Compression::Gzip,
            key: text_key("u", 4),
            key_column: "user".to_owned(),
            value_column: "page".to_owned(),
            ..OutputSpec::default()
        },
        ..TraceSpec::default()
    }
}

fn payments() -> TraceSpec {
    TraceSpec {
        description: "Orders, and the payments of 19 in 20 of them by the same customer within \
                      10 minutes: two streams to be joined."
            .to_owned(),
        seed: 4,
        records: 100_000,
        streams: vec![
            order_stream(),
            StreamSpec {
                name: "payments".to_owned(),
                arrivals: ArrivalProcess::Follow {
                    stream: 0,
                    share: 0.95,
                    delay: exponential(MINUTE_US, 10 * MINUTE_US),
                },
                ..order_stream()
            },
        ],
        output: OutputSpec {
            key: text_key("c", 5),
            key_column: "customer".to_owned(),
            value_column: "amount".to_owned(),
            stream_column: Some("stream".to_owned()),
            ..OutputSpec::default()
        },
        ..TraceSpec::default()
    }
}

fn trades() -> TraceSpec {
    let stream = |name: &str, rate: f64| StreamSpec {
        name: name.to_owned(),
        arrivals: ArrivalProcess::Bursts {
            quiet_rate_per_s: rate,
            burst_rate_per_s: 20.0 * rate,
            mean_quiet_us: 10e6,
            mean_burst_us: 0.5e6,
        },
        keys: KeySpec {
            count: 500,
            distribution: KeyDistribution::MovingHotSet {
                hot_keys: 20,
                hot_share: 0.7,
                move_every_us: MINUTE_US,
                move_by: 3,
            },
            ..KeySpec::default()
        },
        values: ValueDistribution::RandomWalk { step: 5, min: 100, max: 100_000 },
        lag: LagDistribution { usual: exponential(2_000, 100_000), ..LagDistribution::default() },
        ..StreamSpec::default()
    };
    TraceSpec {
        description: "Trades and quotes of 500 symbols in bursts, of which 20 are hot at a time: \
                      prices in cents, to be joined as of the time of the trade."
            .to_owned(),
        seed: 5,
        records: 200_000,
        streams: vec![stream("quotes", 400.0), stream("trades", 40.0)],
        output: OutputSpec {
            time: TimeFormat::Microseconds,
            key: text_key("S", 3),
            key_column: "symbol".to_owned(),
            decimals: 2,
            value_column: "price".to_owned(),
            stream_column: Some("stream".to_owned()),
            ..OutputSpec::default()
        },
        ..TraceSpec::default()
    }
}
