//! A queue ordered by time that never goes back: records on their way, events to come.
//!
//! A hierarchical timing wheel (G. Varghese, T. Lauck, IEEE/ACM Transactions on Networking 5,
//! 1997) with 64 slots on each level. An element's level is the highest digit (of base 64) in which
//! its time differs from that of the queue. When the first slot holds a few elements they are
//! looked through; when it holds many they sink to lower levels, each at most once for every digit
//! of its delay. A binary heap would take as many steps for a full queue, each to another place in
//! memory, where the wheel goes over its slots from front to back. And it keeps the order of equal
//! times, which a heap does not.

use std::mem;

/// Bits of a digit; 64-bit times have 11 of them.
const DIGIT_BITS: usize = 6;
const SLOTS: usize = 1 << DIGIT_BITS;
const LEVELS: usize = 64usize.div_ceil(DIGIT_BITS);
/// A slot with no more than these is looked through.
const FEW: usize = 8;
/// An empty slot keeps memory for no more than these, so that the queue takes little more than what
/// is in it, and not for each slot what it ever held.
const MAX_KEPT: usize = 1_024;

/// Elements by time; equal times in the order in which they were pushed.
#[derive(Debug, Clone)]
pub(super) struct TimeQueue<T> {
    /// No element is earlier. As an unsigned number of the same order as the time.
    now: u64,
    /// Elements of the time `now`, the last one first, that are handed out before all others.
    due: Vec<(u64, T)>,
    /// Which levels have a slot that holds something: one bit each.
    levels: u16,
    /// Which slots of each level hold something: one bit each.
    occupied: [u64; LEVELS],
    slots: Vec<Vec<(u64, T)>>,
    length: usize,
}

/// Maps times to unsigned numbers of the same order.
fn rank(time: i64) -> u64 {
    (time as u64) ^ (1 << 63)
}

