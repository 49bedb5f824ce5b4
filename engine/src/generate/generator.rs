//! From a specification to records in the order of their arrival.
//!
//! Events are made in the order of event time: the next one is the earliest among the streams'
//! own arrivals and what earlier events have planned (the rest of a session, a partner). Each is
//! then put on its way, and comes out when no event to come could arrive before it; as no lag is
//! negative, that is when its arrival is not after the next event's time. So the order of arrival
//! comes about with nothing sorted, in memory for what is on its way and no more.

use super::arrivals::{ArrivalProcess, ArrivalSampler};
use super::delay::{DelaySampler, LagSampler};
use super::error::GenerateError;
use super::keys::{DrawnKey, KeySampler};
use super::queue::TimeQueue;
use super::random::{Purpose, Random};
use super::spec::{CountDistribution, StreamSpec, TraceSpec};
use super::values::ValueSampler;

/// After this many arrivals in a row whose key did not take part, the trace ends.
const MAX_SILENT_ARRIVALS: u32 = 1 << 24;

/// One record of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GeneratedRecord {
    /// Index of its stream in [`TraceSpec::streams`].
    pub stream: u16,
    /// Event time in microseconds since 1970.
    pub time: i64,
    /// The key.
    pub key: u64,
    /// The value.
    pub value: i64,
}

/// Iterates over the records of a trace in the order of their arrival.
///
/// It ends after [`TraceSpec::records`] records. It ends earlier only if the streams do: at the
/// end of time (2^61 microseconds from the start), or if the keys of 2^24 arrivals in a row have
/// all stopped or rest.
#[derive(Debug, Clone)]
pub struct TraceGenerator {
    streams: Vec<Stream>,
    /// What earlier events have planned, by event time.
    planned: TimeQueue<Planned>,
    /// Whether anything is ever planned.
    plans: bool,
    /// The earliest event that is not yet on its way.
    next_event: Option<Event>,
    /// Events that may still be made.
    left: u64,
    /// Records on their way, by arrival.
    in_flight: TimeQueue<GeneratedRecord>,
    max_in_flight: usize,
    start: i64,
}

#[derive(Debug, Clone)]
struct Stream {
    arrivals: ArrivalSampler,
    arrival_random: Random,
    /// Event time of the next arrival; `None` when there is none.
    next_arrival: Option<i64>,
    start: i64,
    keys: KeySampler,
    key_random: Random,
    sessions: Option<(CountDistribution, DelaySampler)>,
    session_random: Random,
    values: ValueSampler,
    value_random: Random,
    lag: LagSampler,
    lag_random: Random,
    resolution: i64,
    followers: Vec<Follower>,
}

#[derive(Debug, Clone)]
struct Follower {
    stream: u16,
    share: f64,
    delay: DelaySampler,
    random: Random,
}

/// An event that an earlier one has planned.
#[derive(Debug, Clone, Copy)]
struct Planned {
    stream: u16,
    key: DrawnKey,
    /// Events of its session after this one.
    session_left: u32,
}

/// An event that has happened: a record, and when it arrives.
#[derive(Debug, Clone, Copy)]
struct Event {
    time: i64,
    lag: u64,
    record: GeneratedRecord,
}

impl Stream {
    fn new(spec: &TraceSpec, index: usize, stream: &StreamSpec) -> Self {
        let random = |purpose| Random::new(spec.seed, index, purpose);
        // Within bounds that leave room: see the limits of TraceSpec::validate.
        let start = spec.start_us.saturating_add_unsigned(stream.offset_us);
        let mut made = Self {
            arrivals: ArrivalSampler::new(&stream.arrivals, start),
            arrival_random: random(Purpose::Arrivals),
            next_arrival: None,
            start,
            keys: KeySampler::new(&stream.keys, spec.seed),
            key_random: random(Purpose::Keys),
            sessions: stream
                .sessions
                .as_ref()
                .map(|sessions| (sessions.events.clone(), DelaySampler::new(&sessions.gap))),
            session_random: random(Purpose::Sessions),
            values: ValueSampler::new(&stream.values, spec.keys_of(index), spec.seed),
            value_random: random(Purpose::Values),
            lag: LagSampler::new(&stream.lag),
            lag_random: random(Purpose::Lags),
            // At most 2^53, so it fits.
            resolution: stream.resolution_us as i64,
            followers: Vec::new(),
        };
        made.arrive();
        made
    }

    /// Finds the time of the next arrival.
    #[inline]
    fn arrive(&mut self) {
        self.next_arrival =
            self.arrivals.next(&mut self.arrival_random).map(|time| self.start.saturating_add(time));
    }
}

