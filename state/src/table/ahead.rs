//! Reading ahead: whether rows are read when their records arrive, before they are released.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Whether the rows of coming releases are read while earlier ones are applied. Answers never
/// depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReadAhead {
    /// Rows are read when they are released.
    Off,
    /// Rows are read when their records arrive, under every strategy but `per-record`.
    On,
    /// As `on` under the strategy `auto`, where reads have been measured to cost enough.
    #[default]
    Auto,
}

impl ReadAhead {
    /// All of them.
    pub const ALL: [ReadAhead; 3] = [ReadAhead::Off, ReadAhead::On, ReadAhead::Auto];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            ReadAhead::Off => "off",
            ReadAhead::On => "on",
            ReadAhead::Auto => "auto",
        }
    }
}

impl fmt::Display for ReadAhead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A word that says nothing about reading ahead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown read-ahead mode {0:?}: it is one of off, on, auto")]
pub struct UnknownReadAhead(String);

impl FromStr for ReadAhead {
    type Err = UnknownReadAhead;

    fn from_str(word: &str) -> Result<Self, UnknownReadAhead> {
        let known = Self::ALL.into_iter().find(|mode| mode.name() == word);
        known.ok_or_else(|| UnknownReadAhead(word.to_string()))
    }
}

/// Reads that cost a declared row more than this, on average over all rows, are worth a second
/// look at each record's key.
const WORTH_NS_PER_ROW: f64 = 2_000.0;
/// Once on, it stays on until they cost so much less: what is read ahead seems cheap.
const STAY_SHARE: f64 = 0.25;
/// Weight of a new release in the running means.
const NEW_WEIGHT: f64 = 0.125;

/// Decides about one state, by what its reads cost in this run.
#[derive(Debug, Clone)]
pub(super) struct AheadPolicy {
    mode: ReadAhead,
    active: bool,
    missed_share: f64,
    ns_per_key: f64,
}

impl AheadPolicy {
    pub fn new(mode: ReadAhead) -> Self {
        AheadPolicy { mode, active: mode == ReadAhead::On, missed_share: 0.0, ns_per_key: 0.0 }
    }

    #[inline]
    pub fn is_active(&self) -> bool {
        self.active
    }

    /// A release needed so many rows, and so many of them were not in memory but for reading.
    pub fn released(&mut self, rows: u64, missed: u64) {
        if self.mode != ReadAhead::Auto || rows == 0 {
            return;
        }
        let share = missed as f64 / rows as f64;
        self.missed_share += NEW_WEIGHT * (share - self.missed_share);
        let cost = self.missed_share * self.ns_per_key;
        self.active = cost > WORTH_NS_PER_ROW * if self.active { STAY_SHARE } else { 1.0 };
    }

    /// So many keys were read, which took so long.
    pub fn measured(&mut self, keys: usize, took: Duration) {
        if keys > 0 {
            let new = took.as_nanos() as f64 / keys as f64;
            let weight = if self.ns_per_key == 0.0 { 1.0 } else { NEW_WEIGHT };
            self.ns_per_key += weight * (new - self.ns_per_key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_is_parsed() {
        for mode in ReadAhead::ALL {
            assert_eq!(mode.name().parse::<ReadAhead>().unwrap(), mode);
        }
        assert!("yes".parse::<ReadAhead>().unwrap_err().to_string().contains("off, on, auto"));
    }

    #[test]
    fn auto_reads_ahead_while_reads_are_dear_and_many() {
        let mut policy = AheadPolicy::new(ReadAhead::Auto);
        let mut run = |missed: u64, us: u64| {
            for _ in 0..100 {
                policy.measured(missed as usize, Duration::from_micros(us * missed));
                policy.released(1000, missed);
            }
            policy.is_active()
        };
        assert!(run(900, 50), "most rows from disk");
        assert!(!run(900, 0), "all rows at hand for nothing");
        assert!(!run(5, 50), "one row in two hundred from disk");
        assert!(run(500, 20));
        assert!(run(100, 20), "what is on stays on for a while");
        assert!(!run(0, 20));
    }

    #[test]
    fn off_and_on_do_what_they_are_called() {
        for (mode, active) in [(ReadAhead::Off, false), (ReadAhead::On, true)] {
            let mut policy = AheadPolicy::new(mode);
            policy.measured(1000, Duration::from_secs(1));
            policy.released(1000, 1000);
            policy.released(1000, 0);
            assert_eq!(policy.is_active(), active);
        }
    }
}
