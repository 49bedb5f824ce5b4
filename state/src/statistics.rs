//! What every access to the store cost, counted where it happens.

use std::ops::AddAssign;

/// Accesses to one state of one store, or the sum of several.
///
/// "Asked" counts what the records asked for; what then went to the store is counted in keys and
/// in calls, and each call's time is taken around the call itself, the copy or decoding of its
/// answer included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct AccessStatistics {
    /// Reads that records asked for, repeats included.
    pub keys_asked: u64,
    /// Distinct keys among those, a release at a time.
    pub keys_distinct: u64,
    /// Distinct keys whose values were in memory already.
    pub keys_at_hand: u64,
    /// Keys that were read from the store.
    pub keys_read: u64,
    /// Keys of those that had a value.
    pub keys_found: u64,
    /// Calls that read one key.
    pub get_calls: u64,
    /// Calls that read many keys at once.
    pub multi_get_calls: u64,
    /// Scans of a range.
    pub scan_calls: u64,
    /// Rows that scans showed.
    pub rows_scanned: u64,
    /// Bytes of the values that were read.
    pub bytes_read: u64,
    /// Time that the worker spent in reads or waiting for them, in nanoseconds.
    pub read_ns: u64,
    /// Time that reader threads spent in reads meanwhile, in nanoseconds, all threads together.
    pub thread_read_ns: u64,
    /// Keys that were read ahead of their release.
    pub keys_ahead: u64,
    /// Keys of those that a release asked for.
    pub ahead_hits: u64,
    /// Keys of those that were given up before a release asked for them.
    pub ahead_wasted: u64,
    /// Answers that came when they did not hold any more, and were thrown away.
    pub ahead_stale: u64,
    /// Reads of keys that their operator had not declared: one get each.
    pub undeclared_reads: u64,
    /// Rows that memory gave up, written first where they had changed.
    pub rows_given_up: u64,
    /// Rows written.
    pub puts: u64,
    /// Rows removed.
    pub deletes: u64,
    /// Rows appended to, without a look at what they hold.
    pub appends: u64,
    /// Ranges removed.
    pub range_deletes: u64,
    /// Times that all rows of the state were removed at once.
    pub clears: u64,
    /// Bytes of keys and values in commits.
    pub bytes_written: u64,
    /// Calls that wrote.
    pub commits: u64,
    /// Time in commits and clears, in nanoseconds.
    pub commit_ns: u64,
}

impl AccessStatistics {
    /// Calls to the store of every kind.
    pub fn calls(&self) -> u64 {
        self.get_calls + self.multi_get_calls + self.scan_calls + self.commits + self.clears
    }
}

impl AddAssign for AccessStatistics {
    fn add_assign(&mut self, other: Self) {
        // Destructured, so that a new field cannot be forgotten here.
        let AccessStatistics {
            keys_asked,
            keys_distinct,
            keys_at_hand,
            keys_read,
            keys_found,
            get_calls,
            multi_get_calls,
            scan_calls,
            rows_scanned,
            bytes_read,
            read_ns,
            thread_read_ns,
            keys_ahead,
            ahead_hits,
            ahead_wasted,
            ahead_stale,
            undeclared_reads,
            rows_given_up,
            puts,
            deletes,
            appends,
            range_deletes,
            clears,
            bytes_written,
            commits,
            commit_ns,
        } = other;
        self.keys_asked += keys_asked;
        self.keys_distinct += keys_distinct;
        self.keys_at_hand += keys_at_hand;
        self.keys_read += keys_read;
        self.keys_found += keys_found;
        self.get_calls += get_calls;
        self.multi_get_calls += multi_get_calls;
        self.scan_calls += scan_calls;
        self.rows_scanned += rows_scanned;
        self.bytes_read += bytes_read;
        self.read_ns += read_ns;
        self.thread_read_ns += thread_read_ns;
        self.keys_ahead += keys_ahead;
        self.ahead_hits += ahead_hits;
        self.ahead_wasted += ahead_wasted;
        self.ahead_stale += ahead_stale;
        self.undeclared_reads += undeclared_reads;
        self.rows_given_up += rows_given_up;
        self.puts += puts;
        self.deletes += deletes;
        self.appends += appends;
        self.range_deletes += range_deletes;
        self.clears += clears;
        self.bytes_written += bytes_written;
        self.commits += commits;
        self.commit_ns += commit_ns;
    }
}
