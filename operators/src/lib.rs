//! Stream operators as pure logic: no dataflow system and no database is named here, so every
//! rule of event time can be tested, enumerated and fuzzed without either.
//!
//! | module | what it holds |
//! |---|---|
//! | [`event`], [`frontier`] | a record with its time and rank; how far an input has come |
//! | [`watermark`] | the watermark of a source partition |
//! | [`stash`] | events that wait for the frontier |
//! | [`policy`] | how a release is cut into chunks |
//! | [`logic`] | what an operator does with a record: the seam between driver and logic |
//! | [`keyed`] | stash, release, read set, one batched read, apply in order, one commit |
//! | [`fold`], [`aggregate`] | one value a key |
//! | [`window`] | windows, and what is made of their records |
//! | [`process`] | any logic over values, lists and maps, with declared reads |

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

pub mod aggregate;
pub mod event;
pub mod fold;
pub mod frontier;
pub mod keyed;
pub mod logic;
pub mod policy;
pub mod process;
pub mod stash;
pub mod watermark;
pub mod window;

pub use tidegate_state as state;
