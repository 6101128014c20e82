//! An agent's answer to an event.

pub(crate) mod message;
pub(crate) mod prefix;

use crate::bytes::BodyData;
use crate::event::EventKind;
use crate::header::{Header, HeaderEdit};
use crate::metadata::Metadata;
use crate::text::Text;

/// Maximum bytes of a block's reason.
pub const MAX_REASON_BYTES: usize = 512;
/// Maximum of challenges in one answer.
pub const MAX_CHALLENGES: usize = 8;

/// An agent's decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Continue with the request.
    Allow(Allow),
    /// The request is refused.
    Block(Block),
    /// The client is redirected.
    Redirect(Redirect),
    /// The client has to authenticate: 401.
    Challenge(Challenge),
}

/// Continue with the request, with optional edits of headers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allow {
    /// Edits of the request's headers before it is forwarded.
    pub request_headers: Vec<HeaderEdit>,
    /// Changes of the response's headers, as the client gets them.
    pub response_headers: Vec<HeaderEdit>,
    /// Entries for the log and for the agents after this one.
    pub metadata: Metadata,
    /// Later events of this request that the agent skips.
    pub skip: Vec<EventKind>,
}

/// The request is refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// Status from 400 to 599; without it the answer is 403 `WAF_BLOCKED`.
    pub status: Option<u16>,
    /// Headers of the answer.
    pub headers: Vec<Header<'static>>,
    /// Body of the answer; without it the body is the proxy's own for the status.
    pub body: Option<BodyData<'static>>,
    /// For the log alone, such as the rule that matched.
    pub reason: Option<String>,
}

/// The client is redirected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    /// 301, 302, 303, 307 or 308.
    pub status: u16,
    /// Value of `location`.
    pub location: Text<'static>,
    /// Further headers of the answer.
    pub headers: Vec<Header<'static>>,
    /// Body of the answer; without it the body is empty.
    pub body: Option<BodyData<'static>>,
}

impl Redirect {
    /// The status of a redirect without one.
    pub const DEFAULT_STATUS: u16 = 302;
}

/// The client has to authenticate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    /// Values of `www-authenticate`, at least one.
    pub challenges: Vec<Text<'static>>,
    /// Further headers of the answer.
    pub headers: Vec<Header<'static>>,
    /// Body of the answer; without it the body is the proxy's own.
    pub body: Option<BodyData<'static>>,
    /// For the log alone.
    pub reason: Option<String>,
}

impl Decision {
    /// The name on the wire and in metrics.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Allow(_) => "allow",
            Self::Block(_) => "block",
            Self::Redirect(_) => "redirect",
            Self::Challenge(_) => "challenge",
        }
    }

    /// Checks that the decision is possible as the answer to an event. `is_chunk` is true for an
    /// event with a piece of a body, after the head was sent.
    ///
    /// # Errors
    /// Returns the name of a part that is too late for this event.
    pub fn check(&self, event: EventKind, is_chunk: bool) -> Result<(), &'static str> {
        let Self::Allow(allow) = self else {
            return Ok(());
        };
        let Allow {
            request_headers,
            response_headers,
            metadata: _,
            skip,
        } = allow;
        let is_response = event >= EventKind::ResponseHeaders;
        if is_chunk && !(request_headers.is_empty() && response_headers.is_empty()) {
            return Err("header edits in the answer to a piece of a body");
        }
        if is_response && !request_headers.is_empty() {
            return Err("edits of request headers in the answer to a response");
        }
        let earliest = if is_chunk { Some(event) } else { None };
        let is_late = |kind: &EventKind| *kind <= event && Some(*kind) != earliest;
        if skip.iter().any(is_late) {
            return Err("an event to skip that is past");
        }
        Ok(())
    }
}
