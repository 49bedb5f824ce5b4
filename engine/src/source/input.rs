//! The bytes of a trace: a file or standard input, plain, gzip or zstd.
//!
//! Compression is recognised by the first bytes, not by the name: a renamed file then still reads, and
//! standard input has no name. What is counted for a progress bar are the bytes taken from the file
//! itself, as only of these the total is known beforehand.
//!
//! The buffer is this module's own, and not a `BufReader`, for one reason: it can grow. A line of JSON is
//! always handed on as one contiguous slice of it, without a second buffer for lines that straddle a refill.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::error::SourceError;

/// Bytes asked of the decoder at once, and the size at which the buffer starts.
const CHUNK_BYTES: usize = 128 * 1024;

/// Compressed bytes asked of the file at once.
const COMPRESSED_CHUNK_BYTES: usize = 64 * 1024;

/// RFC 1952, section 2.3.1: two bytes of identification, and 8 for "deflate", the only method there is.
const GZIP_MAGIC: [u8; 3] = [0x1f, 0x8b, 8];

/// RFC 8878, section 3.1.1: the magic number of a frame, as its bytes stand in the file.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// RFC 8878, section 3.1.2: a skippable frame begins with one of 0x50 to 0x5f, then these.
const ZSTD_SKIPPABLE_MAGIC: [u8; 3] = [0x2a, 0x4d, 0x18];

const UTF8_BYTE_ORDER_MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

/// How an input is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compression {
    /// gzip, of one member or several.
    Gzip,
    /// Zstandard, of one frame or several, with windows of up to 128 MiB.
    Zstd,
}

impl Compression {
    /// Recognises a compression by the first bytes of a file.
    ///
    /// ```
    /// use tidegate::source::Compression;
    ///
    /// assert_eq!(Compression::recognise(&[0x1f, 0x8b, 8, 0]), Some(Compression::Gzip));
    /// assert_eq!(Compression::recognise(b"time,key"), None);
    /// ```
    #[must_use]
    pub fn recognise(first_bytes: &[u8]) -> Option<Compression> {
        let skippable = first_bytes.len() >= 4
            && first_bytes[0] & 0xf0 == 0x50
            && first_bytes[1..4] == ZSTD_SKIPPABLE_MAGIC;
        if first_bytes.starts_with(&GZIP_MAGIC) {
            Some(Compression::Gzip)
        } else if first_bytes.starts_with(&ZSTD_MAGIC) || skippable {
            Some(Compression::Zstd)
        } else {
            None
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Compression::Gzip => "gzip",
            Compression::Zstd => "zstd",
        })
    }
}

/// How far an input has been read; clones share the count, so that another thread can show it.
#[derive(Debug, Clone)]
pub struct Progress {
    read_bytes: Arc<AtomicU64>,
    total_bytes: Option<u64>,
}

impl Progress {
    /// Bytes taken from the file so far, before decompression. A little ahead of the rows handed out, as
    /// the file is read in chunks.
    #[must_use]
    pub fn read_bytes(&self) -> u64 {
        self.read_bytes.load(Ordering::Relaxed)
    }

    /// Length of the file in bytes when it was opened; `None` for a pipe or a device.
    #[must_use]
    pub fn total_bytes(&self) -> Option<u64> {
        self.total_bytes
    }
}

/// A buffered reader of a trace's decompressed bytes, without a leading byte order mark.
///
/// As [`BufRead`] it serves line formats of one's own; its `io::Error`s then hold the [`SourceError`].
pub struct Input {
    path: PathBuf,
    compression: Option<Compression>,
    reader: Box<dyn Read + Send>,
    progress: Progress,
    /// The bytes from `start` to `end` are read and not yet consumed; those behind `end` mean nothing.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    at_end: bool,
}

impl Input {
    /// Opens a file, or standard input for the path `-`.
    ///
    /// # Errors
    ///
    /// [`SourceError::Open`] if there is no such file or it may not be read; [`SourceError::Read`] and
    /// [`SourceError::Corrupt`] if its first bytes already cannot be read.
    pub fn open(path: &Path) -> Result<Input, SourceError> {
        if path == Path::new("-") {
            return Input::from_reader("(standard input)", io::stdin(), None);
        }
        let open_error = |cause| SourceError::Open { path: path.to_owned(), cause };
        let file = File::open(path).map_err(open_error)?;
        let metadata = file.metadata().map_err(open_error)?;
        let total_bytes = metadata.is_file().then_some(metadata.len());
        Input::from_reader(path, file, total_bytes)
    }

