//! Writes records to a file: CSV, TSV or JSON Lines, plain, gzip or Zstandard.

use super::error::GenerateError;
use super::generator::{GeneratedRecord, TraceGenerator};
use super::line::LineFormat;
use super::output::Compression;
use super::spec::TraceSpec;
use flate2::GzBuilder;
use flate2::write::GzEncoder;
use std::io::{self, Write};

/// Text that is gathered before it is handed on.
const BUFFER_BYTES: usize = 1 << 16;
/// Levels of compression: the usual ones of both formats.
const GZIP_LEVEL: u32 = 6;
const ZSTD_LEVEL: i32 = 3;

/// Writes the records of a trace, one line each.
///
/// The text is a function of the specification. So are the compressed bytes for one version of the
/// compressor: they hold neither a file name nor a time.
///
/// ```
/// use tidegate::generate::{GeneratedRecord, TraceSpec, TraceWriter};
/// let mut writer = TraceWriter::new(Vec::new(), &TraceSpec::default())?;
/// writer.write(&GeneratedRecord { stream: 0, time: 1_500_000, key: 7, value: -3 })?;
/// assert_eq!(writer.finish()?, b"time,key,value\n1500,7,-3\n");
/// # Ok::<(), tidegate::generate::GenerateError>(())
/// ```
///
/// # Contract
/// Call [`Self::finish`]: without it the end of the file is missing. After a
/// [`GenerateError::Write`] the file is of no use any more, and neither is the writer.
pub struct TraceWriter<W: Write> {
    sink: Sink<W>,
    format: LineFormat,
    buffer: Vec<u8>,
    records: u64,
    bytes: u64,
}

enum Sink<W: Write> {
    Plain(W),
    Gzip(GzEncoder<W>),
    Zstd(zstd::Encoder<'static, W>),
}

impl<W: Write> Sink<W> {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(sink) => sink.write_all(bytes),
            Self::Gzip(sink) => sink.write_all(bytes),
            Self::Zstd(sink) => sink.write_all(bytes),
        }
    }

    fn finish(self) -> io::Result<W> {
        let mut sink = match self {
            Self::Plain(sink) => sink,
            Self::Gzip(sink) => sink.finish()?,
            Self::Zstd(sink) => sink.finish()?,
        };
        sink.flush()?;
        Ok(sink)
    }
}

impl<W: Write> TraceWriter<W> {
    /// A writer for the records of `spec`, which it begins with the header line. It hands over
    /// large pieces, so `sink` need not be buffered.
    ///
    /// # Errors
    /// [`GenerateError::Invalid`] for a specification that makes no sense,
    /// [`GenerateError::Write`] if the compressor cannot be set up.
    pub fn new(sink: W, spec: &TraceSpec) -> Result<Self, GenerateError> {
        spec.validate()?;
        let names: Vec<&str> = spec.streams.iter().map(|stream| &*stream.name).collect();
        let format = LineFormat::new(&spec.output, &names);
        let sink = match spec.output.compression {
            Compression::None => Sink::Plain(sink),
            Compression::Gzip => Sink::Gzip(
                // The system is a byte of the header: 255, unknown, on all of them.
                GzBuilder::new()
                    .mtime(0)
                    .operating_system(255)
                    .write(sink, flate2::Compression::new(GZIP_LEVEL)),
            ),
            Compression::Zstd => Sink::Zstd(
                zstd::Encoder::new(sink, ZSTD_LEVEL)
                    .map_err(|source| GenerateError::Write { records: 0, source })?,
            ),
        };
        let mut buffer = Vec::with_capacity(BUFFER_BYTES + 4_096);
        buffer.extend_from_slice(format.header());
        Ok(Self { sink, format, buffer, records: 0, bytes: 0 })
    }

    /// Writes one record.
    ///
    /// # Errors
    /// [`GenerateError::TimeOutOfRange`] if its time has no date and one is asked for (nothing of
    /// the record is written), [`GenerateError::Write`] if the file takes no more.
    #[inline]
    pub fn write(&mut self, record: &GeneratedRecord) -> Result<(), GenerateError> {
        let before = self.buffer.len();
        if self.format.append(record, &mut self.buffer).is_err() {
            self.buffer.truncate(before);
            return Err(GenerateError::TimeOutOfRange { record: self.records + 1, time_us: record.time });
        }
        self.records += 1;
        if self.buffer.len() >= BUFFER_BYTES {
            self.hand_over()?;
        }
        Ok(())
    }

    /// Records written so far.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Bytes of text written so far, before compression.
    pub fn text_bytes(&self) -> u64 {
        self.bytes + self.buffer.len() as u64
    }

    fn hand_over(&mut self) -> Result<(), GenerateError> {
        self.sink
            .write_all(&self.buffer)
            .map_err(|source| GenerateError::Write { records: self.records, source })?;
        self.bytes += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Writes what is left, ends the file, and gives the sink back.
    ///
    /// # Errors
    /// [`GenerateError::Write`] if the file takes no more.
    pub fn finish(mut self) -> Result<W, GenerateError> {
        self.hand_over()?;
        let records = self.records;
        self.sink.finish().map_err(|source| GenerateError::Write { records, source })
    }
}

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteSummary {
    /// Records.
    pub records: u64,
    /// Bytes of text, before compression.
    pub text_bytes: u64,
}

/// Generates a trace and writes all of it.
///
/// # Errors
/// Those of [`TraceWriter`].
pub fn write_trace<W: Write>(spec: &TraceSpec, sink: W) -> Result<WriteSummary, GenerateError> {
    let generator = TraceGenerator::new(spec)?;
    let mut writer = TraceWriter::new(sink, spec)?;
    for record in generator {
        writer.write(&record)?;
    }
    let summary = WriteSummary { records: writer.records(), text_bytes: writer.text_bytes() };
    writer.finish()?;
    Ok(summary)
}
