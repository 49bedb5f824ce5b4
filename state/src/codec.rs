//! Values as bytes: one format version byte, then bincode.
//!
//! This is the only file that names bincode. Its upstream is no longer maintained; a successor
//! would be written here under the next version byte, and rows of version 1 would stay readable.

use serde::{Serialize, de::DeserializeOwned};
use thiserror::Error;

/// The version byte in front of every stored value.
pub const FORMAT_VERSION: u8 = 1;

mod pieces;

pub use pieces::{PIECE_VERSION, decode_pieces, encode_piece};

/// A value that state can hold.
pub trait StateValue: Serialize + DeserializeOwned + 'static {}
impl<V: Serialize + DeserializeOwned + 'static> StateValue for V {}

/// A value could not be turned into bytes or back.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CodecError {
    /// No byte at all, not even that of the version.
    #[error("an empty value; at least a format version byte was expected")]
    Empty,
    /// Written by another version of the format.
    #[error("value format version {found}, this program reads version {FORMAT_VERSION}")]
    Version {
        /// The version byte that was found.
        found: u8,
    },
    /// The bytes are no value of the type.
    #[error("not a value of type {type_name}: {reason}")]
    Decode {
        /// The type that was asked for.
        type_name: &'static str,
        /// What bincode says.
        reason: String,
    },
    /// Bytes that are no row of [pieces](decode_pieces).
    #[error("not a list of {type_name} in pieces: {reason}, at byte {at}")]
    Piece {
        /// The type of the elements.
        type_name: &'static str,
        /// What is wrong.
        reason: String,
        /// Where the element or piece begins that is wrong.
        at: usize,
    },
    /// The value refuses to be written.
    #[error("a value of type {type_name} cannot be stored: {reason}")]
    Encode {
        /// The type of the value.
        type_name: &'static str,
        /// What bincode says.
        reason: String,
    },
}

/// Values up to this length are decoded under the tight limit.
const SMALL_BYTES: usize = 1 << 20;
/// No value is longer than this, decoded.
const LARGE_LIMIT_BYTES: usize = 1 << 34;

/// Little endian, numbers of variable length.
fn format() -> bincode::config::Configuration {
    bincode::config::standard()
}

/// Appends the stored form of `value`.
///
/// # Errors
/// [`CodecError::Encode`] where the type's own `Serialize` fails (a sequence of unknown length,
/// say). Nothing useful is appended then.
pub fn encode_into<V: StateValue>(value: &V, bytes: &mut Vec<u8>) -> Result<(), CodecError> {
    bytes.push(FORMAT_VERSION);
    encode_body(value, bytes).map(|_| ())
}

/// Appends a value without a version byte; tells how many bytes it took.
fn encode_body<V: StateValue>(value: &V, bytes: &mut Vec<u8>) -> Result<usize, CodecError> {
    bincode::serde::encode_into_std_write(value, bytes, format()).map_err(|error| CodecError::Encode {
        type_name: std::any::type_name::<V>(),
        reason: error.to_string(),
    })
}

/// Reads a value back. All bytes must be used.
///
/// # Errors
/// [`CodecError`] for an empty value, another version, bytes of another type, or bytes left over.
pub fn decode<V: StateValue>(bytes: &[u8]) -> Result<V, CodecError> {
    let (&version, body) = bytes.split_first().ok_or(CodecError::Empty)?;
    if version != FORMAT_VERSION {
        return Err(CodecError::Version { found: version });
    }
    let decode_error = |reason| CodecError::Decode { type_name: std::any::type_name::<V>(), reason };
    let (value, used) = decode_body(body).map_err(decode_error)?;
    if used != body.len() {
        return Err(decode_error(format!("{} bytes left over", body.len() - used)));
    }
    Ok(value)
}

/// Reads a value from the beginning of `body`; tells how many bytes it took, or what is wrong.
fn decode_body<V: StateValue>(body: &[u8]) -> Result<(V, usize), String> {
    // bincode allocates a text as long as the bytes claim it to be, and aborts where that is more
    // than there is; only a limit known at compile time stops it. An encoded byte stands for at
    // most 16 bytes of numbers, so these limits never meet an honest value.
    match body.len() {
        0..=SMALL_BYTES => {
            bincode::serde::decode_from_slice(body, format().with_limit::<{ 16 * SMALL_BYTES }>())
        }
        _ => bincode::serde::decode_from_slice(body, format().with_limit::<LARGE_LIMIT_BYTES>()),
    }
    .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    type Nested = (u64, Option<String>, Vec<(i32, f64)>, BTreeMap<String, Vec<u8>>);

    fn encoded<V: StateValue>(value: &V) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode_into(value, &mut bytes).unwrap();
        bytes
    }

    proptest! {
        #[test]
        fn values_come_back(value: (u64, Option<String>, Vec<(i32, i64)>, BTreeMap<String, Vec<u8>>)) {
            prop_assert_eq!(decode::<(u64, Option<String>, Vec<(i32, i64)>, BTreeMap<String, Vec<u8>>)>(&encoded(&value)).unwrap(), value);
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = decode::<Nested>(&bytes);
        }
    }

    #[test]
    fn the_stored_form_is_fixed() {
        // These bytes are on disks: a change here needs a new format version.
        assert_eq!(encoded(&7u64), [1, 7]);
        assert_eq!(encoded(&300u64), [1, 251, 44, 1]);
        assert_eq!(encoded(&(-1i64, "ab".to_string())), [1, 1, 2, b'a', b'b']);
        assert_eq!(encoded(&()), [1]);
        assert_eq!(encoded(&Some(1.5f64)), [1, 1, 0, 0, 0, 0, 0, 0, 248, 63]);
    }

    #[test]
    fn wrong_bytes_are_named() {
        assert!(matches!(decode::<u64>(&[]), Err(CodecError::Empty)));
        assert!(matches!(decode::<u64>(&[9, 1]), Err(CodecError::Version { found: 9 })));
        assert!(decode::<u64>(&[1, 7, 7]).unwrap_err().to_string().contains("1 bytes left over"));
        assert!(decode::<String>(&[1, 4, b'a']).unwrap_err().to_string().contains("String"));
    }

    #[test]
    fn a_huge_length_in_few_bytes_allocates_little() {
        // 2^63 elements claimed by ten bytes.
        let bytes = [1, 253, 255, 255, 255, 255, 255, 255, 255, 127];
        assert!(decode::<Vec<u64>>(&bytes).is_err());
        assert!(decode::<String>(&bytes).is_err());
    }
}
