//! Keys as bytes, so that the order of the bytes is the order of the keys.
//!
//! Every encoding here has two properties, and both matter for every row the engine stores:
//!
//! * **Order.** `a < b` exactly when `encode(a) < encode(b)` byte by byte. RocksDB and the
//!   in-memory store know no order but that one, and scans (a closing window, all entries of one
//!   map) must come back in the order of the values.
//! * **Prefix safety.** No encoding is the beginning of another one of the same type. A row
//!   `(key, time)` therefore never reads as `(longer key, …)`, whatever bytes the key holds.
//!
//! | type | bytes |
//! |---|---|
//! | `u8 … u128`, `usize` | big endian |
//! | `i8 … i128`, `isize` | big endian with the sign bit turned |
//! | `bool`, `()` | one byte 0 or 1; no byte |
//! | `char` | its code point as `u32` |
//! | `String`, [`Text`], `Box<str>`, [`Bytes`] | the bytes, each 0 as `00 FF`, then `00 01` |
//! | `Option<T>` | 0, or 1 and the value |
//! | tuples | one field after the other |
//!
//! The escape for strings is the one of FoundationDB's tuple layer, with `00 01` as its end, so
//! that a following field may begin with any byte.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A short text, kept inline up to 24 bytes: what traces use for keys, so that a record with a
/// text key costs no allocation.
pub type Text = compact_str::CompactString;

/// The bytes do not spell a key of the type that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The bytes ended before the key did.
    #[error("the key ends after {available} bytes, {wanted} more were expected")]
    Short {
        /// Bytes that were left.
        available: usize,
        /// Bytes that the type needs.
        wanted: usize,
    },
    /// Bytes that no key of this type is encoded as.
    #[error("not a key of type {type_name}: {reason}")]
    Malformed {
        /// The type that was asked for.
        type_name: &'static str,
        /// What is wrong with the bytes.
        reason: &'static str,
    },
}

/// A value that can be a key, or a part of one.
///
/// # Contract
///
/// `encode_into` appends; it must preserve order and be prefix-safe (see the [module](self)),
/// and `decode_from` must take back exactly the bytes that `encode_into` appended. Equal values
/// encode to equal bytes on every machine and in every version: the bytes are stored, and they
/// decide which worker owns a key.
///
/// ```
/// use tidegate_state::key::{encode, StateKey};
/// assert!(encode(&-1i64) < encode(&0i64));
/// assert!(encode(&("a".to_string(), 9u32)) < encode(&("aa".to_string(), 1u32)));
/// let bytes = encode(&(7u16, Some(-3i8)));
/// assert_eq!(<(u16, Option<i8>)>::decode_from(&mut &bytes[..]).unwrap(), (7, Some(-3)));
/// ```
pub trait StateKey: Sized {
    /// Appends the key's bytes.
    fn encode_into(&self, bytes: &mut Vec<u8>);

    /// Takes one key off the front of `bytes`.
    ///
    /// # Errors
    /// [`KeyError`] where the bytes do not begin with an encoded key of this type.
    fn decode_from(bytes: &mut &[u8]) -> Result<Self, KeyError>;
}

/// The bytes of one key.
pub fn encode<K: StateKey>(key: &K) -> Vec<u8> {
    let mut bytes = Vec::new();
    key.encode_into(&mut bytes);
    bytes
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N], KeyError> {
    match bytes.split_first_chunk::<N>() {
        Some((head, tail)) => {
            *bytes = tail;
            Ok(*head)
        }
        None => Err(KeyError::Short { available: bytes.len(), wanted: N }),
    }
}

macro_rules! unsigned_keys {
    ($($type:ty),*) => {$(
        impl StateKey for $type {
            #[inline]
            fn encode_into(&self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_be_bytes());
            }
            #[inline]
            fn decode_from(bytes: &mut &[u8]) -> Result<Self, KeyError> {
                Ok(<$type>::from_be_bytes(take(bytes)?))
            }
        }
    )*};
}
unsigned_keys!(u8, u16, u32, u64, u128);

macro_rules! signed_keys {
    ($($type:ty as $unsigned:ty),*) => {$(
        impl StateKey for $type {
            #[inline]
            fn encode_into(&self, bytes: &mut Vec<u8>) {
                // With the sign bit turned, the least number becomes all zeros.
                let turned = (*self as $unsigned) ^ (1 << (<$unsigned>::BITS - 1));
                bytes.extend_from_slice(&turned.to_be_bytes());
            }
            #[inline]
            fn decode_from(bytes: &mut &[u8]) -> Result<Self, KeyError> {
                let turned = <$unsigned>::from_be_bytes(take(bytes)?);
                Ok((turned ^ (1 << (<$unsigned>::BITS - 1))) as $type)
            }
        }
    )*};
}
signed_keys!(i8 as u8, i16 as u16, i32 as u32, i64 as u64, i128 as u128);

