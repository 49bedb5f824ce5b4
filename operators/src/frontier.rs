//! How far an input has come.

use crate::event::Time;

/// The promise of an input about what may still come.
///
/// ```
/// use tidegate_operators::frontier::Frontier;
/// assert!(Frontier::At(5).is_past(4) && !Frontier::At(5).is_past(5));
/// assert!(Frontier::Ended.is_past(i64::MAX));
/// assert!(Frontier::At(i64::MAX) < Frontier::Ended);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Frontier {
    /// No record with a time below this one comes any more.
    At(Time),
    /// No record comes any more.
    Ended,
}

impl Frontier {
    /// Where every input begins.
    pub const START: Frontier = Frontier::At(Time::MIN);

    /// Whether a record of this time can come no more.
    #[inline]
    pub fn is_past(self, time: Time) -> bool {
        match self {
            Frontier::At(frontier) => time < frontier,
            Frontier::Ended => true,
        }
    }
}
