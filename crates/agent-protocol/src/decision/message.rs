//! The answer to an event, on the wire one object with fields that depend on its verb.

use crate::bounded::list;
use crate::bytes::BodyData;
use crate::decision::{
    Allow, Block, Challenge, Decision, MAX_CHALLENGES, MAX_REASON_BYTES, Redirect,
};
use crate::event::EventKind;
use crate::header::{Header, HeaderEdit, MAX_HEADER_EDITS, is_protected};
use crate::id::RequestId;
use crate::metadata::Metadata;
use crate::text::Text;
use serde::{Deserialize, Serialize};

/// The answer to one event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "DecisionFields", try_from = "DecisionFields")]
pub struct DecisionMessage {
    /// Identifier of the request, unique on its connection.
    pub id: RequestId,
    /// Sequence number of the answered event.
    pub seq: u32,
    /// Decision on the event with this `seq`.
    pub decision: Decision,
}

/// Statuses of a block.
const BLOCK_STATUSES: std::ops::RangeInclusive<u16> = 400..=599;
/// Statuses of a redirect.
const REDIRECT_STATUSES: [u16; 5] = [301, 302, 303, 307, 308];
/// Maximum of events to skip, which is all of them.
const MAX_SKIPS: usize = 4;

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Verb {
    Allow,
    Block,
    Redirect,
    Challenge,
}

/// The object. Every list and text is empty or absent unless the verb has it.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DecisionFields {
    id: RequestId,
    seq: u32,
    decision: Verb,
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "list::<_, _, MAX_HEADER_EDITS>"
    )]
    request_headers: Vec<HeaderEdit>,
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "list::<_, _, MAX_HEADER_EDITS>"
    )]
    response_headers: Vec<HeaderEdit>,
    #[serde(default, skip_serializing_if = "Metadata::is_empty")]
    metadata: Metadata,
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "list::<_, _, MAX_SKIPS>"
    )]
    skip: Vec<EventKind>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    location: Option<Text<'static>>,
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "list::<_, _, MAX_CHALLENGES>"
    )]
    challenges: Vec<Text<'static>>,
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "list::<_, _, MAX_HEADER_EDITS>"
    )]
    headers: Vec<Header<'static>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<BodyData<'static>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl DecisionFields {
    fn empty(id: RequestId, seq: u32, decision: Verb) -> Self {
        Self {
            id,
            seq,
            decision,
            request_headers: Vec::new(),
            response_headers: Vec::new(),
            metadata: Metadata::default(),
            skip: Vec::new(),
            status: None,
            location: None,
            challenges: Vec::new(),
            headers: Vec::new(),
            body: None,
            reason: None,
        }
    }

    /// The name of a field that does not belong to the verb.
    fn foreign(&self) -> Option<&'static str> {
        use Verb::{Allow, Block, Challenge, Redirect};
        let fields: [(&str, bool, &[Verb]); 10] = [
            (
                "request_headers",
                !self.request_headers.is_empty(),
                &[Allow],
            ),
            (
                "response_headers",
                !self.response_headers.is_empty(),
                &[Allow],
            ),
            ("metadata", !self.metadata.is_empty(), &[Allow]),
            ("skip", !self.skip.is_empty(), &[Allow]),
            ("status", self.status.is_some(), &[Block, Redirect]),
            ("location", self.location.is_some(), &[Redirect]),
            ("challenges", !self.challenges.is_empty(), &[Challenge]),
            (
                "headers",
                !self.headers.is_empty(),
                &[Block, Redirect, Challenge],
            ),
            ("body", self.body.is_some(), &[Block, Redirect, Challenge]),
            ("reason", self.reason.is_some(), &[Block, Challenge]),
        ];
        let foreign = fields
            .into_iter()
            .find(|(_, is_there, verbs)| *is_there && !verbs.contains(&self.decision));
        foreign.map(|(name, ..)| name)
    }

    /// The fault in the values of fields that the verb may have, if any.
    fn fault(&self) -> Option<&'static str> {
        let edits = self.request_headers.iter().chain(&self.response_headers);
        let mut names = edits
            .map(HeaderEdit::name)
            .chain(self.headers.iter().map(Header::name));
        if names.any(is_protected) {
            return Some("a header that no agent may touch");
        }
        let reason = self.reason.as_ref().map_or(0, String::len);
        if reason > MAX_REASON_BYTES {
            return Some("a reason beyond its bound");
        }
        let values = self.location.iter().chain(&self.challenges);
        let is_unfit = |value: &Text<'_>| value.0.is_empty() || !is_header_value(value);
        if values.into_iter().any(is_unfit) {
            return Some("a location or challenge that is not a header value");
        }
        if self.skip.contains(&EventKind::RequestHeaders) {
            return Some("an event to skip that is past");
        }
        None
    }
}

