//! Cells: where a table keeps its rows, how it finds them, and which it gives up first.

use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::{BuildHasher, Hash};

/// What is known of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    /// No row: the cell waits for one.
    Free,
    /// Declared, and not read yet.
    Wanted,
    /// On its way from a reader thread. The cell stays until the answer is there, and may hold a
    /// tail to be joined to it.
    Requested,
    /// As it is in the store.
    Clean,
    /// Different from what is in the store, or maybe so.
    Changed,
    /// The value is only what is to be appended to what the store has.
    Tail,
}

impl Status {
    /// Whether the cell says what the row is.
    pub fn is_at_hand(self) -> bool {
        matches!(self, Status::Clean | Status::Changed)
    }
}

pub(super) struct Cell<R, V> {
    pub row: R,
    pub value: Option<V>,
    /// The release that last asked for the row.
    pub release: u32,
    pub status: Status,
    /// Whether the store has the row: what is absent there need not be deleted there.
    pub stored: bool,
    /// Asked for since the clock's hand last came by.
    pub recent: bool,
    /// Declared ahead, and not asked for by a release since. `release` then tells which release
    /// was under way.
    pub ahead: bool,
}

/// Cells with an index by row. A cell keeps its number until it is freed.
pub(super) struct Cells<R, V> {
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
    cells: Vec<Cell<R, V>>,
    free: Vec<u32>,
    /// Where the clock's hand stands.
    hand: usize,
}

impl<R: Eq + Hash + Clone, V> Cells<R, V> {
    pub fn new() -> Self {
        Cells {
            index: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            cells: Vec::new(),
            free: Vec::new(),
            hand: 0,
        }
    }

    /// Rows that have a cell.
    pub fn len(&self) -> usize {
        self.cells.len() - self.free.len()
    }

    /// Bytes of a cell and its place in the index, without what row and value own elsewhere.
    pub const fn cell_bytes() -> usize {
        // The index is between 7/16 and 7/8 full, with 5 bytes a place.
        size_of::<Cell<R, V>>() + 9
    }

    #[inline]
    pub fn get(&self, slot: u32) -> &Cell<R, V> {
        &self.cells[slot as usize]
    }

    /// The cell of this number, if there is one; it may be free.
    #[inline]
    pub fn at(&self, slot: u32) -> Option<&Cell<R, V>> {
        self.cells.get(slot as usize)
    }

    /// The number of a row's cell, if it has one.
    pub fn find(&self, row: &R) -> Option<u32> {
        let hash = self.hasher.hash_one(row);
        self.index.find(hash, |&slot| self.cells[slot as usize].row == *row).copied()
    }

    #[inline]
    pub fn get_mut(&mut self, slot: u32) -> &mut Cell<R, V> {
        &mut self.cells[slot as usize]
    }

    /// The cell of a row; whether it is new, with the status Wanted.
    #[inline]
    pub fn find_or_insert(&mut self, row: &R) -> (u32, bool) {
        let hash = self.hasher.hash_one(row);
        let cells = &self.cells;
        match self.index.find(hash, |&slot| cells[slot as usize].row == *row) {
            Some(&slot) => (slot, false),
            None => (self.insert(hash, row.clone()), true),
        }
    }

