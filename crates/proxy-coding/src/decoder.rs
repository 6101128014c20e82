//! Streaming decompression with limits on size and ratio.

use brotli::DecompressorWriter;
use flate2::write::{MultiGzDecoder, ZlibDecoder};
use http::HeaderMap;
use http::header::CONTENT_ENCODING;
use std::io::{self, Write};
use zstd::stream::raw::{DParameter, Decoder as ZstdDecoder, InBuffer, Operation, OutBuffer};

/// `limits { max-decompression-ratio; max-decompressed-size-bytes }`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DecodingLimits {
    /// Maximum ratio of decompressed to compressed bytes, over the whole body.
    pub max_ratio: f64,
    /// Most decompressed bytes of one body.
    pub max_bytes: u64,
}

/// Decompresses one body, which is pushed piece by piece.
pub struct Decoder {
    writer: Writer,
    /// The decoder of the coding that was applied before this one.
    inner: Option<Box<Decoder>>,
}

/// The reason why a body cannot be decompressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodingError {
    /// The content is larger than `max-decompressed-size-bytes`.
    #[error("the decompressed body is larger than {limit} bytes")]
    Size {
        /// The limit, in bytes.
        limit: u64,
        /// Number of decompressed bytes.
        current: u64,
    },
    /// The content is larger than `max-decompression-ratio` allows.
    #[error("the body grows more than {limit}-fold")]
    Ratio {
        /// The limit, rounded down.
        limit: u64,
        /// The current ratio, rounded up.
        current: u64,
    },
    /// The bytes are not of the coding, or end too early.
    #[error("the body is not of its content coding")]
    Malformed,
    /// `Content-Encoding` names a coding that is not known, or too many.
    #[error("the content coding is not supported")]
    Unsupported,
}

/// The decompressed content, with its limits.
struct Content {
    out: Vec<u8>,
    compressed: u64,
    decompressed: u64,
    limits: DecodingLimits,
    exceeded: Option<DecodingError>,
}

enum Writer {
    Gzip(MultiGzDecoder<Content>),
    Deflate(ZlibDecoder<Content>),
    Brotli(Box<DecompressorWriter<Content>>),
    Zstd(Box<Zstd>),
}

struct Zstd {
    decoder: ZstdDecoder<'static>,
    /// True if a frame has ended, and no other has begun.
    ended: bool,
    content: Content,
}

/// Compressed bytes that are decompressed before the content is forwarded. It bounds the memory of one
/// step to this times the ratio.
const STEP_BYTES: usize = 1_024;
const BUFFER_BYTES: usize = 4_096;
/// Most codings of one body: each has a window in memory.
const MAX_CODINGS: usize = 3;
/// Binary logarithm of the largest window of zstd that is accepted, as RFC 9659 has it.
const MAX_ZSTD_WINDOW_BITS: u32 = 23;

impl Decoder {
    /// A decoder for a body with these header fields; `None` if the body is not compressed. Several
    /// codings are decoded in reverse order. [RFC 9110 §8.4]
    ///
    /// # Errors
    /// [`DecodingError::Unsupported`] for a coding other than `gzip`, `deflate`, `br` and `zstd`, and for
    /// more than three.
    pub fn from_headers(
        headers: &HeaderMap,
        limits: DecodingLimits,
    ) -> Result<Option<Self>, DecodingError> {
        let mut outermost = None;
        let mut codings = 0;
        for line in headers.get_all(CONTENT_ENCODING) {
            let line = line.to_str().map_err(|_| DecodingError::Unsupported)?;
            let names = line.split(',').map(str::trim);
            let names =
                names.filter(|name| !name.is_empty() && !name.eq_ignore_ascii_case("identity"));
            for name in names {
                codings += 1;
                if codings > MAX_CODINGS {
                    return Err(DecodingError::Unsupported);
                }
                outermost = Some(Self::named(name, limits, outermost.map(Box::new))?);
            }
        }
        Ok(outermost)
    }

    fn named(
        name: &str,
        limits: DecodingLimits,
        inner: Option<Box<Self>>,
    ) -> Result<Self, DecodingError> {
        let content = Content {
            out: Vec::new(),
            compressed: 0,
            decompressed: 0,
            limits,
            exceeded: None,
        };
        let writer = match name.to_ascii_lowercase().as_str() {
            "gzip" | "x-gzip" => Writer::Gzip(MultiGzDecoder::new(content)),
            "deflate" => Writer::Deflate(ZlibDecoder::new(content)),
            "br" => Writer::Brotli(Box::new(DecompressorWriter::new(content, BUFFER_BYTES))),
            "zstd" => Writer::Zstd(Box::new(Zstd::new(content)?)),
            _ => return Err(DecodingError::Unsupported),
        };
        Ok(Self { writer, inner })
    }

    /// Decompresses `piece`, and hands the content to `take` in pieces of at most
    /// `max-decompression-ratio` KiB, or 128 KiB if that is more.
    ///
    /// # Errors
    /// The body is malformed or over a limit. The decoder must not be used again.
    pub fn push(&mut self, piece: &[u8], mut take: impl FnMut(&[u8])) -> Result<(), DecodingError> {
        for step in piece.chunks(STEP_BYTES) {
            self.count(step.len() as u64);
            self.decode(step, &mut take)?;
        }
        Ok(())
    }

