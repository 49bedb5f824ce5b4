//! Traces of events, made up: from a seed and a description to a file, the same on every machine.
//!
//! A trace is described by a [`TraceSpec`]: when events happen, which keys they have, what they
//! carry, how late they arrive. A [`TraceGenerator`] turns that into records in the order of their
//! arrival, far faster than any job takes them, and [`write_trace`] writes them to a file.
//!
//! The same specification gives the same records on every machine and in every later version of
//! this crate. For this the random numbers are the module's own, and floating point goes no
//! further than what IEEE 754 specifies to the last bit; tests hold a checksum of every
//! distribution.
//!
//! | file | what it holds |
//! |---|---|
//! | `spec` | the description of a trace and of its streams |
//! | `arrivals`, `diurnal`, `moment` | when events happen |
//! | `keys`, `zipf` | which key they have |
//! | `values`, `quantiles` | what they carry |
//! | `delay` | how late they arrive, and other lengths of time |
//! | `generator`, `queue` | from there to records in order of arrival |
//! | `output`, `line`, `writer` | from records to a file |
//! | `presets` | traces that have a name |
//! | [`workload`] | the two workloads that stream processors are compared with |
//! | `random`, `ziggurat`, `exact_math` | the ground that all of it stands on |
//!
//! This module knows nothing of dataflow or of state.

mod arrivals;
mod delay;
mod diurnal;
mod error;
mod exact_math;
mod generator;
mod keys;
mod line;
mod moment;
mod output;
mod presets;
mod quantiles;
mod queue;
mod random;
mod spec;
mod values;
pub mod workload;
mod writer;
mod ziggurat;
mod zipf;

pub use arrivals::ArrivalProcess;
pub use delay::{DelayDistribution, LagDistribution, MAX_DELAY_US};
pub use error::GenerateError;
pub use generator::{GeneratedRecord, TraceGenerator};
pub use keys::{ActivePeriods, KeyDistribution, KeyOrder, KeySpec, MAX_KEYS, StoppingKeys};
pub use output::{Compression, KeyFormat, MAX_DECIMALS, OutputSpec, PayloadSpec, TextFormat, TimeFormat};
pub use presets::{preset, preset_names};
pub use quantiles::Quantiles;
pub use spec::{CountDistribution, MAX_STREAMS, SessionSpec, StreamSpec, TraceSpec};
pub use values::{MAX_WALK_KEYS, ValueDistribution};
pub use writer::{TraceWriter, WriteSummary, write_trace};
