//! What a trace shall be like: plain data, in JSON or made in a program.

use super::arrivals::ArrivalProcess;
use super::delay::{DelayDistribution, LagDistribution};
use super::error::{GenerateError, Place};
use super::keys::KeySpec;
use super::output::OutputSpec;
use super::random::Random;
use super::values::ValueDistribution;
use serde::{Deserialize, Serialize};

/// Most streams of a trace.
pub const MAX_STREAMS: usize = 64;
/// Largest distance of a trace's start from 1970 in microseconds.
const MAX_START_US: i64 = 1 << 61;

/// A trace: one or more streams of records, and how they are written.
///
/// Times are microseconds since 1970. A record has an *event time*, given by its stream's arrival
/// process, and arrives later by its lag; a trace holds its records in the order of arrival.
///
/// ```
/// use tidegate::generate::{KeyDistribution, TraceGenerator, TraceSpec};
/// let mut spec = TraceSpec { records: 1_000, ..TraceSpec::default() };
/// spec.streams[0].keys.distribution = KeyDistribution::Zipf { exponent: 1.0 };
/// let records: Vec<_> = TraceGenerator::new(&spec)?.collect();
/// assert_eq!(records.len(), 1_000);
/// # Ok::<(), tidegate::generate::GenerateError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TraceSpec {
    /// What it is, for the reader.
    pub description: String,
    /// Where all randomness comes from: one seed, one trace, on every machine.
    pub seed: u64,
    /// How many records, over all streams: the first ones by event time. All of them arrive.
    pub records: u64,
    /// When it starts, in microseconds since 1970.
    pub start_us: i64,
    /// Most records that may be on their way at once, and most events that may be planned ahead
    /// (sessions, partners); about 40 bytes each. At the limit a record arrives without its lag,
    /// and a session or pair that would need one more place ends there.
    pub max_in_flight: u64,
    /// The streams; at least one.
    pub streams: Vec<StreamSpec>,
    /// How the records are written.
    pub output: OutputSpec,
}

impl Default for TraceSpec {
    fn default() -> Self {
        Self {
            description: String::new(),
            seed: 42,
            records: 100_000,
            // 2024-01-01T00:00:00Z.
            start_us: 1_704_067_200_000_000,
            max_in_flight: 1 << 23,
            streams: vec![StreamSpec::default()],
            output: OutputSpec::default(),
        }
    }
}

/// One stream of a trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StreamSpec {
    /// Its name, as the file shows it.
    pub name: String,
    /// How much later than the trace it starts, in microseconds.
    pub offset_us: u64,
    /// When its events happen.
    pub arrivals: ArrivalProcess,
    /// Whether one arrival is one event, or a session of several.
    pub sessions: Option<SessionSpec>,
    /// The keys.
    pub keys: KeySpec,
    /// What the records carry.
    pub values: ValueDistribution,
    /// How late the records arrive.
    pub lag: LagDistribution,
    /// Event times are rounded down to a multiple of this, in microseconds; at least 1. The
    /// largest lag is rounded up with it.
    pub resolution_us: u64,
}

impl Default for StreamSpec {
    fn default() -> Self {
        Self {
            name: "events".to_owned(),
            offset_us: 0,
            arrivals: ArrivalProcess::default(),
            sessions: None,
            keys: KeySpec::default(),
            values: ValueDistribution::default(),
            lag: LagDistribution::default(),
            resolution_us: 1,
        }
    }
}

/// Sessions: each arrival of the stream begins one, which goes on with the same key.
///
/// Two sessions of one key may overlap. With [`super::KeyDistribution::Sequential`] over many keys
/// each session has a key of its own, like a job that is submitted, scheduled and finished.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionSpec {
    /// Number of events of a session.
    pub events: CountDistribution,
    /// Event time between two of them.
    pub gap: DelayDistribution,
}

/// A distribution of numbers of events, each at least 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum CountDistribution {
    /// Always the same.
    Fixed {
        /// The number.
        count: u32,
    },
    /// Each number of a range equally likely.
    Uniform {
        /// The least.
        min: u32,
        /// The largest (included).
        max: u32,
    },
    /// After each event it goes on with the same chance.
    Geometric {
        /// The mean; at least 1.
        mean: f64,
        /// No session has more.
        max: u32,
    },
}

impl CountDistribution {
    fn validate(&self, place: Place<'_>) -> Result<(), GenerateError> {
        match *self {
            Self::Fixed { count } => {
                place.require(count >= 1, || "a session has at least 1 event".to_owned())
            }
            Self::Uniform { min, max } => place.require(1 <= min && min <= max, || {
                format!("{min} to {max} is not a range of numbers from 1 on")
            }),
            Self::Geometric { mean, max } => {
                place.field("mean").require_within(mean, 1.0, 1e9)?;
                place.require(max >= 1, || "a session has at least 1 event".to_owned())
            }
        }
    }

    pub(super) fn sample(&self, random: &mut Random) -> u32 {
        match *self {
            Self::Fixed { count } => count,
            Self::Uniform { min, max } => {
                // Within min..=max, so it fits.
                random.between(i64::from(min), i64::from(max)) as u32
            }
            Self::Geometric { mean, max } => {
                let mut count = 1;
                // One number for each event, and not a logarithm: an event costs more anyway.
                while count < max && random.chance(1.0 - 1.0 / mean) {
                    count += 1;
                }
                count
            }
        }
    }
}