    /// Reads from anything. `path` is what errors call it, `total_bytes` its length if that is known; an
    /// input of unknown length is taken for one that may have to be waited for.
    ///
    /// # Errors
    ///
    /// As for [`Input::open`], without the opening.
    pub fn from_reader(
        path: impl Into<PathBuf>,
        reader: impl Read + Send + 'static,
        total_bytes: Option<u64>,
    ) -> Result<Input, SourceError> {
        let path = path.into();
        let read_bytes = Arc::new(AtomicU64::new(0));
        let mut counted = Counted { reader, read_bytes: Arc::clone(&read_bytes) };
        let first_bytes =
            first_bytes(&mut counted).map_err(|cause| SourceError::Read { path: path.clone(), cause })?;
        let compression = Compression::recognise(&first_bytes);
        let whole = Cursor::new(first_bytes).chain(counted);
        let reader: Box<dyn Read + Send> = match compression {
            None => Box::new(whole),
            Some(Compression::Gzip) => Box::new(flate2::bufread::MultiGzDecoder::new(compressed(whole))),
            Some(Compression::Zstd) => {
                let decoder = zstd::stream::read::Decoder::with_buffer(compressed(whole));
                Box::new(decoder.map_err(|cause| SourceError::Open { path: path.clone(), cause })?)
            }
        };
        let mut input = Input {
            path,
            compression,
            reader,
            progress: Progress { read_bytes, total_bytes },
            buffer: vec![0; CHUNK_BYTES],
            start: 0,
            end: 0,
            at_end: false,
        };
        while input.buffered().len() < UTF8_BYTE_ORDER_MARK.len() && input.fill_more()? {}
        if input.buffered().starts_with(&UTF8_BYTE_ORDER_MARK) {
            input.consume_bytes(UTF8_BYTE_ORDER_MARK.len());
        }
        Ok(input)
    }

    /// The file's path, as errors show it.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How the file is compressed.
    #[must_use]
    pub fn compression(&self) -> Option<Compression> {
        self.compression
    }

    /// A handle on how far the file has been read.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.progress.clone()
    }

    /// Whether reading may have to wait for whoever writes: true for pipes, false for files.
    pub(super) fn may_wait(&self) -> bool {
        self.progress.total_bytes.is_none()
    }

    /// The bytes that are read and not yet consumed.
    pub(super) fn buffered(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Marks bytes of [`buffered`](Input::buffered) as consumed.
    pub(super) fn consume_bytes(&mut self, count: usize) {
        debug_assert!(count <= self.end - self.start);
        self.start = self.end.min(self.start + count);
    }

    /// The unconsumed bytes, after reading some if there were none; empty at the end of the input.
    pub(super) fn fill(&mut self) -> Result<&[u8], SourceError> {
        if self.start == self.end {
            self.fill_more()?;
        }
        Ok(self.buffered())
    }

    /// Reads more bytes behind those unconsumed; false at the end of the input. The buffer grows as long
    /// as its caller consumes nothing, so the caller sets the limit.
    pub(super) fn fill_more(&mut self) -> Result<bool, SourceError> {
        if self.at_end {
            return Ok(false);
        }
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.buffer.len() {
            self.buffer.resize(2 * self.buffer.len(), 0);
        }
        loop {
            match self.reader.read(&mut self.buffer[self.end..]) {
                Ok(count) => {
                    self.end += count;
                    self.at_end = count == 0;
                    return Ok(count > 0);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(cause) => return Err(self.read_error(cause)),
            }
        }
    }

    /// Consumes everything up to and including the next line feed; false if the input ended first.
    pub(super) fn discard_line(&mut self) -> Result<bool, SourceError> {
        loop {
            let bytes = self.fill()?;
            if bytes.is_empty() {
                return Ok(false);
            }
            if let Some(line_feed) = memchr::memchr(b'\n', bytes) {
                self.consume_bytes(line_feed + 1);
                return Ok(true);
            }
            self.start = self.end;
        }
    }

    /// Tells damage in compressed data from a failing disk: only the latter has an error number.
    fn read_error(&self, cause: io::Error) -> SourceError {
        let path = self.path.clone();
        match self.compression {
            Some(compression) if cause.raw_os_error().is_none() => {
                SourceError::Corrupt { path, compression, cause }
            }
            _ => SourceError::Read { path, cause },
        }
    }
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Input")
            .field("path", &self.path)
            .field("compression", &self.compression)
            .field("progress", &self.progress)
            .finish_non_exhaustive()
    }
}

impl Read for Input {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut bytes = self.fill_buf()?;
        let count = bytes.read(into)?;
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for Input {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.fill().map_err(io::Error::other)
    }

    fn consume(&mut self, count: usize) {
        self.consume_bytes(count);
    }
}

/// Counts what is read.
struct Counted<R> {
    reader: R,
    read_bytes: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(into)?;
        // Relaxed: the count is shown to a user and orders nothing.
        self.read_bytes.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

fn compressed<R: Read>(reader: R) -> BufReader<R> {
    BufReader::with_capacity(COMPRESSED_CHUNK_BYTES, reader)
}

/// Up to four bytes, fewer only if the input is shorter. A pipe may give them one at a time.
fn first_bytes(reader: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(4);
    reader.take(4).read_to_end(&mut bytes)?;
    Ok(bytes)
}
