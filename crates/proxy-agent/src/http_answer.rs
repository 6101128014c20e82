//! Answers of agents with HTTP protocols.

use crate::error::CallError;
use agent_protocol::{Block, BodyData, Challenge, Decision, Header, Redirect};
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Body;

/// Status of a denial without a valid status.
const FORBIDDEN: u16 = 403;

/// An agent's response that is sent to the client.
#[derive(Debug)]
pub(crate) struct HttpAnswer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<Header<'static>>,
    pub(crate) body: Vec<u8>,
}

impl HttpAnswer {
    /// Converts the answer to a denial. A redirect without a location, and any other status outside
    /// 400 to 599, become 403.
    pub(crate) fn into_denial(self) -> Decision {
        let Self {
            status,
            mut headers,
            body,
        } = self;
        let body = (!body.is_empty()).then(|| BodyData::from(body));
        let location = headers
            .iter()
            .position(|header| header.name() == "location");
        match (status, location) {
            (301 | 302 | 303 | 307 | 308, Some(place)) => {
                let location = headers.remove(place).value().clone();
                Decision::Redirect(Redirect {
                    status,
                    location,
                    headers,
                    body,
                })
            }
            (401, _) => {
                let is_challenge = |header: &Header<'_>| header.name() == "www-authenticate";
                let challenges: Vec<_> = headers
                    .iter()
                    .filter(|header| is_challenge(header))
                    .map(|header| header.value().clone())
                    .collect();
                headers.retain(|header| !is_challenge(header));
                Decision::Challenge(Challenge {
                    challenges,
                    headers,
                    body,
                    reason: None,
                })
            }
            _ => Decision::Block(Block {
                status: Some(status)
                    .filter(|status| (400..=599).contains(status))
                    .or(Some(FORBIDDEN)),
                headers,
                body,
                reason: None,
            }),
        }
    }
}

/// Reads a body of at most `limit` bytes.
pub(crate) async fn limited_body<B>(body: B, limit: u64) -> Result<Bytes, CallError>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let collected = Limited::new(body, limit).collect().await;
    let collected = collected.map_err(|error| {
        if error.is::<LengthLimitError>() {
            return CallError::longer_than(limit);
        }
        CallError::BadReply(error.to_string())
    })?;
    Ok(collected.to_bytes())
}
