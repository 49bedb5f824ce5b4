//! `--explain`: how the reads of each state were carried out, and why.

use crate::metrics::Metrics;
use std::fmt::Write;
use tidegate_state::planner::{PlanReport, ReadCall, SizeReport};

/// The explanation, as text of several lines; one part for each state and worker.
pub fn explain(metrics: &Metrics) -> String {
    let mut text = String::new();
    for (name, plans) in &metrics.plans {
        for (worker, plan) in plans.iter().enumerate() {
            // Writing to a String cannot fail.
            let _ = explain_plan(&mut text, name, worker, plan);
        }
        let state = metrics.states.get(name).copied().unwrap_or_default();
        let of = |part: u64, whole: u64| 100.0 * part as f64 / whole.max(1) as f64;
        let _ = writeln!(
            text,
            "  of {} distinct keys, {:.1} % were at hand and {:.1} % had been read ahead; {} keys were read \
             ahead, {} of them for nothing, {} thrown away as stale",
            state.keys_distinct,
            of(state.keys_at_hand, state.keys_distinct),
            of(state.ahead_hits, state.keys_distinct),
            state.keys_ahead,
            state.ahead_wasted,
            state.ahead_stale,
        );
    }
    text
}

fn explain_plan(text: &mut String, name: &str, worker: usize, plan: &PlanReport) -> std::fmt::Result {
    let [gets, multi_gets, threads] = plan.chosen;
    writeln!(
        text,
        "state {name:?}, worker {worker}: {gets} reads by gets, {multi_gets} by multiget, {threads} by threads; \
         {:.1} % of their time went into trying other calls",
        100.0 * plan.explored_share,
    )?;
    if plan.sizes.is_empty() {
        return Ok(());
    }
    writeln!(
        text,
        "  {:>15}  {:<9} {:>20} {:>20} {:>20}",
        "keys at once", "taken", "gets", "multiget", "threads"
    )?;
    plan.sizes.iter().try_for_each(|size| explain_size(text, size))
}

fn explain_size(text: &mut String, size: &SizeReport) -> std::fmt::Result {
    let taken = match size.taken {
        Some(ReadCall::Gets) => "gets",
        Some(ReadCall::MultiGet) => "multiget",
        Some(ReadCall::Threads) => "threads",
        None => "as told",
    };
    write!(text, "  {:>15}  {taken:<9}", format!("{}–{}", size.keys_from, size.keys_to))?;
    for (chosen, ns_per_key) in size.chosen.iter().zip(size.ns_per_key) {
        let cost = match ns_per_key {
            Some(ns) => format!("{:.1} µs a key, {chosen}×", ns / 1e3),
            None => "not tried".to_string(),
        };
        write!(text, " {cost:>20}")?;
    }
    writeln!(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tidegate_state::planner::ReadPlanner;
    use tidegate_state::strategy::ReadStrategy;

    #[test]
    fn what_was_chosen_and_what_it_cost_is_said() {
        let mut planner = ReadPlanner::new(ReadStrategy::Auto, true, Some(64));
        for _ in 0..40 {
            let call = planner.choose(1000);
            let us = if call == ReadCall::Threads { 5_000 } else { 40_000 };
            planner.measured(call, 1000, Duration::from_micros(us));
        }
        let mut metrics = Metrics::default();
        metrics.plans.insert("count/value".to_string(), vec![planner.report()]);
        let text = explain(&metrics);
        for part in ["count/value", "512–1023", "threads", "5.0 µs a key", "40.0 µs a key"] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
    }
}