impl TraceSpec {
    /// Reads a specification from JSON, and looks it over. Fields that are not given keep their
    /// defaults; fields that do not exist are errors.
    ///
    /// ```
    /// use tidegate::generate::TraceSpec;
    /// let spec = TraceSpec::from_json(r#"{"records": 10, "streams": [{"name": "orders"}]}"#)?;
    /// assert_eq!(spec.streams[0].keys.count, 1_000);
    /// # Ok::<(), tidegate::generate::GenerateError>(())
    /// ```
    ///
    /// # Errors
    /// [`GenerateError::Json`] for a text that is not a specification,
    /// [`GenerateError::Invalid`] for one that makes no sense.
    pub fn from_json(text: &str) -> Result<Self, GenerateError> {
        let spec: Self = serde_json::from_str(text)?;
        spec.validate()?;
        Ok(spec)
    }

    /// The specification as JSON for a reader, with every field and a line feed at the end.
    ///
    /// # Errors
    /// [`GenerateError::Json`] if a number is infinite or none, which [`Self::validate`] finds too.
    pub fn to_json(&self) -> Result<String, GenerateError> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        Ok(text)
    }

    /// Looks the specification over. Whatever passes can be generated: nothing later panics, or
    /// takes memory beyond `max_in_flight` records, the values of a random walk and the streams'
    /// own few numbers.
    ///
    /// # Errors
    /// [`GenerateError::Invalid`], with the path of the first field that makes no sense.
    pub fn validate(&self) -> Result<(), GenerateError> {
        Place::top("start_us").require((-MAX_START_US..=MAX_START_US).contains(&self.start_us), || {
            format!("{} us is too far from 1970", self.start_us)
        })?;
        Place::top("max_in_flight").require((1..=1 << 32).contains(&self.max_in_flight), || {
            format!("{} is not between 1 and 2^32", self.max_in_flight)
        })?;
        let streams = Place::top("streams");
        streams.require((1..=MAX_STREAMS).contains(&self.streams.len()), || {
            format!("{} streams: give 1 to {MAX_STREAMS}", self.streams.len())
        })?;
        for (index, stream) in self.streams.iter().enumerate() {
            let place = streams.element(index);
            stream.validate(index, place)?;
            stream.values.validate(self.keys_of(index), place.field("values"))?;
        }
        self.output.validate(Place::top("output"))
    }

    /// The keys of a stream: its own, or those of the stream that it follows.
    pub(super) fn keys_of(&self, mut stream: usize) -> &KeySpec {
        // Each leader comes before its follower, so this ends.
        while let ArrivalProcess::Follow { stream: leader, .. } = self.streams[stream].arrivals {
            if leader >= stream {
                break;
            }
            stream = leader;
        }
        &self.streams[stream].keys
    }
}

impl StreamSpec {
    fn validate(&self, index: usize, place: Place<'_>) -> Result<(), GenerateError> {
        place.field("name").require(super::output::is_plain_name(&self.name), || {
            format!("{:?}: {}", self.name, super::output::NAME_RULE)
        })?;
        place
            .field("offset_us")
            .require(self.offset_us <= 1 << 53, || format!("{} us is more than 2^53", self.offset_us))?;
        self.arrivals.validate(index, place.field("arrivals"))?;
        if let Some(sessions) = &self.sessions {
            let place = place.field("sessions");
            sessions.events.validate(place.field("events"))?;
            sessions.gap.validate(place.field("gap"))?;
        }
        self.keys.validate(place.field("keys"))?;
        self.lag.validate(place.field("lag"))?;
        place.field("resolution_us").require((1..=1 << 53).contains(&self.resolution_us), || {
            format!("{} us is not between 1 and 2^53", self.resolution_us)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::random::Purpose;
    use super::*;

    #[test]
    fn counts_have_their_mean_and_limits() {
        let mut random = Random::new(1, 0, Purpose::Sessions);
        let mut mean = |counts: CountDistribution| {
            let drawn: Vec<u32> = (0..50_000).map(|_| counts.sample(&mut random)).collect();
            (
                drawn.iter().map(|&c| f64::from(c)).sum::<f64>() / 50_000.0,
                drawn.iter().copied().max().unwrap_or(0),
            )
        };
        assert_eq!(mean(CountDistribution::Fixed { count: 3 }), (3.0, 3));
        let (uniform, max) = mean(CountDistribution::Uniform { min: 1, max: 9 });
        assert!((uniform - 5.0).abs() < 0.06 && max == 9, "{uniform}");
        let (geometric, max) = mean(CountDistribution::Geometric { mean: 8.0, max: 500 });
        assert!((geometric - 8.0).abs() < 0.17 && max > 40, "{geometric} {max}");
        let (_, max) = mean(CountDistribution::Geometric { mean: 1e9, max: 20 });
        assert_eq!(max, 20);
        assert_eq!(mean(CountDistribution::Geometric { mean: 1.0, max: 20 }), (1.0, 1));
    }
}
