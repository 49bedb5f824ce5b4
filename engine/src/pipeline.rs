//! A pipeline: a job with a name, that the command line serves.

use crate::job::Job;

/// What a pipeline reads by default, where the command line says nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InputDefaults {
    /// Field of the event time; `time` if none.
    pub time: Option<&'static str>,
    /// Field of the key; the field `key` if none.
    pub key: Option<&'static str>,
    /// Field of the value; the field `value` if none.
    pub value: Option<&'static str>,
}

/// A job under a name, for the commands `list`, `replay` and `compare`.
#[derive(Clone, Copy)]
pub struct Pipeline {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it does, in a line.
    pub about: &'static str,
    /// What it reads, where the command line says nothing.
    pub defaults: InputDefaults,
    /// Puts the job together; called once on every worker.
    pub build: fn(&Job<'_>),
}

impl Pipeline {
    /// A pipeline that reads the fields `time`, `key` and `value`.
    pub const fn new(name: &'static str, about: &'static str, build: fn(&Job<'_>)) -> Self {
        Pipeline { name, about, defaults: InputDefaults { time: None, key: None, value: None }, build }
    }

    /// The same pipeline with other default fields.
    pub const fn reading(mut self, defaults: InputDefaults) -> Self {
        self.defaults = defaults;
        self
    }
}
