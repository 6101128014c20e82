//! Answers of agents that speak HTTP.

use crate::error::CallError;
use agent_protocol::{Block, BodyData, Challenge, Decision, Header, Redirect};
use bytes::Bytes;
use http::HeaderMap;
use http_body_util::{BodyExt, Limited};
use hyper::body::Body;
use std::fmt::Display;

/// An answer that is to be the client's.
#[derive(Debug)]
pub(crate) struct HttpAnswer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<Header<'static>>,
    pub(crate) body: Vec<u8>,
}

impl HttpAnswer {
    /// The decision to answer the client so.
    pub(crate) fn into_decision(self) -> Result<Decision, CallError> {
        let Self {
            status,
            mut headers,
            body,
        } = self;
        let body = (!body.is_empty()).then(|| BodyData::from(body));
        match status {
            301 | 302 | 303 | 307 | 308 => {
                let place = headers
                    .iter()
                    .position(|header| header.name() == "location");
                let Some(place) = place else {
                    return Err(bad(status, "without a location"));
                };
                let location = headers.remove(place).value().clone();
                Ok(Decision::Redirect(Redirect {
                    status,
                    location,
                    headers,
                }))
            }
            401 => {
                let is_challenge = |header: &Header<'_>| header.name() == "www-authenticate";
                let challenges: Vec<_> = headers
                    .iter()
                    .filter(|header| is_challenge(header))
                    .map(|header| header.value().clone())
                    .collect();
                headers.retain(|header| !is_challenge(header));
                Ok(Decision::Challenge(Challenge {
                    challenges,
                    headers,
                    body,
                    reason: None,
                }))
            }
            400..=599 => Ok(Decision::Block(Block {
                status: Some(status),
                headers,
                body,
                reason: None,
            })),
            _ => Err(bad(status, "which is no answer for a client")),
        }
    }
}

/// The whole of a body of at most `limit` bytes.
pub(crate) async fn limited_body<B>(body: B, limit: u64) -> Result<Bytes, CallError>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (bytes, _) = limited_body_with_trailers(body, limit).await?;
    Ok(bytes)
}

/// The same with the trailers.
pub(crate) async fn limited_body_with_trailers<B>(
    body: B,
    limit: u64,
) -> Result<(Bytes, Option<HeaderMap>), CallError>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let collected = Limited::new(body, limit).collect().await;
    let collected = collected.map_err(|error| CallError::BadReply(error.to_string()))?;
    let trailers = collected.trailers().cloned();
    Ok((collected.to_bytes(), trailers))
}

fn bad(status: u16, what: impl Display) -> CallError {
    CallError::BadReply(format!("status {status}, {what}"))
}
