//! Streaming compression with bounded memory.

use crate::coding::Coding;
use brotli::CompressorWriter;
use bytes::Bytes;
use flate2::write::GzEncoder;
use std::io::{self, Write};
use zstd::stream::raw::CParameter;
use zstd::stream::write::Encoder as ZstdEncoder;

/// Levels of compression per coding: higher ones take more CPU time for fewer bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompressionLevels {
    /// 1 to 9.
    pub gzip: u8,
    /// 0 to 6: higher levels would use up to 32 MiB for each body.
    pub brotli: u8,
    /// 1 to 9.
    pub zstd: u8,
}

/// Compresses one body, which is pushed piece by piece.
pub struct Encoder {
    writer: Writer,
    /// True if bytes were pushed since the last flush.
    unflushed: bool,
}

enum Writer {
    Gzip(GzEncoder<Vec<u8>>),
    Brotli(Box<CompressorWriter<Vec<u8>>>),
    Zstd(ZstdEncoder<'static, Vec<u8>>),
}

/// Binary logarithm of the window of brotli and zstd in bytes, and of the size of zstd's tables.
/// Their own defaults take more than 10 MiB for each body.
const WINDOW_BITS: u8 = 17;
/// Output that brotli gathers, in bytes.
const BROTLI_BUFFER_BYTES: usize = 4_096;

impl Encoder {
    /// Most memory that one encoder of `coding` holds, in bytes, without output that was not taken: up to level 9
    /// of gzip and zstd, and 6 of brotli.
    #[must_use]
    pub const fn max_bytes(coding: Coding) -> u64 {
        match coding {
            Coding::Gzip => 512 << 10,
            Coding::Brotli => 4 << 20,
            Coding::Zstd => 2 << 20,
        }
    }

    /// An encoder for one body.
    ///
    /// # Errors
    /// The library has no memory, or refuses the level.
    pub fn new(coding: Coding, levels: CompressionLevels) -> io::Result<Self> {
        let out = Vec::new();
        let writer = match coding {
            Coding::Gzip => {
                let level = flate2::Compression::new(u32::from(levels.gzip));
                Writer::Gzip(GzEncoder::new(out, level))
            }
            Coding::Brotli => {
                let (level, window) = (u32::from(levels.brotli), u32::from(WINDOW_BITS));
                let writer = CompressorWriter::new(out, BROTLI_BUFFER_BYTES, level, window);
                Writer::Brotli(Box::new(writer))
            }
            Coding::Zstd => {
                let mut writer = ZstdEncoder::new(out, i32::from(levels.zstd))?;
                let bits = u32::from(WINDOW_BITS);
                for parameter in [
                    CParameter::WindowLog(bits),
                    CParameter::HashLog(bits),
                    CParameter::ChainLog(bits),
                ] {
                    writer.set_parameter(parameter)?;
                }
                Writer::Zstd(writer)
            }
        };
        Ok(Self {
            writer,
            unflushed: false,
        })
    }

    /// Compresses `piece`. Returns the available output, which may be empty.
    ///
    /// # Errors
    /// The library's own.
    pub fn push(&mut self, piece: &[u8]) -> io::Result<Bytes> {
        self.unflushed |= !piece.is_empty();
        self.writer.inner().write_all(piece)?;
        Ok(self.writer.take())
    }

    /// Returns true if bytes were pushed since the last flush.
    pub fn is_unflushed(&self) -> bool {
        self.unflushed
    }

    /// Returns all pending output, so that a receiver can decode everything pushed until now.
    ///
    /// # Errors
    /// The library's own.
    pub fn flush(&mut self) -> io::Result<Bytes> {
        self.unflushed = false;
        self.writer.inner().flush()?;
        Ok(self.writer.take())
    }

    /// Returns the rest of the body.
    ///
    /// # Errors
    /// The library's own.
    pub fn finish(self) -> io::Result<Bytes> {
        let rest = match self.writer {
            Writer::Gzip(writer) => writer.finish()?,
            Writer::Brotli(writer) => writer.into_inner(),
            Writer::Zstd(writer) => writer.finish()?,
        };
        Ok(rest.into())
    }
}

impl Writer {
    fn inner(&mut self) -> &mut dyn Write {
        match self {
            Self::Gzip(writer) => writer,
            Self::Brotli(writer) => writer,
            Self::Zstd(writer) => writer,
        }
    }

    fn take(&mut self) -> Bytes {
        let out = match self {
            Self::Gzip(writer) => writer.get_mut(),
            Self::Brotli(writer) => writer.get_mut(),
            Self::Zstd(writer) => writer.get_mut(),
        };
        std::mem::take(out).into()
    }
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let coding = match self.writer {
            Writer::Gzip(_) => Coding::Gzip,
            Writer::Brotli(_) => Coding::Brotli,
            Writer::Zstd(_) => Coding::Zstd,
        };
        f.debug_struct("Encoder")
            .field("coding", &coding)
            .field("unflushed", &self.unflushed)
            .finish()
    }
}
