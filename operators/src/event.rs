//! A record with its event time and its place among records of equal time.

use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// Event time: microseconds since 1970 for real data, any unit in tests. Negative is legal.
pub type Time = i64;

/// A record on its way through a dataflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event<D> {
    /// When it happened.
    pub time: Time,
    /// Its place among events of equal time.
    pub rank: Rank,
    /// What happened.
    pub data: D,
}

impl<D> Event<D> {
    /// An event that a source read: record `position` of `partition`.
    pub fn new(time: Time, partition: u32, position: u64, data: D) -> Self {
        Event { time, rank: Rank::record(partition, position), data }
    }

    /// The same event with other data.
    pub fn map<E>(self, change: impl FnOnce(D) -> E) -> Event<E> {
        Event { time: self.time, rank: self.rank, data: change(self.data) }
    }

    /// Orders by time, then by rank: the order in which a release is applied.
    #[inline]
    pub fn order(&self, other: &Self) -> Ordering {
        self.time.cmp(&other.time).then_with(|| self.rank.cmp(&other.rank))
    }
}

/// The tie-break between events of equal time.
///
/// Every event that goes back to a record carries that record's place: its source partition and
/// its position there. An event without such a record, the result of a window or a timer, is
/// placed by its encoded key, behind all records of its time. So the order of events is a
/// property of the input, whatever worker or batch they came through.
///
/// A record that came too late for the watermark of its own partition carries that watermark
/// here, since windows judge lateness by it (rule 2 of the design's semantics). Few records do,
/// so the watermark costs the others no space.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rank(Kind);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Kind {
    Record { branch: u16, partition: u32, position: u64 },
    Late(Box<LateRecord>),
    Key(Box<KeyPlace>),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct LateRecord {
    branch: u16,
    partition: u32,
    position: u64,
    watermark: Time,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct KeyPlace {
    key: Vec<u8>,
    branch: u16,
}

impl Rank {
    /// The place of a record that came in time.
    #[inline]
    pub fn record(partition: u32, position: u64) -> Self {
        Rank(Kind::Record { branch: 0, partition, position })
    }

    /// The place of a record that came too late: `watermark` is that of its partition before it.
    pub fn late_record(partition: u32, position: u64, watermark: Time) -> Self {
        Rank(Kind::Late(Box::new(LateRecord { branch: 0, partition, position, watermark })))
    }

    /// The place of a result that no single record caused: by its key's encoded bytes.
    pub fn key(encoded: &[u8]) -> Self {
        Rank(Kind::Key(Box::new(KeyPlace { key: encoded.to_vec(), branch: 0 })))
    }

    /// For a late record, its partition's watermark when it came.
    #[inline]
    pub fn missed_watermark(&self) -> Option<Time> {
        match &self.0 {
            Kind::Late(late) => Some(late.watermark),
            Kind::Record { .. } | Kind::Key(_) => None,
        }
    }

    /// Source partition and position, where the event goes back to a record.
    #[inline]
    pub fn position(&self) -> Option<(u32, u64)> {
        match &self.0 {
            Kind::Record { partition, position, .. } => Some((*partition, *position)),
            Kind::Late(late) => Some((late.partition, late.position)),
            Kind::Key(_) => None,
        }
    }

    /// Tells apart the events that go back to one record and meet in one stream: `index` is the way
    /// that this one took, out of so many `ways`. What was apart before stays apart.
    pub fn branch_off(&mut self, ways: u16, index: u16) {
        let branch = match &mut self.0 {
            Kind::Record { branch, .. } => branch,
            Kind::Late(late) => &mut late.branch,
            Kind::Key(place) => &mut place.branch,
        };
        *branch = branch.saturating_mul(ways).saturating_add(index);
    }

    /// The record has another time now, and is late no longer if that is not before the watermark
    /// that it missed.
    pub fn forgive(&mut self, time: Time) {
        if let Kind::Late(late) = &self.0
            && time >= late.watermark
        {
            let LateRecord { branch, partition, position, .. } = **late;
            self.0 = Kind::Record { branch, partition, position };
        }
    }

    /// Partition, position, branch; all maximal for a place by key.
    #[inline]
    fn record_order(&self) -> (u32, u64, u16) {
        match &self.0 {
            Kind::Record { branch, partition, position } => (*partition, *position, *branch),
            Kind::Late(late) => (late.partition, late.position, late.branch),
            Kind::Key(_) => (u32::MAX, u64::MAX, u16::MAX),
        }
    }
}

impl Ord for Rank {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.0, &other.0) {
            (Kind::Key(a), Kind::Key(b)) => a.cmp(b),
            (Kind::Key(_), _) => Ordering::Greater,
            (_, Kind::Key(_)) => Ordering::Less,
            _ => self.record_order().cmp(&other.record_order()),
        }
    }
}

impl PartialOrd for Rank {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_is_small() {
        // Every event carries one, and events are copied several times on their way.
        assert_eq!(size_of::<Rank>(), 16);
        assert_eq!(size_of::<Event<u64>>(), 32);
    }

    #[test]
    fn every_way_through_nested_unions_is_a_branch_of_its_own() {
        let mut branches = Vec::new();
        for (first, second, third) in
            (0..3).flat_map(|a| (0..2).flat_map(move |b| (0..4).map(move |c| (a, b, c))))
        {
            let mut rank = Rank::late_record(1, 2, 3);
            rank.branch_off(3, first);
            rank.branch_off(2, second);
            rank.branch_off(4, third);
            branches.push(rank);
        }
        assert!(branches.is_sorted_by(|a, b| a < b), "ordered as the streams are named, and all apart");
    }

    #[test]
    fn a_record_is_forgiven_at_its_watermark() {
        let (mut before, mut at) = (Rank::late_record(1, 2, 10), Rank::late_record(1, 2, 10));
        before.forgive(9);
        at.forgive(10);
        assert_eq!((before.missed_watermark(), at), (Some(10), Rank::record(1, 2)));
    }

    #[test]
    fn ranks_are_ordered_by_partition_position_branch_then_keys() {
        let mut branched = Rank::record(0, 5);
        branched.branch_off(2, 1);
        let ascending = [
            Rank::record(0, 4),
            Rank::record(0, 5),
            branched,
            Rank::late_record(0, 6, 100),
            Rank::record(0, 7),
            Rank::record(1, 0),
            Rank::record(u32::MAX, u64::MAX),
            Rank::key(b""),
            Rank::key(b"a"),
            Rank::key(b"b"),
        ];
        for (i, a) in ascending.iter().enumerate() {
            for (j, b) in ascending.iter().enumerate() {
                assert_eq!(a.cmp(b), i.cmp(&j), "{a:?} against {b:?}");
            }
        }
    }
}
