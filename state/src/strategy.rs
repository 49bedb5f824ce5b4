//! How the reads of a release reach the store.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// How an operator's state reads are carried out. Every strategy gives the same answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReadStrategy {
    /// A get and a put for each record, as if there were no epochs: the baseline.
    PerRecord,
    /// One get for each distinct key of a release.
    Dedup,
    /// One sorted batched read for each chunk of a release.
    #[serde(rename = "multiget")]
    MultiGet,
    /// One sorted batched read for each chunk, split over the reader threads where it is large
    /// enough.
    Threads,
    /// Whichever of these has been measured to cost least for such a release, and reading ahead
    /// where reads are dear.
    #[default]
    Auto,
}

impl ReadStrategy {
    /// All strategies, the baseline first.
    pub const ALL: [ReadStrategy; 5] = [
        ReadStrategy::PerRecord,
        ReadStrategy::Dedup,
        ReadStrategy::MultiGet,
        ReadStrategy::Threads,
        ReadStrategy::Auto,
    ];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            ReadStrategy::PerRecord => "per-record",
            ReadStrategy::Dedup => "dedup",
            ReadStrategy::MultiGet => "multiget",
            ReadStrategy::Threads => "threads",
            ReadStrategy::Auto => "auto",
        }
    }
}

impl fmt::Display for ReadStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A word that names no strategy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown strategy {0:?}: it is one of per-record, dedup, multiget, threads, auto")]
pub struct UnknownStrategy(String);

impl FromStr for ReadStrategy {
    type Err = UnknownStrategy;

    fn from_str(word: &str) -> Result<Self, UnknownStrategy> {
        let known = Self::ALL.into_iter().find(|strategy| strategy.name() == word);
        known.ok_or_else(|| UnknownStrategy(word.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_is_parsed() {
        for strategy in ReadStrategy::ALL {
            assert_eq!(strategy.name().parse::<ReadStrategy>().unwrap(), strategy);
            let name = serde::de::value::StrDeserializer::<serde::de::value::Error>::new(strategy.name());
            assert_eq!(ReadStrategy::deserialize(name).unwrap(), strategy);
        }
        assert!("multi".parse::<ReadStrategy>().unwrap_err().to_string().contains("multiget"));
    }
}