impl<T> TimeQueue<T> {
    /// An empty queue for times from `start` on.
    pub(super) fn new(start: i64) -> Self {
        Self {
            now: rank(start),
            due: Vec::new(),
            levels: 0,
            occupied: [0; LEVELS],
            slots: (0..LEVELS * SLOTS).map(|_| Vec::new()).collect(),
            length: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// Adds an element.
    ///
    /// # Contract
    /// Its time is not before the limit of any earlier [`Self::pop_through`] that took something.
    /// If it is, the element comes out as soon as it can.
    #[inline]
    pub(super) fn push(&mut self, time: i64, element: T) {
        self.length += 1;
        self.place(rank(time).max(self.now), element);
    }

    #[inline]
    fn place(&mut self, time: u64, element: T) {
        // The time `now` itself lies on level 0 as well.
        let level = (63 - ((time ^ self.now) | 1).leading_zeros() as usize) / DIGIT_BITS;
        let digit = (time >> (DIGIT_BITS * level)) as usize % SLOTS;
        self.levels |= 1 << level;
        self.occupied[level] |= 1 << digit;
        self.slots[level * SLOTS + digit].push((time, element));
    }

    /// Takes the first element and its time, if that is at most `limit`.
    #[inline]
    pub(super) fn pop_through(&mut self, limit: i64) -> Option<(i64, T)> {
        if self.length == 0 {
            return None;
        }
        let (rank, element) = self.find_through(rank(limit))?;
        // The inverse of `rank`.
        Some(((rank ^ (1 << 63)) as i64, element))
    }

    fn find_through(&mut self, limit: u64) -> Option<(u64, T)> {
        loop {
            if let Some(first) = self.due.pop_if(|due| due.0 <= limit) {
                self.length -= 1;
                return Some(first);
            }
            if !self.due.is_empty() || self.levels == 0 {
                return None;
            }
            let level = self.levels.trailing_zeros() as usize;
            let digit = self.occupied[level].trailing_zeros() as usize;
            let slot = &mut self.slots[level * SLOTS + digit];
            if slot.len() > FEW {
                self.open(level, digit, limit)?;
                continue;
            }
            // The first of the earliest.
            let mut earliest = (0, u64::MAX);
            for (index, (time, _)) in slot.iter().enumerate() {
                if *time < earliest.1 {
                    earliest = (index, *time);
                }
            }
            if earliest.1 > limit {
                return None;
            }
            self.length -= 1;
            let first = slot.remove(earliest.0);
            if slot.is_empty() {
                self.vacate(level, digit);
            }
            return Some(first);
        }
    }

    /// Moves the elements of the first slot down by at least a level, or makes them due. `None`
    /// if the slot begins after `limit`.
    fn open(&mut self, level: usize, digit: usize, limit: u64) -> Option<()> {
        // The earliest time of the slot: the digits of `now` above the level, the slot's own on
        // it, zeros below. The topmost digit has none above it.
        let below = DIGIT_BITS * level;
        let own = below + DIGIT_BITS;
        let above = if own < 64 { self.now >> own << own } else { 0 };
        let earliest = above | (digit as u64) << below;
        if earliest > limit {
            return None;
        }
        // All other elements keep their places: they differ from the new time where they did
        // from the old one.
        self.now = earliest;
        self.vacate(level, digit);
        let slot = &mut self.slots[level * SLOTS + digit];
        if level == 0 {
            // All of one time. `due` is empty: the two swap their memory.
            mem::swap(&mut self.due, slot);
            self.due.reverse();
        } else {
            let mut sinking = mem::take(slot);
            for (time, element) in sinking.drain(..) {
                self.place(time, element);
            }
            if sinking.capacity() <= MAX_KEPT {
                self.slots[level * SLOTS + digit] = sinking;
            }
        }
        Some(())
    }

    fn vacate(&mut self, level: usize, digit: usize) {
        self.occupied[level] &= !(1 << digit);
        if self.occupied[level] == 0 {
            self.levels &= !(1 << level);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The same, the plain way.
    #[derive(Default)]
    struct Model {
        elements: Vec<(i64, u32)>,
    }

    impl Model {
        fn pop_through(&mut self, limit: i64) -> Option<(i64, u32)> {
            // The first of the least: equal times keep their order.
            let (index, &(time, _)) = self.elements.iter().enumerate().min_by_key(|(_, (time, _))| *time)?;
            (time <= limit).then(|| self.elements.remove(index))
        }
    }

    proptest! {
        #[test]
        fn it_hands_out_what_a_sorted_list_would(
            start in prop_oneof![Just(0i64), Just(-5), Just(i64::MIN / 2), any::<i32>().prop_map(i64::from)],
            steps in prop::collection::vec(
                (0i64..40, prop::collection::vec(
                    prop_oneof![Just(0i64), 0i64..5, 0i64..5_000, 0i64..1 << 40], 0..30)),
                1..80),
        ) {
            let mut queue = TimeQueue::new(start);
            let mut model = Model::default();
            let mut now = start;
            let mut number = 0;
            for (step, delays) in steps {
                now += step * step * step;
                loop {
                    let expected = model.pop_through(now);
                    prop_assert_eq!(queue.pop_through(now), expected);
                    if expected.is_none() {
                        break;
                    }
                    // What is pushed while others are handed out comes after its equals.
                    if number % 7 == 0 {
                        number += 1;
                        queue.push(now, number);
                        model.elements.push((now, number));
                    }
                }
                for delay in delays {
                    number += 1;
                    queue.push(now + delay, number);
                    model.elements.push((now + delay, number));
                }
                prop_assert_eq!(queue.len(), model.elements.len());
            }
            while let Some(expected) = model.pop_through(i64::MAX) {
                prop_assert_eq!(queue.pop_through(i64::MAX), Some(expected));
            }
            prop_assert_eq!(queue.pop_through(i64::MAX), None);
        }
    }

    #[test]
    fn times_at_both_ends_are_taken() {
        let mut queue = TimeQueue::new(i64::MIN);
        queue.push(i64::MAX, 'c');
        queue.push(i64::MIN, 'a');
        queue.push(0, 'b');
        assert_eq!(queue.pop_through(-1), Some((i64::MIN, 'a')));
        assert_eq!(queue.pop_through(-1), None);
        assert_eq!(queue.pop_through(i64::MAX), Some((0, 'b')));
        assert_eq!(queue.pop_through(i64::MAX), Some((i64::MAX, 'c')));
    }

    #[test]
    fn an_early_push_comes_at_once() {
        let mut queue = TimeQueue::new(0);
        queue.push(1_000, 'a');
        assert_eq!(queue.pop_through(1_000), Some((1_000, 'a')));
        queue.push(1_001, 'c');
        queue.push(5, 'b');
        assert_eq!(queue.pop_through(1_000), Some((5, 'b')));
        assert_eq!(queue.pop_through(1_001), Some((1_001, 'c')));
    }

    #[test]
    fn memory_does_not_pile_up_over_time() {
        let mut queue = TimeQueue::new(0);
        for time in 0..2_000_000 {
            queue.push(time + 100_000 + time % 7, time);
            while queue.pop_through(time).is_some() {}
        }
        let memory: usize = queue.slots.iter().map(Vec::capacity).sum();
        assert!(queue.len() <= 100_010);
        assert!(memory < 400_000, "{memory}");
    }
}
