//! Error codes, and errors with their scope.

use std::fmt;

/// A code of an HTTP/3 or QPACK error. [RFC 9114 §8.1, RFC 9204 §6]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ErrorCode(u32);

impl ErrorCode {
    /// The connection or the stream ends without an error.
    pub const NO_ERROR: Self = Self(0x100);
    /// A violation without a code of its own.
    pub const GENERAL_PROTOCOL_ERROR: Self = Self(0x101);
    /// An error of this side.
    pub const INTERNAL_ERROR: Self = Self(0x102);
    /// A stream that the client may not open.
    pub const STREAM_CREATION_ERROR: Self = Self(0x103);
    /// The client closed its control stream or a QPACK stream.
    pub const CLOSED_CRITICAL_STREAM: Self = Self(0x104);
    /// A frame that is not allowed where it stands.
    pub const FRAME_UNEXPECTED: Self = Self(0x105);
    /// A frame with a wrong length or layout.
    pub const FRAME_ERROR: Self = Self(0x106);
    /// The client causes more work than it may.
    pub const EXCESSIVE_LOAD: Self = Self(0x107);
    /// An identifier that is out of range, or was lowered or raised.
    pub const ID_ERROR: Self = Self(0x108);
    /// Invalid settings.
    pub const SETTINGS_ERROR: Self = Self(0x109);
    /// A control stream without settings at its beginning.
    pub const MISSING_SETTINGS: Self = Self(0x10a);
    /// A request that was not processed: the client may send it again elsewhere.
    pub const REQUEST_REJECTED: Self = Self(0x10b);
    /// A response that is no longer sent.
    pub const REQUEST_CANCELLED: Self = Self(0x10c);
    /// A request stream that ended early.
    pub const REQUEST_INCOMPLETE: Self = Self(0x10d);
    /// `H3_MESSAGE_ERROR`: the request is malformed. [RFC 9114 §8.1]
    pub const MESSAGE_ERROR: Self = Self(0x10e);
    /// A header section that cannot be decoded.
    pub const QPACK_DECOMPRESSION_FAILED: Self = Self(0x200);
    /// An instruction on the encoder stream that is not allowed.
    pub const QPACK_ENCODER_STREAM_ERROR: Self = Self(0x201);
    /// An instruction on the decoder stream that is not allowed.
    pub const QPACK_DECODER_STREAM_ERROR: Self = Self(0x202);

    /// The code on the wire.
    #[must_use]
    pub const fn value(self) -> u32 {
        self.0
    }
}

/// The part of a connection that an error ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Resets one stream.
    Stream,
    /// Closes the connection.
    Connection,
}

/// A violation of HTTP/3 by the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Http3Error {
    /// The code for the client.
    pub code: ErrorCode,
    /// The part that ends.
    pub scope: Scope,
    /// The rule that the client violated, for the log.
    pub rule: &'static str,
}

impl Http3Error {
    /// An error that ends the connection.
    #[must_use]
    pub const fn connection(code: ErrorCode, rule: &'static str) -> Self {
        Self {
            code,
            scope: Scope::Connection,
            rule,
        }
    }

    /// An error that ends the stream.
    #[must_use]
    pub const fn stream(code: ErrorCode, rule: &'static str) -> Self {
        Self {
            code,
            scope: Scope::Stream,
            rule,
        }
    }

    /// A malformed message, which ends its stream. [RFC 9114 §4.1.2]
    #[must_use]
    pub const fn malformed(rule: &'static str) -> Self {
        Self::stream(ErrorCode::MESSAGE_ERROR, rule)
    }
}

impl fmt::Display for Http3Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.rule)
    }
}

impl std::error::Error for Http3Error {}
