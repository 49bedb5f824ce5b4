//! Where nothing lives: ranges of one state's rows that are known to be empty.
//!
//! RocksDB does not remove a row at once, it marks it as removed, and whoever looks for the first
//! row behind the marks steps over all of them. Timers and windows remove from the front and then
//! look for what is first now, so without more that look takes longer each time. What was
//! removed, or found to be empty, is remembered here, and a scan begins behind it.
//!
//! The ranges are hints. Forgetting one costs a slow look and nothing else, so their number has a
//! bound, and nothing of them is stored. But what is remembered must be true: a row that is put
//! goes out of the range it lies in before anyone looks again.

/// How many ranges are remembered for a state: one for each of the job's key groups, and some.
const MOST_RANGES: usize = 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
struct EmptyRange {
    lower: Vec<u8>,
    /// Not included; none where nothing lives above `lower` at all.
    upper: Option<Vec<u8>>,
    /// When it was last added to or looked up.
    used: u64,
    /// The commit by whose put its lower bound came about.
    cut_by_commit: u64,
}

impl EmptyRange {
    /// Whether it goes on at least to `key`, so that what begins at `key` joins it.
    fn reaches(&self, key: &[u8]) -> bool {
        self.upper.as_deref().is_none_or(|upper| key <= upper)
    }

    fn holds(&self, key: &[u8]) -> bool {
        self.lower.as_slice() <= key && self.upper.as_deref().is_none_or(|upper| key < upper)
    }
}

/// Empty ranges of one state: disjoint, in order, and apart from each other.
#[derive(Debug, Default)]
pub(super) struct EmptyRanges {
    ranges: Vec<EmptyRange>,
    clock: u64,
    commit: u64,
}

/// Where the first row at or after some key can be at the earliest.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FirstRow<'a> {
    /// At or after this key.
    From(&'a [u8]),
    /// Nowhere.
    None,
}

impl EmptyRanges {
    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The place of the last range that begins at or before `key`.
    fn at_or_before(&self, key: &[u8]) -> Option<usize> {
        self.ranges.partition_point(|range| range.lower.as_slice() <= key).checked_sub(1)
    }

    /// Where to look for the first row that is not less than `key`.
    pub(super) fn first_row_from<'a>(&'a mut self, key: &'a [u8]) -> FirstRow<'a> {
        self.clock += 1;
        match self.at_or_before(key) {
            Some(place) if self.ranges[place].holds(key) => {
                let range = &mut self.ranges[place];
                range.used = self.clock;
                range.upper.as_deref().map_or(FirstRow::None, FirstRow::From)
            }
            _ => FirstRow::From(key),
        }
    }

    /// The part of a range that may hold rows, as far as it is one piece; none where it cannot.
    pub(super) fn narrowed<'a>(&'a self, lower: &'a [u8], upper: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
        let at = |key| self.at_or_before(key).map(|place| &self.ranges[place]);
        let narrowed_lower = match at(lower) {
            Some(range) if range.holds(lower) => range.upper.as_deref()?,
            _ => lower,
        };
        let narrowed_upper = match at(upper) {
            Some(range) if range.reaches(upper) => &range.lower,
            _ => upper,
        };
        (narrowed_lower < narrowed_upper).then_some((narrowed_lower, narrowed_upper))
    }

    /// Remembers that no row lies from `lower` (included) to `upper` (not included, or to the end).
    pub(super) fn add(&mut self, lower: &[u8], upper: Option<&[u8]>) {
        if upper.is_some_and(|upper| upper <= lower) {
            return;
        }
        self.clock += 1;
        let first = match self.at_or_before(lower) {
            Some(place) if self.ranges[place].reaches(lower) => place,
            Some(place) => place + 1,
            None => 0,
        };
        let joined = match upper {
            Some(upper) => self.ranges.partition_point(|range| range.lower.as_slice() <= upper),
            None => self.ranges.len(),
        };
        let used = self.clock;
        if joined <= first {
            self.make_room();
            // Ranges may have been forgotten, so the place is looked for once more.
            let place = self.at_or_before(lower).map_or(0, |place| place + 1);
            let (lower, upper) = (lower.to_vec(), upper.map(<[u8]>::to_vec));
            self.ranges.insert(place, EmptyRange { lower, upper, used, cut_by_commit: 0 });
            return;
        }
        // The first of those that are joined takes them all in, and keeps its memory.
        let last_upper = self.ranges[joined - 1].upper.take();
        let range = &mut self.ranges[first];
        if lower < range.lower.as_slice() {
            replace(&mut range.lower, lower);
        }
        range.upper = match (last_upper, upper) {
            (Some(mut known), Some(upper)) => {
                if known.as_slice() < upper {
                    replace(&mut known, upper);
                }
                Some(known)
            }
            _ => None,
        };
        range.used = used;
        range.cut_by_commit = 0;
        self.ranges.drain(first + 1..joined);
    }

    /// Says that rows are put from here on that belong to another commit.
    pub(super) fn begin_commit(&mut self) {
        self.commit += 1;
    }

    /// Takes a row that is put out of the range it lies in.
    ///
    /// What lies before the row stays known, and what lies after the last row of the commit: of
    /// the gaps between rows, nothing is to be gained.
    pub(super) fn put(&mut self, key: &[u8]) {
        let Some(place) = self.at_or_before(key).filter(|&place| self.ranges[place].holds(key)) else {
            return;
        };
        // The least key that is greater.
        let next = [key, &[0]].concat();
        let range = &mut self.ranges[place];
        let rest_is_empty = range.upper.as_deref() == Some(&next);
        if range.cut_by_commit == self.commit || range.lower == key {
            if rest_is_empty {
                self.ranges.remove(place);
            } else {
                range.lower = next;
                range.cut_by_commit = self.commit;
            }
            return;
        }
        let upper = range.upper.replace(key.to_vec());
        if !rest_is_empty {
            let rest = EmptyRange { lower: next, upper, used: range.used, cut_by_commit: self.commit };
            self.ranges.insert(place + 1, rest);
            self.make_room();
        }
    }

    /// Forgets everything.
    pub(super) fn forget(&mut self) {
        self.ranges.clear();
    }

    /// Forgets the half that was not used for longest once there are too many.
    fn make_room(&mut self) {
        if self.ranges.len() < MOST_RANGES {
            return;
        }
        let mut used: Vec<u64> = self.ranges.iter().map(|range| range.used).collect();
        let (_, &mut median, _) = used.select_nth_unstable(MOST_RANGES / 2);
        let mut left = MOST_RANGES / 2;
        // Pieces of one range were used at the same time, so a limit on the number is needed too.
        self.ranges.retain(|range| {
            let stays = range.used >= median && left > 0;
            left -= usize::from(stays);
            stays
        });
    }
}