// `usize` and `isize` are stored as 64 bits, so that a store can move between machines.
impl StateKey for usize {
    fn encode_into(&self, bytes: &mut Vec<u8>) {
        (*self as u64).encode_into(bytes);
    }
    fn decode_from(bytes: &mut &[u8]) -> Result<Self, KeyError> {
        usize::try_from(u64::decode_from(bytes)?)
            .map_err(|_| malformed::<usize>("larger than this machine's usize"))
    }
}

impl StateKey for isize {
    fn encode_into(&self, bytes: &mut Vec<u8>) {
        (*self as i64).encode_into(bytes);
    }
    fn decode_from(bytes: &mut &[u8]) -> Result<Self, KeyError> {
        isize::try_from(i64::decode_from(bytes)?)
            .map_err(|_| malformed::<isize>("larger than this machine's isize"))
    }
}

fn malformed<T>(reason: &'static str) -> KeyError {
    KeyError::Malformed { type_name: std::any::type_name::<T>(), reason }
}

impl StateKey for bool {
    fn encode_into(&self, bytes: &mut Vec<u8>) {
        bytes.push(u8::from(*self));
    }
    fn decode_from(bytes: &mut &[u8]) -> Result<Self, KeyError> {
        match u8::decode_from(bytes)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(malformed::<bool>("neither 0 nor 1")),
        }
    }
}

impl StateKey for () {
    fn encode_into(&self, _: &mut Vec<u8>) {}
    fn decode_from(_: &mut &[u8]) -> Result<Self, KeyError> {
        Ok(())
    }
}

impl StateKey for char {
    fn encode_into(&self, bytes: &mut Vec<u8>) {
        (*self as u32).encode_into(bytes);
    }
    fn decode_from(bytes: &mut &[u8]) -> Result<Self, KeyError> {
        char::from_u32(u32::decode_from(bytes)?).ok_or_else(|| malformed::<char>("no code point"))
    }
}

/// Any bytes as a key. (`Vec<u8>` itself would read as a list of small numbers.)
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Bytes(pub Vec<u8>);

const ESCAPED_ZERO: u8 = 0xFF;
const END: u8 = 0x01;

fn encode_bytes(value: &[u8], bytes: &mut Vec<u8>) {
    bytes.reserve(value.len() + 2);
    for (part, piece) in value.split(|&byte| byte == 0).enumerate() {
        if part > 0 {
            bytes.extend_from_slice(&[0, ESCAPED_ZERO]);
        }
        bytes.extend_from_slice(piece);
    }
    bytes.extend_from_slice(&[0, END]);
}

fn decode_bytes<T>(bytes: &mut &[u8], mut append: impl FnMut(&[u8])) -> Result<(), KeyError> {
    loop {
        let Some(zero) = bytes.iter().position(|&byte| byte == 0) else {
            return Err(KeyError::Short { available: bytes.len(), wanted: bytes.len() + 2 });
        };
        append(&bytes[..zero]);
        match bytes.get(zero + 1) {
            Some(&END) => {
                *bytes = &bytes[zero + 2..];
                return Ok(());
            }
            Some(&ESCAPED_ZERO) => {
                append(&[0]);
                *bytes = &bytes[zero + 2..];
            }
            Some(_) => return Err(malformed::<T>("a zero byte that neither ends nor is escaped")),
            None => return Err(KeyError::Short { available: 1, wanted: 2 }),
        }
    }
}

impl StateKey for Bytes {
    fn encode_into(&self, bytes: &mut Vec<u8>) {
        encode_bytes(&self.0, bytes);
    }
    fn decode_from(bytes: &mut &[u8]) -> Result<Self, KeyError> {
        let mut value = Vec::new();
        decode_bytes::<Self>(bytes, |piece| value.extend_from_slice(piece))?;
        Ok(Bytes(value))
    }
}

macro_rules! text_keys {
    ($($type:ty),*) => {$(
        impl StateKey for $type {
            fn encode_into(&self, bytes: &mut Vec<u8>) {
                encode_bytes(self.as_bytes(), bytes);
            }
            fn decode_from(bytes: &mut &[u8]) -> Result<Self, KeyError> {
                let value = Bytes::decode_from(bytes)?.0;
                let text = String::from_utf8(value).map_err(|_| malformed::<Self>("not UTF-8"))?;
                Ok(text.into())
            }
        }
    )*};
}
text_keys!(String, Box<str>, Text);

