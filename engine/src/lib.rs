//! Tidegate: stream processing on Timely Dataflow, with keyed state in RocksDB.
//!
//! Between two steps of its input's frontier, an operator gathers every state read that the
//! released records need, and answers them with one batched read; and yet each record sees
//! exactly the state it would have seen alone, in event-time order.
//!
//! | module | what it holds |
//! |---|---|
//! | [`job`], [`stream`], `updates` | how a job is written: sources, operators, sinks |
//! | [`combine`] | streams that become one, and one that becomes two |
//! | [`source`], [`ingest`] | reading traces; partitions with watermarks as a stream |
//! | [`sink`] | where results go |
//! | `driver`, `container` | a keyed operator of pure logic as an operator of Timely, and how its events travel |
//! | `memory` | what the memory for state is divided into |
//! | [`moment`] | the timestamp of every dataflow |
//! | [`run`], [`config`], [`error`] | running a job, with what, and why it ended early |
//! | [`metrics`] | what a job did and what it cost |
//! | [`pipeline`], [`cli`] | jobs under a name, and the command line that serves them |
//! | [`generate`] | reproducible traces |
//!
//! The pure logic is in [`operators`], state in [`state`].

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

pub mod cli;
pub mod combine;
pub mod config;
mod container;
mod driver;
pub mod error;
pub mod generate;
pub mod ingest;
pub mod job;
mod memory;
pub mod metrics;
pub mod moment;
pub mod pipeline;
pub mod run;
pub mod sink;
pub mod source;
pub mod stream;
mod updates;

pub use tidegate_operators as operators;
pub use tidegate_state as state;