    fn insert(&mut self, hash: u64, row: R) -> u32 {
        let cell = Cell {
            row,
            value: None,
            release: 0,
            status: Status::Wanted,
            stored: false,
            recent: true,
            ahead: false,
        };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.cells[slot as usize] = cell;
                slot
            }
            None => {
                // A cell has some tens of bytes, so memory ends long before the numbers do.
                let slot = u32::try_from(self.cells.len()).expect("a table has fewer than 2^32 rows");
                if self.cells.len() == self.cells.capacity() {
                    // Doubling would leave up to half of a large table unused.
                    self.cells.reserve_exact((self.cells.len() / 4).max(64));
                }
                self.cells.push(cell);
                slot
            }
        };
        let (cells, hasher) = (&self.cells, &self.hasher);
        self.index.insert_unique(hash, slot, |&slot| hasher.hash_one(&cells[slot as usize].row));
        slot
    }

    /// Frees a cell. The row may be given a new one afterwards.
    pub fn remove(&mut self, slot: u32) {
        let hash = self.hasher.hash_one(&self.cells[slot as usize].row);
        if let Ok(entry) = self.index.find_entry(hash, |&found| found == slot) {
            entry.remove();
        }
        let cell = &mut self.cells[slot as usize];
        cell.status = Status::Free;
        cell.value = None;
        self.free.push(slot);
    }

    /// Frees the cells that do not pass, and counts those.
    pub fn retain(&mut self, mut keep: impl FnMut(&Cell<R, V>) -> bool) -> usize {
        let mut freed = 0;
        for slot in 0..self.cells.len() as u32 {
            let cell = self.get(slot);
            if cell.status != Status::Free && !keep(cell) {
                self.remove(slot);
                freed += 1;
            }
        }
        freed
    }

    /// Frees all cells and keeps the memory.
    pub fn clear(&mut self) {
        self.index.clear();
        self.cells.clear();
        self.free.clear();
        self.hand = 0;
    }

    /// Picks rows to give up: the clock's hand passes over the cells, and takes those that
    /// nobody asked for since it last came by (the second-chance algorithm). What the release
    /// `under_way` asked for stays, as its slots are given out; and what was read ahead in
    /// `oldest_ahead` or a later release, as it is about to be asked for.
    pub fn pick_victims(
        &mut self,
        count: usize,
        under_way: Option<u32>,
        oldest_ahead: u32,
        victims: &mut Vec<u32>,
    ) {
        // Two rounds make every cell a victim, except for those that have not been read.
        let mut steps = 2 * self.cells.len();
        while victims.len() < count && steps > 0 {
            steps -= 1;
            if self.hand >= self.cells.len() {
                self.hand = 0;
            }
            let cell = &mut self.cells[self.hand];
            match cell.status {
                Status::Free | Status::Wanted | Status::Requested => {}
                _ if cell.ahead && cell.release >= oldest_ahead => {}
                _ if !cell.ahead && Some(cell.release) == under_way => {}
                _ if cell.recent => cell.recent = false,
                // In the second round it would be picked again.
                Status::Clean | Status::Changed | Status::Tail => victims.push(self.hand as u32),
            }
            self.hand += 1;
        }
        victims.sort_unstable();
        victims.dedup();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn filled(rows: u32) -> Cells<u32, u32> {
        let mut cells = Cells::new();
        for row in 0..rows {
            let (slot, new) = cells.find_or_insert(&row);
            assert!(new);
            cells.get_mut(slot).status = Status::Clean;
        }
        cells
    }

    #[test]
    fn rows_that_are_asked_for_stay_longest() {
        let mut cells = filled(100);
        let mut victims = Vec::new();
        // The first round finds all of them recent.
        cells.pick_victims(1, None, 0, &mut victims);
        assert_eq!(victims.len(), 1);
        for row in (0..100).step_by(2) {
            let (slot, _) = cells.find_or_insert(&row);
            cells.get_mut(slot).recent = true;
        }
        victims.clear();
        cells.pick_victims(40, None, 0, &mut victims);
        assert_eq!(victims.len(), 40);
        assert!(victims.iter().all(|&slot| cells.get(slot).row % 2 == 1));
    }

    #[test]
    fn a_victim_is_picked_once_and_its_cell_used_again() {
        let mut cells = filled(10);
        let mut victims = Vec::new();
        cells.pick_victims(100, None, 0, &mut victims);
        let distinct: HashSet<_> = victims.iter().copied().collect();
        assert_eq!((victims.len(), distinct.len()), (10, 10));
        victims.iter().for_each(|&slot| cells.remove(slot));
        assert_eq!(cells.len(), 0);
        for row in 100..110 {
            let (slot, new) = cells.find_or_insert(&row);
            assert!(new && slot < 10);
        }
        assert_eq!(cells.len(), 10);
        assert!(cells.find_or_insert(&5).1, "a removed row is not found again");
    }

    #[test]
    fn what_is_read_ahead_stays_until_it_is_old() {
        let mut cells = filled(3);
        for (slot, release) in [(0, 5), (1, 6), (2, 7)] {
            (cells.get_mut(slot).ahead, cells.get_mut(slot).release) = (true, release);
        }
        let mut victims = Vec::new();
        cells.pick_victims(3, None, 6, &mut victims);
        assert_eq!(victims, [0]);
        assert_eq!((cells.retain(|cell| cell.release == 6), cells.len()), (2, 1));
    }

    #[test]
    fn what_the_release_under_way_asked_for_stays() {
        let mut cells = filled(3);
        for (slot, release) in [(0, 5), (1, 6), (2, 7)] {
            cells.get_mut(slot).release = release;
        }
        let mut victims = Vec::new();
        cells.pick_victims(3, Some(6), 0, &mut victims);
        assert_eq!(victims, [0, 2]);
    }

    #[test]
    fn rows_that_are_not_read_yet_are_no_victims() {
        let mut cells = Cells::<u32, u32>::new();
        cells.find_or_insert(&1);
        let mut victims = Vec::new();
        cells.pick_victims(1, None, 0, &mut victims);
        assert!(victims.is_empty());
    }
}
