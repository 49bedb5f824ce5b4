//! Windows of event time over keyed streams.
//!
//! | file | what it holds |
//! |---|---|
//! | `windows.rs` | which windows a time belongs to, and the slices that they share |
//! | `aggregate.rs` | what is made of a window's records: create, add, merge, result |
//! | `operator.rs` | the operator: slices in state, windows that close |
//! | `firing.rs`, `updating.rs` | windows with results before they close and updates after |
//! | `session.rs` | sessions: records that follow each other closely |

mod aggregate;
mod firing;
mod operator;
mod session;
mod updating;
mod windows;

pub use aggregate::{Aggregate, Collect, Count, First, Last, Max, Mean, Min, Sum};
pub use firing::{Firing, FiringError, Pane, UpdateKind, WindowUpdate};
pub use operator::{WindowOperator, WindowRow};
pub use session::{SessionOperator, Sessions, SessionsError};
pub use updating::{OpenWindow, UpdatingReads, UpdatingWindowOperator};
pub use windows::{Windows, WindowsError};