impl<T: StateKey> StateKey for Option<T> {
    fn encode_into(&self, bytes: &mut Vec<u8>) {
        bytes.push(u8::from(self.is_some()));
        if let Some(value) = self {
            value.encode_into(bytes);
        }
    }
    fn decode_from(bytes: &mut &[u8]) -> Result<Self, KeyError> {
        match u8::decode_from(bytes)? {
            0 => Ok(None),
            1 => T::decode_from(bytes).map(Some),
            _ => Err(malformed::<Self>("neither 0 (none) nor 1 (some)")),
        }
    }
}

macro_rules! tuple_keys {
    ($(($($field:ident $index:tt),+)),+) => {$(
        impl<$($field: StateKey),+> StateKey for ($($field,)+) {
            #[inline]
            fn encode_into(&self, bytes: &mut Vec<u8>) {
                $(self.$index.encode_into(bytes);)+
            }
            #[inline]
            fn decode_from(bytes: &mut &[u8]) -> Result<Self, KeyError> {
                Ok(($($field::decode_from(bytes)?,)+))
            }
        }
    )+};
}
tuple_keys!(
    (A 0),
    (A 0, B 1),
    (A 0, B 1, C 2),
    (A 0, B 1, C 2, D 3),
    (A 0, B 1, C 2, D 3, E 4),
    (A 0, B 1, C 2, D 3, E 4, F 5)
);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decoded<K: StateKey>(bytes: &[u8]) -> K {
        let mut rest = bytes;
        let key = K::decode_from(&mut rest).unwrap();
        assert!(rest.is_empty(), "decoding must take all of the key's bytes");
        key
    }

    fn round_trip_and_order<K: StateKey + Ord + std::fmt::Debug>(a: &K, b: &K) {
        let (x, y) = (encode(a), encode(b));
        assert_eq!(&decoded::<K>(&x), a);
        assert_eq!(x.cmp(&y), a.cmp(b), "{a:?} against {b:?}");
        if a != b {
            assert!(!y.starts_with(&x), "{a:?} encodes to the beginning of {b:?}");
        }
    }

    type Wide = ((u8, i16, Option<String>), (Bytes, bool, char), (i128, u64, Option<Option<i8>>));

    fn wide() -> impl Strategy<Value = Wide> {
        let text = proptest::collection::vec(prop_oneof![Just('\0'), Just('a'), any::<char>()], 0..4)
            .prop_map(|chars| chars.into_iter().collect::<String>());
        let bytes = proptest::collection::vec(prop_oneof![Just(0u8), Just(1), Just(255), any::<u8>()], 0..5)
            .prop_map(Bytes);
        (
            (any::<u8>(), any::<i16>(), proptest::option::of(text)),
            (bytes, any::<bool>(), any::<char>()),
            (any::<i128>(), any::<u64>(), any::<Option<Option<i8>>>()),
        )
    }

    proptest! {
        #[test]
        fn tuples_of_everything_keep_their_order(a in wide(), b in wide()) {
            round_trip_and_order(&a, &b);
            // Fields that agree up to somewhere are where composite keys go wrong.
            let c = ((a.0.0, a.0.1, b.0.2.clone()), b.1.clone(), a.2);
            round_trip_and_order(&a, &c);
            let d = (a.0.clone(), (b.1.0.clone(), a.1.1, a.1.2), b.2);
            round_trip_and_order(&a, &d);
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = Wide::decode_from(&mut &bytes[..]);
            let _ = <(Text, usize, isize, i32)>::decode_from(&mut &bytes[..]);
        }
    }

    #[test]
    fn small_texts_are_ordered_completely() {
        // Every text over the bytes that matter to the escape, up to three bytes long.
        let alphabet = [0u8, 1, 2, 0xFE, 0xFF];
        let mut all = vec![vec![]];
        for length in 0..3 {
            let longest: Vec<_> =
                all.iter().filter(|text: &&Vec<u8>| text.len() == length).cloned().collect();
            for text in longest {
                for byte in alphabet {
                    all.push([&text[..], &[byte]].concat());
                }
            }
        }
        for a in &all {
            for b in &all {
                round_trip_and_order(&(Bytes(a.clone()), 1u8), &(Bytes(b.clone()), 0u8));
                round_trip_and_order(&(Bytes(a.clone()), 0xFFu8), &(Bytes(b.clone()), 0xFFu8));
            }
        }
    }

    #[test]
    fn limits_of_the_integers_are_ordered() {
        let values = [i64::MIN, i64::MIN + 1, -256, -255, -1, 0, 1, 255, 256, 65536, i64::MAX - 1, i64::MAX];
        for a in values {
            for b in values {
                round_trip_and_order(&a, &b);
                round_trip_and_order(&(a as isize), &(b as isize));
                round_trip_and_order(&(a as u64), &(b as u64));
                round_trip_and_order(&(a as u128 as usize), &(b as u128 as usize));
            }
        }
    }
}
