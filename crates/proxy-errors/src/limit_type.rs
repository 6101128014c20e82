//! Types of limits.

use std::fmt;

/// The exceeded quantity, as named in the message of a `LIMIT_EXCEEDED` error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LimitType {
    /// Bytes of a header section, or of one name or value in it.
    HeaderSize,
    /// Number of header fields.
    HeaderCount,
    /// Bytes of a body.
    BodySize,
    /// Requests, or stream resets, per time.
    RequestRate,
    /// Open connections.
    ConnectionCount,
    /// Requests in flight.
    InFlightRequests,
    /// Decompressed bytes of a body, in total or per compressed byte.
    DecompressionSize,
    /// Bytes of a body held in memory.
    BufferSize,
    /// Requests waiting in a queue.
    QueueDepth,
}

impl LimitType {
    /// Every limit type, in the order of [`Self::index`].
    pub const ALL: [Self; 9] = [
        Self::HeaderSize,
        Self::HeaderCount,
        Self::BodySize,
        Self::RequestRate,
        Self::ConnectionCount,
        Self::InFlightRequests,
        Self::DecompressionSize,
        Self::BufferSize,
        Self::QueueDepth,
    ];

    /// The name in messages, logs and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::HeaderSize => "header_size",
            Self::HeaderCount => "header_count",
            Self::BodySize => "body_size",
            Self::RequestRate => "request_rate",
            Self::ConnectionCount => "connection_count",
            Self::InFlightRequests => "in_flight_requests",
            Self::DecompressionSize => "decompression_size",
            Self::BufferSize => "buffer_size",
            Self::QueueDepth => "queue_depth",
        }
    }

    /// Position in [`Self::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for LimitType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
