//! Enumerations with names for label values and log fields.

/// The protocol of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.0.
    Http10,
    /// HTTP/1.1.
    Http11,
    /// HTTP/2.
    Http2,
}

/// A type of limit, as in the interface contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limit {
    /// Bytes of all header fields, of one name or of one value.
    HeaderSize,
    /// Number of header fields.
    HeaderCount,
    /// Bytes of a request body.
    BodySize,
    /// Requests per second.
    RequestRate,
    /// Open connections.
    ConnectionCount,
    /// Requests in flight.
    InFlightRequests,
    /// Bytes, or ratio, of a decompressed body.
    DecompressionSize,
    /// Bytes of a buffered body.
    BufferSize,
    /// Requests or agent calls waiting.
    QueueDepth,
}

/// The point in a request at which an agent is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentEvent {
    /// The request's head arrived.
    RequestHeaders,
    /// A part or the whole of the request's body arrived.
    RequestBody,
    /// The response's head arrived.
    ResponseHeaders,
    /// A part or the whole of the response's body arrived.
    ResponseBody,
    /// The exchange ended.
    Completion,
}

/// The decision of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentDecision {
    /// Continue.
    Allow,
    /// Refuse the request.
    Block,
    /// Redirect the client.
    Redirect,
    /// Require credentials from the client.
    Challenge,
}

impl Protocol {
    /// Every protocol, in the order of [`Self::index`].
    pub const ALL: [Self; 3] = [Self::Http10, Self::Http11, Self::Http2];

    /// The name in labels and log records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http10 => "HTTP/1.0",
            Self::Http11 => "HTTP/1.1",
            Self::Http2 => "HTTP/2",
        }
    }

    /// Position in [`Self::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl Limit {
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

    /// The name in labels, log records and error messages.
    pub const fn name(self) -> &'static str {
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
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl AgentEvent {
    /// Every event, in the order of [`Self::index`].
    pub const ALL: [Self; 5] = [
        Self::RequestHeaders,
        Self::RequestBody,
        Self::ResponseHeaders,
        Self::ResponseBody,
        Self::Completion,
    ];

    /// The name in labels.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RequestHeaders => "request_headers",
            Self::RequestBody => "request_body",
            Self::ResponseHeaders => "response_headers",
            Self::ResponseBody => "response_body",
            Self::Completion => "completion",
        }
    }

    /// Position in [`Self::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl AgentDecision {
    /// Every decision, in the order of [`Self::index`].
    pub const ALL: [Self; 4] = [Self::Allow, Self::Block, Self::Redirect, Self::Challenge];

    /// The name in labels.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Block => "block",
            Self::Redirect => "redirect",
            Self::Challenge => "challenge",
        }
    }

    /// Position in [`Self::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_stands_at_its_index() {
        for (index, protocol) in Protocol::ALL.into_iter().enumerate() {
            assert_eq!(protocol.index(), index);
        }
        for (index, limit) in Limit::ALL.into_iter().enumerate() {
            assert_eq!(limit.index(), index);
        }
        for (index, event) in AgentEvent::ALL.into_iter().enumerate() {
            assert_eq!(event.index(), index);
        }
        for (index, decision) in AgentDecision::ALL.into_iter().enumerate() {
            assert_eq!(decision.index(), index);
        }
    }
}
