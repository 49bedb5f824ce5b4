//! Lists in pieces: what is appended to a stored list is a list.
//!
//! A row is any number of pieces, one after the other, none included:
//!
//! | bytes | what |
//! |---|---|
//! | 1 | [`PIECE_VERSION`] |
//! | 1 to 10 | length of the elements in bytes: seven bits a byte, the lowest first, and the highest bit set in all but the last |
//! | that many | the elements, each as [`encode_into`](super::encode_into) writes it, without a version byte |
//!
//! So the bytes of two lists, one after the other, are those of the two lists joined: a store can
//! append without knowing what it appends to. Each element has a byte at least; what had none
//! could be claimed any number of times by a damaged row.

use super::{CodecError, StateValue, decode_body, encode_body};
use std::any::type_name;

/// The version byte of a piece. Pieces count from 128, values from 1, so that neither is ever
/// taken for the other.
pub const PIECE_VERSION: u8 = 129;

/// Bits of a length in each byte.
const LENGTH_BITS: usize = 7;
/// Set where another byte of the length follows.
const GOES_ON: u8 = 1 << LENGTH_BITS;

/// Appends a piece that holds `elements`; nothing where there are none.
///
/// # Errors
/// [`CodecError::Encode`] where an element's own `Serialize` fails, or an element takes no byte.
/// Nothing useful is appended then.
pub fn encode_piece<V: StateValue>(elements: &[V], bytes: &mut Vec<u8>) -> Result<(), CodecError> {
    if elements.is_empty() {
        return Ok(());
    }
    // Most pieces are short, and their length is one byte.
    bytes.extend_from_slice(&[PIECE_VERSION, 0]);
    let start = bytes.len();
    for element in elements {
        if encode_body(element, bytes)? == 0 {
            let reason = "a list in pieces holds no elements that take no byte".to_string();
            return Err(CodecError::Encode { type_name: type_name::<V>(), reason });
        }
    }
    let mut left = bytes.len() - start;
    let mut place = start - 1;
    loop {
        let low = (left & usize::from(GOES_ON - 1)) as u8;
        left >>= LENGTH_BITS;
        bytes[place] = if left > 0 { low | GOES_ON } else { low };
        if left == 0 {
            return Ok(());
        }
        place += 1;
        bytes.insert(place, 0);
    }
}

/// Reads a row of pieces back, appends its elements to `elements`, and tells how many pieces it
/// had.
///
/// # Errors
/// [`CodecError::Piece`] where the bytes are no pieces or hold no such elements, or
/// [`CodecError::Version`]. `elements` then has those before the error.
pub fn decode_pieces<V: StateValue>(bytes: &[u8], elements: &mut Vec<V>) -> Result<usize, CodecError> {
    let mut rest = bytes;
    let mut pieces = 0;
    while let Some((&version, after)) = rest.split_first() {
        if version != PIECE_VERSION {
            return Err(CodecError::Version { found: version });
        }
        let at = |rest: &[u8]| bytes.len() - rest.len();
        let error =
            |rest: &[u8], reason| CodecError::Piece { type_name: type_name::<V>(), reason, at: at(rest) };
        let (length, after) = read_length(after).ok_or_else(|| error(rest, "a bad length".to_string()))?;
        if length > after.len() {
            let reason = format!("a piece of {length} bytes, and {} are left", after.len());
            return Err(error(rest, reason));
        }
        let (mut body, after) = after.split_at(length);
        while !body.is_empty() {
            let place = &rest[rest.len() - after.len() - body.len()..];
            let (element, used) = decode_body(body).map_err(|reason| error(place, reason))?;
            if used == 0 {
                return Err(error(place, "an element of no bytes".to_string()));
            }
            elements.push(element);
            body = &body[used..];
        }
        rest = after;
        pieces += 1;
    }
    Ok(pieces)
}

