//! Error codes of HTTP/3 and QPACK, and errors with their scope.

use std::fmt;

/// An error code of HTTP/3 or QPACK. [RFC 9114 §8.1, RFC 9204 §6]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ErrorCode(u32);

impl ErrorCode {
    /// Graceful end of the connection or stream.
    pub const NO_ERROR: Self = Self(0x100);
    /// A protocol violation without a more specific code.
    pub const GENERAL_PROTOCOL_ERROR: Self = Self(0x101);
    /// An internal error of this server.
    pub const INTERNAL_ERROR: Self = Self(0x102);
    /// The client opened a stream that it must not open.
    pub const STREAM_CREATION_ERROR: Self = Self(0x103);
    /// The client closed its control stream or a QPACK stream.
    pub const CLOSED_CRITICAL_STREAM: Self = Self(0x104);
    /// A frame is not permitted at this point.
    pub const FRAME_UNEXPECTED: Self = Self(0x105);
    /// A frame has a wrong length or layout.
    pub const FRAME_ERROR: Self = Self(0x106);
    /// The client causes excessive work.
    pub const EXCESSIVE_LOAD: Self = Self(0x107);
    /// An identifier is out of range, or changed in a direction that is not permitted.
    pub const ID_ERROR: Self = Self(0x108);
    /// The client's settings are invalid.
    pub const SETTINGS_ERROR: Self = Self(0x109);
    /// The client's control stream does not begin with settings.
    pub const MISSING_SETTINGS: Self = Self(0x10a);
    /// The request was not processed, so the client may retry it.
    pub const REQUEST_REJECTED: Self = Self(0x10b);
    /// The response is cancelled.
    pub const REQUEST_CANCELLED: Self = Self(0x10c);
    /// The request stream ended before the request was complete.
    pub const REQUEST_INCOMPLETE: Self = Self(0x10d);
    /// `H3_MESSAGE_ERROR`: the request is malformed. [RFC 9114 §8.1]
    pub const MESSAGE_ERROR: Self = Self(0x10e);
    /// A header section cannot be decoded.
    pub const QPACK_DECOMPRESSION_FAILED: Self = Self(0x200);
    /// An invalid instruction on the encoder stream.
    pub const QPACK_ENCODER_STREAM_ERROR: Self = Self(0x201);
    /// An invalid instruction on the decoder stream.
    pub const QPACK_DECODER_STREAM_ERROR: Self = Self(0x202);

    /// Numeric value on the wire.
    #[must_use]
    pub const fn value(self) -> u32 {
        self.0
    }
}

/// Scope of an error: stream or connection.
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
    /// Error code to send to the client.
    pub code: ErrorCode,
    /// Scope of the error.
    pub scope: Scope,
    /// Violated rule, for the log.
    pub rule: &'static str,
}

impl Http3Error {
    /// Creates an error that closes the connection.
    #[must_use]
    pub const fn connection(code: ErrorCode, rule: &'static str) -> Self {
        Self {
            code,
            scope: Scope::Connection,
            rule,
        }
    }

    /// Creates an error that resets the stream.
    #[must_use]
    pub const fn stream(code: ErrorCode, rule: &'static str) -> Self {
        Self {
            code,
            scope: Scope::Stream,
            rule,
        }
    }

    /// Creates the error of a malformed message, which resets the stream. [RFC 9114 §4.1.2]
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
