//! What tables hold: values that are read and written whole, and lists that can also be appended to.

use super::fold::FoldPolicy;
use crate::codec::{self, CodecError, StateValue};

/// What a cell of a table can hold, with its stored form.
pub trait CellValue: Sized + 'static {
    /// Whether [`Table::append_to`](super::Table::append_to) may be used: whether the stored
    /// forms of two values, one after the other, are that of the two joined.
    const APPENDS: bool = false;

    /// Appends the stored form.
    ///
    /// # Errors
    /// [`CodecError::Encode`] where the value refuses to be written.
    fn encode_into(&self, bytes: &mut Vec<u8>) -> Result<(), CodecError>;

    /// Reads a value back.
    ///
    /// # Errors
    /// [`CodecError`] where the bytes are no such value.
    fn decode(bytes: &[u8]) -> Result<Self, CodecError>;

    /// Joins what comes after this value to it. Never called where nothing can be appended.
    fn join(&mut self, _tail: Self) {}

    /// Whether the value, as it was read, should be written back in a form that is read faster.
    fn should_fold(&self) -> bool {
        false
    }
}

impl<V: StateValue> CellValue for V {
    fn encode_into(&self, bytes: &mut Vec<u8>) -> Result<(), CodecError> {
        codec::encode_into(self, bytes)
    }

    fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        codec::decode(bytes)
    }
}

/// A list that grows at its end: a whole one, or the end of one whose beginning is not known.
#[derive(Debug)]
pub struct Appended<V> {
    /// The elements, first to last.
    pub elements: Vec<V>,
    /// Pieces that it was read from.
    pieces: usize,
}

impl<V> Default for Appended<V> {
    fn default() -> Self {
        Appended { elements: Vec::new(), pieces: 0 }
    }
}

impl<V: StateValue> CellValue for Appended<V> {
    const APPENDS: bool = true;

    fn encode_into(&self, bytes: &mut Vec<u8>) -> Result<(), CodecError> {
        codec::encode_piece(&self.elements, bytes)
    }

    fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        let mut elements = Vec::new();
        let pieces = codec::decode_pieces(bytes, &mut elements)?;
        Ok(Appended { elements, pieces })
    }

    fn join(&mut self, tail: Self) {
        self.elements.extend(tail.elements);
    }

    fn should_fold(&self) -> bool {
        FoldPolicy::default().folds(self.pieces)
    }
}
