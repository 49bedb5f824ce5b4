//! Appending to rows without reading them, by RocksDB's merges.
//!
//! RocksDB keeps what is appended beside the row, and puts the two together when the row is read,
//! when a write buffer goes to a file, and in compactions.

use rocksdb::{MergeOperands, Options};

/// The name is stored with the files; another name would be another way to merge.
const OPERATOR_NAME: &str = "tidegate.append";

/// Has merges append. Every column family needs it, as any state may be appended to.
pub(super) fn merge_by_appending(column: &mut Options) {
    column.set_merge_operator_associative(OPERATOR_NAME, appended);
}

/// The value, and what was appended to it, first to last. RocksDB may show several appends
/// without their value: they become one. Any bytes will do, so this never fails: where it did,
/// the row could not be read any more.
fn appended(_: &[u8], value: Option<&[u8]>, appends: &MergeOperands) -> Option<Vec<u8>> {
    let value = value.unwrap_or_default();
    let mut bytes = Vec::with_capacity(value.len() + appends.iter().map(<[u8]>::len).sum::<usize>());
    bytes.extend_from_slice(value);
    appends.iter().for_each(|append| bytes.extend_from_slice(append));
    Some(bytes)
}