/// A length, and the bytes after it; none where it does not end, or is greater than any memory.
fn read_length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut length = 0u64;
    for (place, &byte) in bytes.iter().enumerate() {
        let bits = u64::from(byte & (GOES_ON - 1));
        let shift = (place * LENGTH_BITS) as u32;
        // Shifted out is too great.
        let shifted = bits.checked_shl(shift).filter(|shifted| shifted >> shift == bits)?;
        length |= shifted;
        if byte & GOES_ON == 0 {
            return Some((usize::try_from(length).ok()?, &bytes[place + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encoded<V: StateValue>(elements: &[V]) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode_piece(elements, &mut bytes).unwrap();
        bytes
    }

    fn decoded<V: StateValue>(bytes: &[u8]) -> Result<(Vec<V>, usize), CodecError> {
        let mut elements = Vec::new();
        decode_pieces(bytes, &mut elements).map(|pieces| (elements, pieces))
    }

    proptest! {
        #[test]
        fn pieces_in_a_row_are_their_lists_joined(
            lists in proptest::collection::vec(proptest::collection::vec(any::<(String, i64)>(), 0..6), 0..6)) {
            let bytes: Vec<u8> = lists.iter().flat_map(|list| encoded(list)).collect();
            let pieces = lists.iter().filter(|list| !list.is_empty()).count();
            prop_assert_eq!(decoded::<(String, i64)>(&bytes).unwrap(), (lists.concat(), pieces));
        }

        #[test]
        fn a_length_of_any_size_comes_back(bytes in 0usize..70_000) {
            let text = "x".repeat(bytes);
            prop_assert_eq!(decoded::<String>(&encoded(std::slice::from_ref(&text))).unwrap(), (vec![text], 1));
        }

        #[test]
        fn arbitrary_bytes_never_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..60), whole: bool) {
            if !whole && bytes.len() > 1 {
                bytes[0] = PIECE_VERSION;
                bytes[1] %= 64;
            }
            let _ = decoded::<(String, Vec<u64>)>(&bytes);
            let _ = decoded::<()>(&bytes);
            let _ = decoded::<Option<bool>>(&bytes);
        }

        #[test]
        fn a_cut_row_is_an_error_or_ends_between_pieces(lists in proptest::collection::vec(proptest::collection::vec(any::<u16>(), 0..6), 0..6), cut in any::<prop::sample::Index>()) {
            let ends: Vec<usize> = lists.iter().scan(0, |end, list| {
                *end += encoded(list).len();
                Some(*end)
            }).collect();
            let bytes: Vec<u8> = lists.iter().flat_map(|list| encoded(list)).collect();
            let cut = cut.index(bytes.len() + 1);
            prop_assert_eq!(decoded::<u16>(&bytes[..cut]).is_ok(), cut == 0 || ends.contains(&cut));
        }
    }

    #[test]
    fn the_stored_form_is_fixed() {
        // These bytes are on disks: a change here needs a new version byte.
        assert_eq!(encoded(&[7u64, 300]), [129, 4, 7, 251, 44, 1]);
        assert_eq!(encoded(&["ab".to_string()]), [129, 3, 2, b'a', b'b']);
        assert_eq!(encoded::<u64>(&[]), []);
        let long = encoded(&[7u8; 300]);
        assert_eq!((&long[..4], long.len()), (&[129, 0b1010_1100, 0b10, 7][..], 303));
    }

    #[test]
    fn wrong_bytes_are_named() {
        let message = |bytes: &[u8]| decoded::<String>(bytes).unwrap_err().to_string();
        assert!(matches!(decoded::<u64>(&[1, 1, 7]), Err(CodecError::Version { found: 1 })));
        assert!(matches!(super::super::decode::<u64>(&[129, 1]), Err(CodecError::Version { found: 129 })));
        assert!(message(&[129]).contains("a bad length, at byte 0"));
        assert!(message(&[129, 2, 1, b'a', 129, 9, 0]).contains("9 bytes, and 1 are left, at byte 4"));
        assert!(message(&[129, 3, 0, 4, b'a']).contains("at byte 3"), "{}", message(&[129, 3, 0, 4, b'a']));
        let endless = [&[129][..], &[255; 11]].concat();
        assert!(message(&endless).contains("a bad length"));
        assert!(message(&[129, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1, 0]).contains("are left"));
        // 2^63 bytes claimed by the element itself.
        assert!(message(&[129, 9, 253, 255, 255, 255, 255, 255, 255, 255, 127]).contains("at byte 2"));
        assert!(decoded::<()>(&[129, 1, 0]).unwrap_err().to_string().contains("an element of no bytes"));
    }

    #[test]
    fn elements_of_no_bytes_are_refused() {
        assert!(encode_piece(&[(), ()], &mut Vec::new()).unwrap_err().to_string().contains("no byte"));
    }
}
