//! Example pipelines, one file each: copy one to begin your own.
//!
//! | pipeline | shows |
//! |---|---|
//! | [`running_totals`](pipelines::running_totals) | a fold with a state of its own shape |
//! | [`running_top`](pipelines::running_top) | a ready-made aggregate |
//! | [`z_score`](pipelines::z_score) | a fold that passes few records on |
//! | [`last_value`](pipelines::last_value) | a fold that knows the value before |
//! | [`first_seen`](pipelines::first_seen) | a process function with a value |
//! | [`daily_counts`](pipelines::daily_counts) | a process function with a map |
//! | [`recent_median`](pipelines::recent_median) | a process function with a list |

pub mod pipelines;

pub use pipelines::PIPELINES;