fn replace(bytes: &mut Vec<u8>, new: &[u8]) {
    bytes.clear();
    bytes.extend_from_slice(new);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[derive(Debug, Clone)]
    enum Step {
        Add(Vec<u8>, Option<Vec<u8>>),
        Commit(Vec<Vec<u8>>),
    }

    fn key() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(0..3u8, 0..4)
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            2 => (key(), proptest::option::weighted(0.9, key())).prop_map(|(lower, upper)| Step::Add(lower, upper)),
            1 => proptest::collection::vec(key(), 0..6).prop_map(Step::Commit),
        ]
    }

    /// All keys of up to four bytes below 3: the places between those that the steps name.
    fn keys() -> Vec<Vec<u8>> {
        let mut keys = vec![vec![]];
        for start in 0.. {
            let Some(key) = keys.get(start).cloned() else { break };
            if key.len() < 4 {
                keys.extend((0..3).map(|byte| [&key[..], &[byte]].concat()));
            }
        }
        keys.sort();
        keys
    }

    proptest! {
        #[test]
        fn what_is_remembered_is_empty_and_what_was_removed_last_is_remembered(
            steps in proptest::collection::vec(step(), 1..30)
        ) {
            let keys = keys();
            let mut live: BTreeSet<Vec<u8>> = keys.iter().cloned().collect();
            let mut known = EmptyRanges::default();
            for step in &steps {
                match step {
                    Step::Add(lower, upper) => {
                        live.retain(|key| key < lower || upper.as_ref().is_some_and(|upper| upper <= key));
                        known.add(lower, upper.as_deref());
                        if upper.as_ref().is_none_or(|upper| lower < upper) {
                            match known.first_row_from(lower) {
                                FirstRow::None => {}
                                FirstRow::From(from) => {
                                    prop_assert!(upper.as_ref().is_some_and(|upper| upper.as_slice() <= from));
                                }
                            }
                        }
                    }
                    Step::Commit(puts) => {
                        known.begin_commit();
                        for key in puts {
                            known.put(key);
                            live.insert(key.clone());
                        }
                    }
                }
                for key in &keys {
                    let first = live.range(key.clone()..).next();
                    match known.first_row_from(key) {
                        FirstRow::None => prop_assert_eq!(first, None),
                        FirstRow::From(from) => {
                            prop_assert!(from >= key.as_slice());
                            prop_assert!(first.is_none_or(|first| first.as_slice() >= from));
                        }
                    }
                    for upper in keys.iter().step_by(7).filter(|&upper| key < upper) {
                        let rows = || live.range(key.clone()..upper.clone());
                        match known.narrowed(key, upper) {
                            None => prop_assert_eq!(rows().next(), None),
                            Some((from, to)) => {
                                prop_assert!(key.as_slice() <= from && to <= upper.as_slice());
                                prop_assert!(rows().all(|row| from <= row.as_slice() && row.as_slice() < to));
                            }
                        }
                    }
                }
                let apart = known.ranges.windows(2).all(|pair| !pair[0].reaches(&pair[1].lower));
                prop_assert!(apart && known.ranges.iter().all(|range| range.upper.as_ref() != Some(&range.lower)));
            }
        }
    }

    #[test]
    fn a_commit_cuts_a_range_into_two_however_many_rows_it_puts() {
        let mut known = EmptyRanges::default();
        known.add(b"", None);
        known.begin_commit();
        (10..20u8).for_each(|row| known.put(&[row]));
        assert_eq!(known.ranges.len(), 2);
        assert_eq!(known.first_row_from(b""), FirstRow::From(&[10]));
        assert_eq!(known.first_row_from(&[19, 0]), FirstRow::None);
        assert_eq!(known.first_row_from(&[12]), FirstRow::From(&[12]));
    }

    #[test]
    fn what_is_in_use_outlasts_what_is_not() {
        let mut known = EmptyRanges::default();
        known.add(&[0], Some(&[1]));
        for row in 0..100_000u32 {
            let key = [&[2][..], &row.to_be_bytes()].concat();
            known.add(&key, Some(&[&key[..], &[0]].concat()));
            assert_eq!(known.first_row_from(&[0]), FirstRow::From(&[1]));
            assert!(known.ranges.len() <= MOST_RANGES);
        }
    }
}