impl TraceGenerator {
    /// The records of a trace.
    ///
    /// # Errors
    /// [`GenerateError::Invalid`] for a specification that makes no sense.
    pub fn new(spec: &TraceSpec) -> Result<Self, GenerateError> {
        spec.validate()?;
        let mut streams: Vec<Stream> =
            spec.streams.iter().enumerate().map(|(index, stream)| Stream::new(spec, index, stream)).collect();
        for (index, stream) in spec.streams.iter().enumerate() {
            if let ArrivalProcess::Follow { stream: leader, share, delay } = &stream.arrivals {
                // A validated index: it is below `index`, and there are at most 64 streams.
                streams[*leader].followers.push(Follower {
                    stream: index as u16,
                    share: *share,
                    delay: DelaySampler::new(delay),
                    random: Random::new(spec.seed, index, Purpose::Arrivals),
                });
            }
        }
        let plans = streams.iter().any(|stream| stream.sessions.is_some() || !stream.followers.is_empty());
        let mut generator = Self {
            streams,
            planned: TimeQueue::new(spec.start_us),
            plans,
            next_event: None,
            left: spec.records,
            in_flight: TimeQueue::new(spec.start_us),
            max_in_flight: usize::try_from(spec.max_in_flight).unwrap_or(usize::MAX),
            start: spec.start_us,
        };
        generator.next_event = generator.happen();
        Ok(generator)
    }

    /// The next event in the order of event time.
    #[inline]
    fn happen(&mut self) -> Option<Event> {
        if self.left == 0 {
            return None;
        }
        let mut silent = 0;
        loop {
            let (stream, arrival) = self.earliest_arrival();
            if self.plans {
                // At equal times what was planned comes first.
                let limit = arrival.unwrap_or(i64::MAX);
                if let Some((time, planned)) = self.planned.pop_through(limit) {
                    return Some(self.record(time, planned));
                }
            }
            let time = arrival?;
            // `earliest_arrival` gave an index of the list.
            let source = &mut self.streams[stream];
            source.arrive();
            let since_start = time.saturating_sub(self.start);
            if let Some(key) = source.keys.draw(since_start, &mut source.key_random) {
                let session_left = match &source.sessions {
                    Some((events, _)) => events.sample(&mut source.session_random) - 1,
                    None => 0,
                };
                let event = Planned { stream: stream as u16, key, session_left };
                return Some(self.record(time, event));
            }
            silent += 1;
            if silent == MAX_SILENT_ARRIVALS {
                self.left = 0;
                return None;
            }
        }
    }

    /// The stream whose arrival is next (the first such), and its time.
    #[inline]
    fn earliest_arrival(&self) -> (usize, Option<i64>) {
        let mut earliest = (0, self.streams[0].next_arrival);
        for (index, stream) in self.streams.iter().enumerate().skip(1) {
            if let Some(time) = stream.next_arrival
                && earliest.1.is_none_or(|earliest| time < earliest)
            {
                earliest = (index, Some(time));
            }
        }
        earliest
    }

    /// Makes an event happen: plans what follows from it, and draws what it carries.
    #[inline]
    fn record(&mut self, time: i64, event: Planned) -> Event {
        self.left -= 1;
        if self.plans {
            self.plan(time, event);
        }
        let stream = &mut self.streams[usize::from(event.stream)];
        let shown = match stream.resolution {
            1 => time,
            resolution => time.saturating_sub(time.rem_euclid(resolution)),
        };
        Event {
            time,
            lag: stream.lag.sample(&mut stream.lag_random),
            record: GeneratedRecord {
                stream: event.stream,
                time: shown,
                key: event.key.key,
                value: stream.values.sample(event.key.index, &mut stream.value_random),
            },
        }
    }

    /// Plans the rest of the event's session, and its partners.
    fn plan(&mut self, time: i64, event: Planned) {
        // Random numbers are drawn even where there is no more room, so that a limit does not
        // change what comes after it more than it must.
        let mut plan = |delay: u64, planned: Planned| {
            if self.planned.len() < self.max_in_flight {
                self.planned.push(time.saturating_add_unsigned(delay), planned);
            }
        };
        let stream = &mut self.streams[usize::from(event.stream)];
        if let (Some((_, gap)), Some(session_left)) = (&stream.sessions, event.session_left.checked_sub(1)) {
            let next = Planned { session_left, ..event };
            plan(gap.sample(&mut stream.session_random), next);
        }
        for follower in &mut stream.followers {
            if follower.random.chance(follower.share) {
                let partner = Planned { stream: follower.stream, session_left: 0, ..event };
                plan(follower.delay.sample(&mut follower.random), partner);
            }
        }
    }
}

impl Iterator for TraceGenerator {
    type Item = GeneratedRecord;

    #[inline]
    fn next(&mut self) -> Option<GeneratedRecord> {
        loop {
            let Some(event) = self.next_event else {
                return self.in_flight.pop_through(i64::MAX).map(|(_, last)| last);
            };
            if let Some((_, record)) = self.in_flight.pop_through(event.time) {
                return Some(record);
            }
            self.next_event = self.happen();
            if event.lag == 0 || self.in_flight.len() >= self.max_in_flight {
                return Some(event.record);
            }
            let arrival = event.time.saturating_add_unsigned(event.lag);
            self.in_flight.push(arrival, event.record);
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let made = self.in_flight.len() + usize::from(self.next_event.is_some());
        let left = usize::try_from(self.left).ok();
        (made, left.and_then(|left| made.checked_add(left)))
    }
}

impl std::iter::FusedIterator for TraceGenerator {}
