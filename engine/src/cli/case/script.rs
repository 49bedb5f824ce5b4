//! Scripts of small tests: what goes in, line by line, and what must come out.
//!
//! A script's first line names the operator and its settings (`op=running agg=sum`). Then:
//!
//! | line | meaning |
//! |---|---|
//! | `E,stream,time,key,value` | a record |
//! | `F,stream,time` | a frontier step of one input, or of all (`*`) |
//! | `Z,stream`, `Z` | that input ends, or all do |
//! | `C`, `X`, `W` | a checkpoint, a crash, a change of workers |
//!
//! In a Markdown file, scripts are the blocks marked `case`, and the block marked `expect` that
//! follows one holds its rows: a header line, one row a line, and maybe `dropped=N`.

use std::collections::BTreeMap;
use thiserror::Error;

/// One step of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// A record arrives.
    Record {
        /// Number of the stream, in the order of first mention.
        stream: usize,
        /// Event time.
        time: i64,
        /// Key.
        key: String,
        /// Value, as it is written.
        value: String,
    },
    /// The frontier of one stream, or of all, moves to a time.
    Frontier {
        /// None for all streams.
        stream: Option<usize>,
        /// Where to.
        time: i64,
    },
    /// One stream ends, or all do.
    End {
        /// None for all streams.
        stream: Option<usize>,
    },
    /// Something that scripts may ask for and that is not supported.
    Unsupported(String),
}

/// What must come out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Expected {
    /// Names of the columns.
    pub header: String,
    /// Rows, in the order of the script.
    pub rows: Vec<String>,
    /// Records that are dropped because they come too late.
    pub dropped: u64,
}

/// A script with what it says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// The heading above it, or the number of its line.
    pub title: String,
    /// Line of the file on which it begins.
    pub line: usize,
    /// Settings of the first line.
    pub settings: BTreeMap<String, String>,
    /// Names of the streams.
    pub streams: Vec<String>,
    /// What happens.
    pub steps: Vec<Step>,
    /// What must come out, where the file says.
    pub expected: Option<Expected>,
}

impl Script {
    /// A setting's value.
    pub fn setting(&self, name: &str) -> Option<&str> {
        self.settings.get(name).map(String::as_str)
    }
}

/// A line that is not understood.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}: {reason}: {text:?}")]
pub struct ScriptError {
    /// Number of the line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub reason: String,
    /// The line.
    pub text: String,
}

/// Finds the scripts of a file: the marked blocks of Markdown, or the whole text where there are
/// none.
///
/// # Errors
/// [`ScriptError`] at the first line that is not understood.
pub fn parse(text: &str) -> Result<Vec<Script>, ScriptError> {
    let lines: Vec<(usize, &str)> = text.lines().enumerate().map(|(index, line)| (index + 1, line)).collect();
    if !lines.iter().any(|(_, line)| line.trim_start().starts_with("```")) {
        return Ok(vec![script("script".to_string(), &lines)?]);
    }
    let mut scripts: Vec<Script> = Vec::new();
    let mut heading = String::new();
    let mut block: Option<(String, usize)> = None;
    for (index, (number, line)) in lines.iter().enumerate() {
        match &block {
            None if line.trim_start().starts_with("```") => {
                block = Some((line.trim().trim_start_matches('`').trim().to_string(), index + 1));
            }
            None if line.starts_with('#') => heading = line.trim_start_matches('#').trim().to_string(),
            None => {}
            Some((kind, start)) if line.trim() == "```" => {
                let body = &lines[*start..index];
                match kind.as_str() {
                    "case" => scripts.push(script(heading.clone(), body)?),
                    "expect" => match scripts.last_mut() {
                        Some(script) if script.expected.is_none() => script.expected = Some(expected(body)?),
                        _ => return Err(error(*number, "an expect block without a case before it", line)),
                    },
                    _ => {}
                }
                block = None;
            }
            Some(_) => {}
        }
    }
    match block {
        Some((kind, start)) => Err(error(start, "a block that is not closed", &kind)),
        None => Ok(scripts),
    }
}

fn error(line: usize, reason: impl Into<String>, text: &str) -> ScriptError {
    ScriptError { line, reason: reason.into(), text: text.to_string() }
}

