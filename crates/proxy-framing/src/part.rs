//! The next part of a message.

use crate::body::Body;
use crate::error::FramingError;
use crate::fields::Fields;

/// The part of a message with a start line of type `L` that the next byte belongs to.
#[derive(Debug)]
pub(crate) enum Part<L> {
    Line(L),
    Fields(Fields),
    Body(Body),
    /// A request with an upgrade, or the head of a 101 or of a 2xx to a `CONNECT`, is complete.
    Stopped,
    Tunnel,
    Faulted {
        fault: FramingError,
        in_body: bool,
    },
}

impl<L> Part<L> {
    /// Returns true if a head has begun and is incomplete, or was refused.
    pub(crate) fn in_head(&self, is_blank: impl FnOnce(&L) -> bool) -> bool {
        match self {
            Self::Line(line) => !is_blank(line),
            Self::Fields(_) | Self::Faulted { in_body: false, .. } => true,
            Self::Body(_) | Self::Stopped | Self::Tunnel | Self::Faulted { .. } => false,
        }
    }

    /// Returns true if a body is incomplete, or was refused.
    pub(crate) fn in_body(&self) -> bool {
        matches!(self, Self::Body(_) | Self::Faulted { in_body: true, .. })
    }

    /// Refuses the message here, for good. Returns `fault`.
    pub(crate) fn refuse(&mut self, fault: FramingError) -> FramingError {
        let in_body = self.in_body();
        *self = Self::Faulted { fault, in_body };
        fault
    }
}
