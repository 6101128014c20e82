//! Error responses to malformed requests.

use crate::answer::correlation;
use crate::answer::{add_common, local_reply};
use http::HeaderValue;
use proxy_errors::{Detail, ErrorType, Problem, Reason};
use proxy_framing::FramingError;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

/// Maximum time for sending the response and closing.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum number of received bytes to discard, so that closing does not reset the connection
/// before the client has read the response.
const MAX_UNREAD_BYTES: u64 = 64 * 1024;

/// Describes a malformed head.
pub(crate) fn framing_problem(fault: FramingError) -> Problem {
    if let Some(problem) = limit_problem(fault) {
        return problem;
    }
    // Reasons with the same meaning have the same name in both enumerations.
    let known = Reason::ALL.iter().copied();
    let mut known = known.filter(|reason| reason.error_type() == ErrorType::Parse);
    let reason = known.find(|reason| reason.as_str() == fault.as_str());
    let reason = reason.unwrap_or(Reason::BadRequestLine);
    Problem::new(reason, Detail::text(fault.to_string()))
}

/// Describes a head above the fixed limits.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "other faults are not limits"
)]
fn limit_problem(fault: FramingError) -> Option<Problem> {
    let (reason, actual, limit) = match fault {
        FramingError::TargetSize { actual, limit } | FramingError::HeaderSize { actual, limit } => {
            (Reason::HeaderSizeLimit, actual, limit)
        }
        FramingError::HeaderCount { actual, limit } => (Reason::HeaderCountLimit, actual, limit),
        FramingError::NameSize { actual, limit } => (Reason::HeaderNameLimit, actual, limit),
        FramingError::ValueSize { actual, limit } => (Reason::HeaderValueLimit, actual, limit),
        _ => return None,
    };
    let (current, limit) = (u64::from(actual), u64::from(limit));
    Some(Problem::new(reason, Detail::Limit { current, limit }).without_setting())
}

/// Responds with `problem`, under the client's correlation ID `id` if there is one, and closes.
pub(crate) async fn refuse<S>(mut stream: S, problem: &Problem, id: Option<&[u8]>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let id = id.and_then(|id| HeaderValue::from_bytes(id).ok());
    let answer = bytes(problem, &id.unwrap_or_else(correlation::fresh));
    let closing = async {
        stream.write_all(&answer).await?;
        close(stream).await
    };
    // A timeout is ignored: the client did not read the response.
    drop(timeout(CLOSE_TIMEOUT, closing).await);
}

/// Closes after reading pending bytes: unread ones would reset the connection, and lose the
/// response.
pub(crate) async fn close<S>(mut stream: S) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    stream.shutdown().await?;
    let mut rest = stream.take(MAX_UNREAD_BYTES);
    tokio::io::copy(&mut rest, &mut tokio::io::sink()).await?;
    Ok(())
}

fn bytes(problem: &Problem, id: &HeaderValue) -> Vec<u8> {
    let mut reply = local_reply(problem, id);
    add_common(&mut reply.headers, id);
    reply.to_closing_message()
}
