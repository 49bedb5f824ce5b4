//! When the results of windows come that are not issued once only.

use crate::event::Time;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// When results come before a window closes, and in what form.
///
/// A window whose results are updated has one on time, when the frontier reaches its end; before
/// that early ones, if asked for; and after that one for each late record that its allowed lateness
/// lets in.
///
/// ```
/// use tidegate_operators::window::Firing;
/// let firing = Firing::on_time().early_every(100)?.with_retractions();
/// # Ok::<(), tidegate_operators::window::FiringError>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Firing {
    early: Option<Early>,
    retractions: bool,
}

/// When early results come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Early {
    /// With each of so many records of a key and window.
    Records(u64),
    /// With the first record of each period of event time.
    Period(Time),
}

/// Early results that cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FiringError {
    /// Every no records.
    #[error("early results after each 0 records: it has to be at least 1")]
    Records,
    /// A period that is none.
    #[error("the period of early results is {0}: it has to be at least 1")]
    Period(Time),
}

impl Firing {
    /// One result when the frontier reaches the window's end, and one for each late record.
    pub fn on_time() -> Self {
        Firing::default()
    }

    /// The same, and an early result with every `records`-th record of a key and window.
    ///
    /// # Errors
    /// [`FiringError::Records`] for 0.
    pub fn early_every(self, records: u64) -> Result<Self, FiringError> {
        if records == 0 {
            return Err(FiringError::Records);
        }
        Ok(Firing { early: Some(Early::Records(records)), ..self })
    }

    /// The same, and an early result with the first record of a key and window in each period of
    /// event time (periods begin at whole multiples of `period`). A key without records shows nothing
    /// new, so nothing is issued for it.
    ///
    /// # Errors
    /// [`FiringError::Period`] for less than 1.
    pub fn early_each(self, period: Time) -> Result<Self, FiringError> {
        if period < 1 {
            return Err(FiringError::Period(period));
        }
        Ok(Firing { early: Some(Early::Period(period)), ..self })
    }

    /// The same, with each result that is replaced issued once more, to be retracted.
    pub fn with_retractions(self) -> Self {
        Firing { retractions: true, ..self }
    }

    /// Whether results that are replaced are issued once more.
    pub fn retracts(&self) -> bool {
        self.retractions
    }

    /// Whether a record asks for an early result: it is the `records`-th since the last one, at
    /// `time`, and the one before it was at `before`.
    #[inline]
    pub fn is_early_due(&self, records: u64, before: Option<Time>, time: Time) -> bool {
        match self.early {
            None => false,
            Some(Early::Records(every)) => records >= every,
            Some(Early::Period(period)) => {
                before.is_none_or(|before| before.div_euclid(period) != time.div_euclid(period))
            }
        }
    }
}

/// Which of a window's results one is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pane {
    /// Before the window's end.
    Early,
    /// At the window's end.
    OnTime,
    /// For a late record.
    Late,
}

/// What a result does to those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UpdateKind {
    /// It is what holds from here on.
    Insert,
    /// It holds no longer; what does comes next.
    Retract,
}

/// A result of a window that may have others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowUpdate<K, O> {
    /// The window's start.
    pub start: Time,
    /// Its end, not included.
    pub end: Time,
    /// The key.
    pub key: K,
    /// What the aggregate gives.
    pub output: O,
    /// Which of the window's results this is.
    pub pane: Pane,
    /// Its number among the results of key and window, from 0; a retraction has the number of what
    /// takes its place.
    pub index: u32,
    /// Whether it holds or is taken back.
    pub kind: UpdateKind,
}
