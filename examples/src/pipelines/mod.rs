//! The pipelines that the program serves.

pub mod busiest_hour;
pub mod daily_counts;
pub mod first_seen;
pub mod hourly_counts;
pub mod last_value;
pub mod recent_median;
pub mod running_top;
pub mod running_totals;
pub mod visits;
pub mod z_score;

use tidegate::pipeline::Pipeline;

/// All of them.
pub const PIPELINES: [Pipeline; 10] = [
    running_totals::PIPELINE,
    running_top::PIPELINE,
    z_score::PIPELINE,
    last_value::PIPELINE,
    first_seen::PIPELINE,
    daily_counts::PIPELINE,
    recent_median::PIPELINE,
    hourly_counts::PIPELINE,
    busiest_hour::PIPELINE,
    visits::PIPELINE,
];
