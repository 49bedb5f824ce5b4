//! Splits an input into lines, each one contiguous slice of the input's own buffer.

use super::error::SourceError;
use super::input::Input;
use super::scan::Scan;

/// Splits an input into lines and remembers where the line found last lies.
pub(super) struct LineScanner {
    limit_bytes: usize,
    /// Length of the line without its line feed. The line begins where the input's unread bytes do.
    line_bytes: usize,
    /// Bytes to consume before the next line begins.
    pending_bytes: usize,
    /// Number of the next line, counted from 1.
    next_line: u64,
    /// Number of the line found last.
    line: u64,
}

impl LineScanner {
    pub(super) fn new(limit_bytes: usize) -> LineScanner {
        LineScanner { limit_bytes, line_bytes: 0, pending_bytes: 0, next_line: 1, line: 1 }
    }

    /// Number of the line found last, counted from 1.
    pub(super) fn line_number(&self) -> u64 {
        self.line
    }

    /// The line found last, without its line feed.
    pub(super) fn line<'a>(&self, input: &'a Input) -> &'a [u8] {
        &input.buffered()[..self.line_bytes]
    }

    /// Finds the next line that is not blank.
    pub(super) fn next(&mut self, input: &mut Input, may_wait: bool) -> Result<Scan, SourceError> {
        loop {
            input.consume_bytes(self.pending_bytes);
            (self.pending_bytes, self.line_bytes) = (0, 0);
            let scan = self.find_line(input, may_wait)?;
            if scan != Scan::Record || !self.line(input).trim_ascii().is_empty() {
                return Ok(scan);
            }
        }
    }

    fn find_line(&mut self, input: &mut Input, may_wait: bool) -> Result<Scan, SourceError> {
        let mut searched = 0;
        loop {
            let buffered = input.buffered();
            let reach = buffered.len().min(self.limit_bytes);
            if let Some(line_feed) = memchr::memchr(b'\n', &buffered[searched..reach]) {
                self.line_bytes = searched + line_feed;
                self.pending_bytes = self.line_bytes + 1;
                break;
            }
            searched = reach;
            if searched == self.limit_bytes {
                self.line = self.next_line;
                self.next_line += u64::from(input.discard_line()?);
                return Ok(Scan::TOO_LONG);
            }
            if !may_wait {
                return Ok(Scan::Pause);
            }
            if !input.fill_more()? {
                if searched == 0 {
                    return Ok(Scan::End);
                }
                (self.line_bytes, self.pending_bytes) = (searched, searched);
                break;
            }
        }
        self.line = self.next_line;
        self.next_line += 1;
        Ok(Scan::Record)
    }
}