    /// Passes the rest of the content to `take`, after the last piece.
    ///
    /// # Errors
    /// The body is truncated, or exceeds a limit.
    pub fn finish(mut self, mut take: impl FnMut(&[u8])) -> Result<(), DecodingError> {
        self.end(&mut take)
    }

    /// Counts compressed bytes, on which the ratio of every coding is based.
    fn count(&mut self, bytes: u64) {
        self.content().compressed += bytes;
        if let Some(inner) = &mut self.inner {
            inner.count(bytes);
        }
    }

    fn decode(&mut self, step: &[u8], take: &mut impl FnMut(&[u8])) -> Result<(), DecodingError> {
        let written = self.writer.write(step);
        self.forward(written, take)
    }

    fn end(&mut self, take: &mut impl FnMut(&[u8])) -> Result<(), DecodingError> {
        let ended = match &mut self.writer {
            Writer::Gzip(writer) => writer.try_finish(),
            Writer::Deflate(writer) => writer.try_finish(),
            Writer::Brotli(writer) => writer.close(),
            Writer::Zstd(zstd) => zstd.finish(),
        };
        self.forward(ended, take)?;
        match &mut self.inner {
            None => Ok(()),
            Some(inner) => inner.end(take),
        }
    }

    fn forward(
        &mut self,
        done: io::Result<()>,
        take: &mut impl FnMut(&[u8]),
    ) -> Result<(), DecodingError> {
        // Flushes the bytes that the writer still holds.
        let done = done.and_then(|()| self.writer.flush());
        let content = self.content();
        if let Some(exceeded) = content.exceeded {
            return Err(exceeded);
        }
        done.map_err(|_| DecodingError::Malformed)?;
        let out = std::mem::take(&mut content.out);
        if let Some(inner) = &mut self.inner {
            let mut steps = out.chunks(STEP_BYTES);
            return steps.try_for_each(|step| inner.decode(step, take));
        }
        if !out.is_empty() {
            take(&out);
        }
        Ok(())
    }

    fn content(&mut self) -> &mut Content {
        match &mut self.writer {
            Writer::Gzip(writer) => writer.get_mut(),
            Writer::Deflate(writer) => writer.get_mut(),
            Writer::Brotli(writer) => writer.get_mut(),
            Writer::Zstd(zstd) => &mut zstd.content,
        }
    }
}

impl Writer {
    fn write(&mut self, step: &[u8]) -> io::Result<()> {
        match self {
            Self::Gzip(writer) => writer.write_all(step),
            Self::Deflate(writer) => writer.write_all(step),
            Self::Brotli(writer) => writer.write_all(step),
            Self::Zstd(zstd) => zstd.write(step),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Gzip(writer) => writer.flush(),
            Self::Deflate(writer) => writer.flush(),
            Self::Brotli(writer) => writer.flush(),
            Self::Zstd(_) => Ok(()),
        }
    }
}

impl Zstd {
    fn new(content: Content) -> Result<Self, DecodingError> {
        let mut decoder = ZstdDecoder::new().map_err(|_| DecodingError::Unsupported)?;
        let window = DParameter::WindowLogMax(MAX_ZSTD_WINDOW_BITS);
        let bounded = decoder.set_parameter(window);
        bounded.map_err(|_| DecodingError::Unsupported)?;
        Ok(Self {
            decoder,
            ended: false,
            content,
        })
    }

    fn write(&mut self, step: &[u8]) -> io::Result<()> {
        let mut input = InBuffer::around(step);
        let mut buffer = [0_u8; BUFFER_BYTES];
        loop {
            let mut output = OutBuffer::around(&mut buffer[..]);
            let left = self.decoder.run(&mut input, &mut output)?;
            self.ended = left == 0;
            let written = output.as_slice();
            self.content.write_all(written)?;
            // An output that is full may have more after it.
            if input.pos() == step.len() && written.len() < BUFFER_BYTES {
                return Ok(());
            }
        }
    }

    fn finish(&self) -> io::Result<()> {
        if self.ended {
            return Ok(());
        }
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

impl Content {
    fn check(&self) -> Option<DecodingError> {
        let DecodingLimits {
            max_ratio,
            max_bytes,
        } = self.limits;
        if self.decompressed > max_bytes {
            return Some(DecodingError::Size {
                limit: max_bytes,
                current: self.decompressed,
            });
        }
        let ratio = float(self.decompressed) / float(self.compressed.max(1));
        (ratio > max_ratio).then(|| DecodingError::Ratio {
            limit: truncated(max_ratio.floor()),
            current: truncated(ratio.ceil()),
        })
    }
}

impl Write for Content {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        self.decompressed += piece.len() as u64;
        if let Some(exceeded) = self.check() {
            self.exceeded = Some(exceeded);
            return Err(io::Error::other("over a limit"));
        }
        self.out.extend_from_slice(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "sizes of bodies are far below 2^52"
)]
fn float(bytes: u64) -> f64 {
    bytes as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a ratio is positive, and the cast saturates"
)]
fn truncated(ratio: f64) -> u64 {
    ratio as u64
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = match self.writer {
            Writer::Gzip(_) => "gzip",
            Writer::Deflate(_) => "deflate",
            Writer::Brotli(_) => "br",
            Writer::Zstd(_) => "zstd",
        };
        f.debug_struct("Decoder")
            .field("coding", &name)
            .field("inner", &self.inner)
            .finish()
    }
}
