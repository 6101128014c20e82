//! The answer to what is no request.

use crate::answer::{add_common, tell};
use crate::correlation;
use http::HeaderMap;
use http::header::{CONNECTION, HeaderValue};
use proxy_errors::{Detail, ErrorType, Problem, Reason, status_text};
use proxy_framing::{FramingError, FramingErrorKind};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

/// How long telling and closing may take.
const CLOSING_TIME: Duration = Duration::from_secs(2);

/// Most bytes that are read and thrown away, so that the caller gets to see the answer.
const MOST_UNREAD: u64 = 64 * 1024;

/// What is said of a head that is no request's.
pub(crate) fn framing_problem(fault: FramingError) -> Problem {
    if fault.group() == FramingErrorKind::Limit {
        return Problem::new(Reason::HeaderSizeLimit, Detail::text(fault.to_string()));
    }
    // Where both sets have a word for it, it is the same word.
    let known = Reason::ALL.iter().copied();
    let mut known = known.filter(|reason| reason.error_type() == ErrorType::Parse);
    let reason = known.find(|reason| reason.as_str() == fault.as_str());
    let reason = reason.unwrap_or(Reason::BadRequestLine);
    Problem::new(reason, Detail::text(fault.to_string()))
}

/// Answers with `problem` and closes. The caller's own ID is kept if there is one.
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
    // A caller that does not wait for the answer does not need it.
    drop(timeout(CLOSING_TIME, closing).await);
}

/// Ends the stream so that what was written arrives: a close with bytes unread would cut it off.
pub(crate) async fn close<S>(mut stream: S) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    stream.shutdown().await?;
    let mut rest = stream.take(MOST_UNREAD);
    tokio::io::copy(&mut rest, &mut tokio::io::sink()).await?;
    Ok(())
}

fn bytes(problem: &Problem, id: &HeaderValue) -> Vec<u8> {
    let mut headers = HeaderMap::new();
    let body = tell(problem, id, &mut headers);
    add_common(&mut headers, id);
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    let (status, text) = (problem.status().as_u16(), status_text(problem.status()));
    let mut answer = format!("HTTP/1.1 {status} {text}\r\n").into_bytes();
    for (name, value) in &headers {
        let line = [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"];
        answer.extend_from_slice(&line.concat());
    }
    answer.extend_from_slice(b"\r\n");
    answer.extend_from_slice(&body);
    answer
}
