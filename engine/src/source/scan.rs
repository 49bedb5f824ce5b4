//! What the search for the next record comes to, in every format.

/// What the search for the next record came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scan {
    /// A record was found.
    Record,
    /// Something that counts as a record but cannot be read as one, and why.
    Broken(&'static str),
    /// The input has ended.
    End,
    /// Nothing is there yet, and whoever asked does not want to wait.
    Pause,
}

impl Scan {
    pub(super) const TOO_LONG: Scan = Scan::Broken("the line is longer than the limit for lines");
}
