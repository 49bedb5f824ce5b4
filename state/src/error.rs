//! What can go wrong with state, and where.

use crate::codec::CodecError;
use crate::key::KeyError;
use std::path::PathBuf;
use thiserror::Error;

/// What a backend reports, without knowing which state it was serving.
#[derive(Debug, Clone, Error)]
#[error("{message}")]
pub struct BackendError {
    /// What kind of trouble it is.
    pub kind: BackendErrorKind,
    /// What the backend says.
    pub message: String,
}

/// Kinds of trouble that a user answers differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BackendErrorKind {
    /// The disk is full, or a quota is used up.
    NoSpace,
    /// What lies on disk is not what was written.
    Corruption,
    /// Another process has the store open.
    Locked,
    /// The directory holds something else.
    NotOurs,
    /// Any other failure of the disk or the file system.
    Io,
    /// Anything else.
    Other,
}

impl BackendErrorKind {
    /// What the user can do about it, as the end of a message.
    pub fn advice(self) -> &'static str {
        match self {
            Self::NoSpace => "make room on the disk, or choose another --state-dir, and start the job again",
            Self::Corruption => {
                "the files of this store are damaged: restore them, or remove the directory and start over"
            }
            Self::Locked => "another job has it open: stop that job, or choose another --state-dir",
            Self::NotOurs => "choose an empty or a new --state-dir",
            Self::Io | Self::Other => "see the system's log for the disk",
        }
    }
}

/// A failure of keyed state. Every one of them ends the job: a failed read is never an absent
/// value, and after a failed commit nothing more is read or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StateError {
    /// A store could not be opened.
    #[error("cannot open the state store in {}: {source}; {}", directory.display(), source.kind.advice())]
    Open {
        /// Where the store lies.
        directory: PathBuf,
        /// What the backend says.
        source: BackendError,
    },
    /// A state name that no store takes.
    #[error("bad state name {name:?}: {reason}")]
    Name {
        /// The name.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A read failed. It is not known whether the key has a value.
    #[error("reading state {state} failed at key {key} ({store}): {source}; {}", source.kind.advice())]
    Read {
        /// Operator and state name.
        state: String,
        /// The row's bytes, in hexadecimal, or what was scanned.
        key: String,
        /// Where the store lies.
        store: String,
        /// What the backend says.
        source: BackendError,
    },
    /// A commit failed. The store is poisoned from here on.
    #[error("writing {rows} rows of state failed ({store}): {source}; {}", source.kind.advice())]
    Commit {
        /// How many rows the commit had.
        rows: usize,
        /// Where the store lies.
        store: String,
        /// What the backend says.
        source: BackendError,
    },
    /// Removing all rows of a state failed. The store is poisoned from here on.
    #[error("clearing state {state} failed ({store}): {source}; {}", source.kind.advice())]
    Clear {
        /// Operator and state name.
        state: String,
        /// Where the store lies.
        store: String,
        /// What the backend says.
        source: BackendError,
    },
    /// The store refuses work because an earlier commit failed.
    #[error("the state store ({store}) takes no more work, because an earlier write failed: {first}")]
    Poisoned {
        /// Where the store lies.
        store: String,
        /// The failure that poisoned it.
        first: String,
    },
    /// A stored value could not be read back, or a new one not be encoded.
    #[error("state {state}, key {key}: {source}")]
    Value {
        /// Operator and state name.
        state: String,
        /// The row's bytes, in hexadecimal.
        key: String,
        /// What is wrong.
        source: CodecError,
    },
    /// A stored row's key could not be read back.
    #[error("state {state}, key {key}: {source}")]
    Row {
        /// Operator and state name.
        state: String,
        /// The row's bytes, in hexadecimal.
        key: String,
        /// What is wrong.
        source: KeyError,
    },
}

/// At most 32 bytes of a key as hexadecimal digits, for messages.
pub fn hex(key: &[u8]) -> String {
    use std::fmt::Write;
    const SHOWN: usize = 32;
    let mut text = String::with_capacity(2 * SHOWN + 20);
    for byte in key.iter().take(SHOWN) {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    if key.len() > SHOWN {
        let _ = write!(text, "… ({} bytes)", key.len());
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn long_keys_are_shortened_in_messages() {
        assert_eq!(super::hex(&[0, 0xAB]), "00ab");
        assert!(super::hex(&[7; 100]).ends_with("07… (100 bytes)"));
        assert_eq!(super::hex(&[]), "");
    }
}
