//! The chunks of a body, up to the line of the last one.

use crate::body::extension::Extension;
use crate::chars;
use crate::chars::plain;
use crate::error::FramingError;
use crate::input::{Input, Progress};

const MAX_DIGITS: u8 = 16;
/// Maximum number of bytes of extensions in one body; no common client sends any, and hyper refuses
/// more than 16 KiB.
const MAX_EXTENSION_BYTES: u16 = 4096;

/// The chunks of one body. [RFC 9112 §7.1]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunks {
    step: Step,
    digits: u8,
    extension_bytes: u16,
    /// The size being read, then the remaining bytes of data.
    left: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Size,
    Extension(Extension),
    SizeLf,
    Data,
    DataCr,
    DataLf,
    End,
}

impl Chunks {
    pub(crate) const fn new() -> Self {
        Self {
            step: Step::Size,
            digits: 0,
            extension_bytes: 0,
            left: 0,
        }
    }

    /// Reads to the end of the last chunk's line or of the input.
    pub(crate) fn scan(&mut self, input: &mut Input<'_>) -> Result<Progress, FramingError> {
        loop {
            if self.step == Step::Data {
                self.left -= input.skip(self.left);
                if 0 < self.left {
                    return Ok(Progress::Incomplete);
                }
                self.step = Step::DataCr;
            }
            self.plain(input);
            if self.step == Step::End {
                return Ok(Progress::Done);
            }
            if self.step == Step::Data {
                continue;
            }
            let Some(byte) = input.peek() else {
                return Ok(Progress::Incomplete);
            };
            self.push(byte)?;
            input.at += 1;
        }
    }

    /// Consumes a whole line end after data, and a whole size line without extensions.
    fn plain(&mut self, input: &mut Input<'_>) {
        if self.step == Step::DataCr && input.rest().starts_with(b"\r\n") {
            input.at += 2;
            self.next_chunk();
        }
        if self.step == Step::Size
            && self.digits == 0
            && let Some((size, bytes)) = plain::chunk_size(input.rest())
        {
            input.at += bytes;
            self.left = size;
            self.begin_data();
        }
    }

    fn push(&mut self, byte: u8) -> Result<(), FramingError> {
        match (self.step, byte) {
            (Step::DataCr, b'\r') => self.step = Step::DataLf,
            (Step::DataLf, b'\n') => self.next_chunk(),
            (Step::DataCr | Step::DataLf, _) => return Err(FramingError::ChunkDataNotTerminated),
            (Step::SizeLf, b'\n') => self.begin_data(),
            (Step::SizeLf, _) => return Err(FramingError::BareCr),
            (_, 0) => return Err(FramingError::NulByte),
            (_, b'\n') => return Err(FramingError::BareLf),
            (Step::Size, b'\r') if 0 < self.digits => self.step = Step::SizeLf,
            (Step::Size, b';' | b' ' | b'\t') if 0 < self.digits => {
                self.extension(Extension::Gap, byte)?;
            }
            (Step::Size, _) => self.digit(byte)?,
            (Step::Extension(extension), b'\r') if extension.may_end() => self.step = Step::SizeLf,
            (Step::Extension(extension), _) => self.extension(extension, byte)?,
            (Step::Data | Step::End, _) => {}
        }
        Ok(())
    }

    fn digit(&mut self, byte: u8) -> Result<(), FramingError> {
        let digit = chars::hex(byte).filter(|_| self.digits < MAX_DIGITS);
        let digit = digit.ok_or(FramingError::BadChunkSize)?;
        self.left = self.left << 4 | u64::from(digit);
        self.digits += 1;
        Ok(())
    }

    fn extension(&mut self, extension: Extension, byte: u8) -> Result<(), FramingError> {
        let next = extension
            .after(byte)
            .filter(|_| self.extension_bytes < MAX_EXTENSION_BYTES);
        self.step = Step::Extension(next.ok_or(FramingError::BadChunkExtension)?);
        self.extension_bytes += 1;
        Ok(())
    }

    fn begin_data(&mut self) {
        self.step = if self.left == 0 {
            Step::End
        } else {
            Step::Data
        };
    }

    fn next_chunk(&mut self) {
        self.step = Step::Size;
        self.digits = 0;
        self.left = 0;
    }
}
