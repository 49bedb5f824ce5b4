//! A state of whatever size: a count, and bytes behind it.

use crate::generate::workload;
use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::{Serialize, Serializer};

/// A count in a state of some size that does not compress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaddedCount(Vec<u8>);

impl PaddedCount {
    /// None counted yet, for a state of this size: at least 8 bytes.
    pub fn new(key: u64, bytes: usize) -> Self {
        let mut value = vec![0; bytes];
        workload::fill_value(&mut value, key, 0);
        PaddedCount(value)
    }

    /// The count.
    pub fn count(&self) -> u64 {
        workload::value_count(&self.0)
    }

    /// Counts one more, and gives the new count.
    pub fn increment(&mut self) -> u64 {
        let count = self.count() + 1;
        self.0[..8].copy_from_slice(&count.to_le_bytes());
        count
    }
}

// As bytes, not as a list of numbers: a copy, where a list is a loop.
impl Serialize for PaddedCount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for PaddedCount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = Vec<u8>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("bytes")
            }
            fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
                Ok(bytes.to_vec())
            }
            fn visit_byte_buf<E: de::Error>(self, bytes: Vec<u8>) -> Result<Vec<u8>, E> {
                Ok(bytes)
            }
        }
        deserializer.deserialize_byte_buf(Bytes).map(PaddedCount)
    }
}
