//! Handling of requests: admission, body, parameters, idempotency, common response headers.

pub(crate) mod admission;
pub(crate) mod answer;
pub(crate) mod body;
pub(crate) mod credential;
pub(crate) mod extract;
pub(crate) mod idempotency;
pub(crate) mod object;
pub(crate) mod page;