fn is_header_value(value: &Text<'_>) -> bool {
    Header::new("name", value.as_bytes()).is_ok()
}

impl From<DecisionMessage> for DecisionFields {
    fn from(message: DecisionMessage) -> Self {
        let DecisionMessage { id, seq, decision } = message;
        let fields = |verb| Self::empty(id, seq, verb);
        match decision {
            Decision::Allow(Allow {
                request_headers,
                response_headers,
                metadata,
                skip,
            }) => Self {
                request_headers,
                response_headers,
                metadata,
                skip,
                ..fields(Verb::Allow)
            },
            Decision::Block(Block {
                status,
                headers,
                body,
                reason,
            }) => Self {
                status,
                headers,
                body,
                reason,
                ..fields(Verb::Block)
            },
            Decision::Redirect(Redirect {
                status,
                location,
                headers,
                body,
            }) => Self {
                status: Some(status),
                location: Some(location),
                headers,
                body,
                ..fields(Verb::Redirect)
            },
            Decision::Challenge(Challenge {
                challenges,
                headers,
                body,
                reason,
            }) => Self {
                challenges,
                headers,
                body,
                reason,
                ..fields(Verb::Challenge)
            },
        }
    }
}

impl TryFrom<DecisionFields> for DecisionMessage {
    type Error = String;

    fn try_from(fields: DecisionFields) -> Result<Self, String> {
        if let Some(name) = fields.foreign() {
            return Err(format!(
                "the field `{name}` does not belong to the decision"
            ));
        }
        if let Some(fault) = fields.fault() {
            return Err(fault.to_owned());
        }
        let (id, seq) = (fields.id, fields.seq);
        let decision = match fields.decision {
            Verb::Allow => Decision::Allow(Allow {
                request_headers: fields.request_headers,
                response_headers: fields.response_headers,
                metadata: fields.metadata,
                skip: fields.skip,
            }),
            Verb::Block => block(fields)?,
            Verb::Redirect => redirect(fields)?,
            Verb::Challenge => challenge(fields)?,
        };
        Ok(Self { id, seq, decision })
    }
}

fn block(fields: DecisionFields) -> Result<Decision, String> {
    let is_wrong = |status: &u16| !BLOCK_STATUSES.contains(status);
    if fields.status.as_ref().is_some_and(is_wrong) {
        return Err("a block whose status is not from 400 to 599".to_owned());
    }
    Ok(Decision::Block(Block {
        status: fields.status,
        headers: fields.headers,
        body: fields.body,
        reason: fields.reason,
    }))
}

fn redirect(fields: DecisionFields) -> Result<Decision, String> {
    let status = fields.status.unwrap_or(Redirect::DEFAULT_STATUS);
    if !REDIRECT_STATUSES.contains(&status) {
        return Err("a redirect whose status is not 301, 302, 303, 307 or 308".to_owned());
    }
    let location = fields.location.ok_or("a redirect without location")?;
    Ok(Decision::Redirect(Redirect {
        status,
        location,
        headers: fields.headers,
        body: fields.body,
    }))
}

fn challenge(fields: DecisionFields) -> Result<Decision, String> {
    if fields.challenges.is_empty() {
        return Err("a challenge without challenges".to_owned());
    }
    Ok(Decision::Challenge(Challenge {
        challenges: fields.challenges,
        headers: fields.headers,
        body: fields.body,
        reason: fields.reason,
    }))
}