fn script(title: String, lines: &[(usize, &str)]) -> Result<Script, ScriptError> {
    let mut lines = lines.iter().filter(|(_, line)| !line.trim().is_empty());
    let Some((line, first)) = lines.next() else {
        return Err(error(0, "an empty script", &title));
    };
    let mut settings = BTreeMap::new();
    for word in first.split_whitespace() {
        let Some((name, value)) = word.split_once('=') else {
            return Err(error(*line, "the first line holds settings like op=running", first));
        };
        settings.insert(name.to_string(), value.to_string());
    }
    let mut script =
        Script { title, line: *line, settings, streams: Vec::new(), steps: Vec::new(), expected: None };
    for (number, line) in lines {
        let step = step(line.trim(), &mut script.streams).map_err(|reason| error(*number, reason, line))?;
        script.steps.push(step);
    }
    Ok(script)
}

fn step(line: &str, streams: &mut Vec<String>) -> Result<Step, String> {
    let fields: Vec<&str> = line.split(',').collect();
    match fields[..] {
        ["E", stream, time, key, value] => Ok(Step::Record {
            stream: number(stream, streams),
            time: parse_time(time)?,
            key: key.to_string(),
            value: value.to_string(),
        }),
        ["F", "*", time] => Ok(Step::Frontier { stream: None, time: parse_time(time)? }),
        ["F", stream, time] => {
            Ok(Step::Frontier { stream: Some(number(stream, streams)), time: parse_time(time)? })
        }
        ["Z"] | ["Z", "*"] => Ok(Step::End { stream: None }),
        ["Z", stream] => Ok(Step::End { stream: Some(number(stream, streams)) }),
        ["C" | "X" | "W", ..] => Ok(Step::Unsupported(line.to_string())),
        ["E" | "F" | "Z", ..] => Err("a wrong number of fields".to_string()),
        _ => Err("a step begins with E, F, Z, C, X or W".to_string()),
    }
}

fn number(stream: &str, streams: &mut Vec<String>) -> usize {
    streams.iter().position(|known| known == stream).unwrap_or_else(|| {
        streams.push(stream.to_string());
        streams.len() - 1
    })
}

fn parse_time(text: &str) -> Result<i64, String> {
    text.trim().parse().map_err(|error| format!("{text:?} is no time ({error})"))
}

fn expected(lines: &[(usize, &str)]) -> Result<Expected, ScriptError> {
    let mut lines = lines.iter().filter(|(_, line)| !line.trim().is_empty());
    let mut expected = Expected::default();
    if let Some((_, header)) = lines.next() {
        expected.header = header.trim().to_string();
    }
    for (number, line) in lines {
        match line.trim().strip_prefix("dropped=") {
            None => expected.rows.push(line.trim().to_string()),
            Some(count) => {
                expected.dropped =
                    count.parse().map_err(|_| error(*number, "dropped= takes a number", line))?;
            }
        }
    }
    Ok(expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_of_a_markdown_file_are_found() {
        let text = "# A\nwords\n```case\nop=running agg=sum\nE,s,-1,k,10\nF,*,3\n\nC\nZ,s\nZ\n```\n```expect\ntime,key,value\n-1,k,10\ndropped=2\n```\n```text\nE\n```\n";
        let scripts = parse(text).unwrap();
        assert_eq!(scripts.len(), 1);
        let script = &scripts[0];
        assert_eq!((script.title.as_str(), script.line), ("A", 4));
        assert_eq!(script.setting("agg"), Some("sum"));
        assert_eq!(
            script.steps,
            [
                Step::Record { stream: 0, time: -1, key: "k".into(), value: "10".into() },
                Step::Frontier { stream: None, time: 3 },
                Step::Unsupported("C".into()),
                Step::End { stream: Some(0) },
                Step::End { stream: None },
            ]
        );
        let expected = script.expected.clone().unwrap();
        assert_eq!((expected.rows, expected.dropped), (vec!["-1,k,10".to_string()], 2));
    }

    #[test]
    fn what_is_not_understood_is_named_with_its_line() {
        for (text, line) in [
            ("op=running\nE,s,1,k", 2),
            ("op=running\n\nG,1", 3),
            ("running\n", 1),
            ("op=running\nF,s,x", 2),
            ("```expect\n```", 2),
            ("```case\nop=running\n", 1),
        ] {
            assert_eq!(parse(text).unwrap_err().line, line, "{text}");
        }
    }
}
