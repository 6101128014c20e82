//! Enumerations with names for label values and log fields, and IDs of traces.

/// A trace's ID: 32 hexadecimal digits in lower case.
pub type TraceId = [u8; 32];

/// A span's ID: 16 hexadecimal digits in lower case.
pub type SpanId = [u8; 16];

/// The protocol of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.0.
    Http10,
    /// HTTP/1.1.
    Http11,
    /// HTTP/2.
    Http2,
    /// HTTP/3.
    Http3,
    /// Relayed as bytes, without HTTP.
    Tcp,
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
    pub const ALL: [Self; 5] = [
        Self::Http10,
        Self::Http11,
        Self::Http2,
        Self::Http3,
        Self::Tcp,
    ];

    /// The name in labels and log records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http10 => "HTTP/1.0",
            Self::Http11 => "HTTP/1.1",
            Self::Http2 => "HTTP/2",
            Self::Http3 => "HTTP/3",
            Self::Tcp => "TCP",
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
    fn every_word_is_at_its_index() {
        for (index, protocol) in Protocol::ALL.into_iter().enumerate() {
            assert_eq!(protocol.index(), index);
        }
        for (index, decision) in AgentDecision::ALL.into_iter().enumerate() {
            assert_eq!(decision.index(), index);
        }
    }
}
