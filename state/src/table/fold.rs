//! When a list that was appended to in many pieces is written in one.

/// Decides by what a read found. How often a row was appended to without being read, nobody
/// counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FoldPolicy {
    /// From so many pieces on, a list is written whole.
    least_pieces: usize,
}

impl Default for FoldPolicy {
    fn default() -> Self {
        FoldPolicy { least_pieces: LEAST_PIECES }
    }
}

/// A get takes about 0.08 µs more for each piece that RocksDB has to join, and a write in a sorted
/// batch takes 1.5 µs: about 20 pieces pay for it at the next read. (Measured as told in
/// `rocks/appending.rs`.) RocksDB may have joined them already; then one write was for nothing,
/// for each 16 appends and a read.
const LEAST_PIECES: usize = 16;

impl FoldPolicy {
    /// Whether a list that was read from so many pieces is to be written in one.
    pub fn folds(self, pieces: usize) -> bool {
        pieces >= self.least_pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_pieces_are_folded_and_few_are_not() {
        let folds: Vec<bool> = [0, 1, 15, 16, 1000].map(|pieces| FoldPolicy::default().folds(pieces)).into();
        assert_eq!(folds, [false, false, false, true, true]);
    }
}
