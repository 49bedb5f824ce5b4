//! Scripts with windows and sessions.

use super::numbers;
use super::script::Script;
use super::source::Pair;
use crate::job::Job;
use crate::stream::{Data, Stream};
use tidegate_operators::window::{
    Aggregate, Collect, Count, Max, Mean, Min, Sessions, Sum, WindowRow, Windows,
};

/// What a script asks for.
#[derive(Clone, Copy)]
enum Shape {
    Windows(Windows),
    /// With their gap: rows show the last record and not the end.
    Sessions(Sessions, i64),
}

/// The columns of a script's rows, if it is one with windows or sessions.
pub(super) fn columns(script: &Script) -> Option<[&'static str; 4]> {
    match script.setting("op") {
        Some("window") => Some(["window_start", "window_end", "key", "value"]),
        Some("session") => Some(["first", "last", "key", "value"]),
        _ => None,
    }
}

fn shape(script: &Script) -> Result<Shape, String> {
    let number = |name: &str| match script.setting(name) {
        None => Ok(None),
        Some(text) => text.parse::<i64>().map(Some).map_err(|error| format!("{name}={text}: {error}")),
    };
    let lateness = number("lateness")?.unwrap_or(0);
    if script.setting("op") == Some("session") {
        let gap = number("gap")?.ok_or("op=session needs gap=")?;
        let sessions = Sessions::with_gap(gap).and_then(|sessions| sessions.with_allowed_lateness(lateness));
        return sessions.map(|sessions| Shape::Sessions(sessions, gap)).map_err(|error| error.to_string());
    }
    let size = number("size")?.ok_or("op=window needs size=")?;
    let (slide, offset) = (number("slide")?.unwrap_or(size), number("offset")?.unwrap_or(0));
    Windows::sliding(size, slide)
        .and_then(|windows| windows.with_offset(offset).with_allowed_lateness(lateness))
        .map(Shape::Windows)
        .map_err(|error| error.to_string())
}

/// Builds the job of a script with windows or sessions.
pub(super) fn build(job: &Job<'_>, source: Stream<'_, Pair>, script: &Script, columns: &[&str]) {
    let shape = match shape(script) {
        Ok(shape) => shape,
        Err(reason) => return job.refuse(reason),
    };
    match script.setting("agg").unwrap_or("count") {
        "sum" => rows(numbers(source, |value| value), shape, Sum).sink("rows", columns),
        "min" => rows(numbers(source, |value| value), shape, Min).sink("rows", columns),
        "max" => rows(numbers(source, |value| value), shape, Max).sink("rows", columns),
        "mean" => rows(numbers(source, |value| value as f64), shape, Mean).sink("rows", columns),
        "append" => rows(source, shape, Collect)
            .map(|(start, end, key, values)| (start, end, key, values.concat()))
            .sink("rows", columns),
        "count" => rows(source, shape, Count).sink("rows", columns),
        other => job.refuse(format!("agg={other} is not supported")),
    }
}

fn rows<'s, V: Data, A: Aggregate<V>>(
    source: Stream<'s, (String, V)>,
    shape: Shape,
    aggregate: A,
) -> Stream<'s, WindowRow<String, A::Output>>
where
    A::Output: Data,
{
    match shape {
        Shape::Windows(windows) => source.window("window", windows, aggregate),
        Shape::Sessions(sessions, gap) => source
            .session("session", sessions, aggregate)
            .map(move |(first, end, key, value)| (first, end - gap, key, value)),
    }
}
