//! Keyed state as bytes in an ordered store, read in batches.
//!
//! This crate knows nothing of dataflow. From the bottom up:
//!
//! | module | what it holds |
//! |---|---|
//! | [`key`], [`codec`] | keys and values as bytes |
//! | [`group`], [`row`] | key groups, and how the rows of a state are laid out |
//! | [`arena`], [`batch`] | many keys, and many changes, in one piece of memory |
//! | [`backend`] | what is asked of a store; [`memory`], `rocks` and [`fault`] answer it |
//! | [`directory`] | the directory of a job's stores, owned by one job at a time |
//! | [`store`] | a worker's store: errors with names, [`statistics`], poison after a failed commit |
//! | [`readers`] | threads that read beside the worker |
//! | [`strategy`], [`planner`] | how the reads of a release reach the store, and how `auto` decides |
//! | [`table`] | the view of a release: values read, and changes on top of them; rows by time |
//! | [`keyed`] | value, list and map of the current key, on tables |
//!
//! The feature `rocksdb` (on by default) adds the RocksDB backend. Without it this crate, and
//! whatever pure logic is written on it, builds without any C++.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

pub mod arena;
pub mod backend;
pub mod batch;
pub mod codec;
pub mod directory;
pub mod error;
pub mod fault;
pub mod group;
#[cfg(feature = "rocksdb")]
pub mod io_uring;
pub mod key;
pub mod keyed;
pub mod memory;
pub mod planner;
pub mod readers;
#[cfg(feature = "rocksdb")]
pub mod rocks;
pub mod row;
pub mod statistics;
pub mod store;
pub mod strategy;
pub mod table;
