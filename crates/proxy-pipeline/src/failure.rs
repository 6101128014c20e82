//! Conversion of every failure into a problem.

pub(crate) mod panic;
pub(crate) mod refused_head;

use crate::headers::http2_fields::{InvalidField, check_field};
use crate::upload::request_body::RequestBodyError;
use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use proxy_clock::Timer;
use proxy_errors::{Detail, Problem, Reason};
use proxy_framing::FramingError;
use proxy_pool::{ConnectError, Http2RequestError, SendError};
use proxy_tls::{TlsFailure, VerifyFailure, classify_io, io_error_text};
use std::io;
use std::time::Duration;

/// The problem of a framing error of the client.
#[must_use]
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "faults other than limits are distinguished below"
)]
pub fn framing_problem(fault: FramingError) -> Problem {
    let limit = |reason, actual: u32, limit: u32| {
        let (current, limit) = (u64::from(actual), u64::from(limit));
        Problem::new(reason, Detail::Limit { current, limit })
    };
    match fault {
        // The target has a fixed limit.
        FramingError::TargetSize { actual, limit: max } => {
            limit(Reason::HeaderSizeLimit, actual, max).without_setting()
        }
        FramingError::HeaderSize { actual, limit: max } => {
            limit(Reason::HeaderSizeLimit, actual, max)
        }
        FramingError::HeaderCount { actual, limit: max } => {
            limit(Reason::HeaderCountLimit, actual, max)
        }
        FramingError::NameSize { actual, limit: max } => {
            limit(Reason::HeaderNameLimit, actual, max)
        }
        FramingError::ValueSize { actual, limit: max } => {
            limit(Reason::HeaderValueLimit, actual, max)
        }
        fault => Problem::new(request_reason(fault), Detail::text(fault.to_string())),
    }
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the other faults occur in responses only"
)]
fn request_reason(fault: FramingError) -> Reason {
    match fault {
        FramingError::BareLf => Reason::BareLf,
        FramingError::BareCr => Reason::BareCr,
        FramingError::NulByte => Reason::NulByte,
        FramingError::ObsFold | FramingError::SpaceBeforeFields => Reason::ObsFold,
        FramingError::SpaceBeforeColon => Reason::SpaceBeforeColon,
        FramingError::EmptyName | FramingError::BadNameByte => Reason::BadHeaderName,
        FramingError::ControlByteInValue => Reason::BadHeaderValue,
        FramingError::MissingHost => Reason::MissingHost,
        FramingError::RepeatedHost => Reason::RepeatedHost,
        FramingError::BadHost => Reason::InvalidHost,
        FramingError::ConflictingContentLength | FramingError::RepeatedContentLength => {
            Reason::ConflictingContentLength
        }
        FramingError::BadContentLength => Reason::BadContentLength,
        FramingError::ContentLengthWithTransferEncoding => {
            Reason::ContentLengthWithTransferEncoding
        }
        FramingError::TransferEncodingNotChunked | FramingError::TransferEncodingInHttp10 => {
            Reason::BadTransferEncoding
        }
        FramingError::BadChunkSize
        | FramingError::BadChunkExtension
        | FramingError::ChunkDataNotTerminated => Reason::BadChunk,
        FramingError::BadTrailer => Reason::BadTrailer,
        _ => Reason::BadRequestLine,
    }
}

/// The problem of a request head from HTTP/2 that HTTP/1.1 cannot represent.
#[cold]
pub(crate) fn unfit_request(unfit: InvalidField, headers: &HeaderMap) -> Problem {
    let reason = match unfit {
        InvalidField::Name => Reason::BadHeaderName,
        InvalidField::Value => Reason::BadHeaderValue,
        InvalidField::Length => Reason::BadContentLength,
        InvalidField::Lengths => Reason::ConflictingContentLength,
    };
    let problem = Problem::new(reason, Detail::None);
    let mut fields = headers.iter();
    let field = match unfit {
        InvalidField::Length | InvalidField::Lengths => Some(&CONTENT_LENGTH),
        InvalidField::Name | InvalidField::Value => fields
            .find(|(name, value)| check_field(name, value).is_err())
            .map(|(name, _)| name),
    };
    match field {
        Some(name) => problem.with_field(name.as_str()),
        None => problem,
    }
}

/// The problem of a response head from HTTP/2 that HTTP/1.1 cannot represent.
pub(crate) fn unfit_response(unfit: InvalidField, upstream: &str) -> Problem {
    let reason = match unfit {
        InvalidField::Name | InvalidField::Value => Reason::BadResponseHeader,
        InvalidField::Length | InvalidField::Lengths => Reason::ResponseConflictingLength,
    };
    Problem::new(reason, Detail::name(upstream))
}

/// The problem of a failed connection attempt.
pub(crate) fn connect_problem(fault: &ConnectError, upstream: &str, target: &str) -> Problem {
    let named = |text: String| Detail::named(upstream, text);
    match fault {
        ConnectError::NoAddress => {
            Problem::new(Reason::DnsFailed, named(format!("{target}: {fault}")))
        }
        ConnectError::LimitReached { .. } => {
            Problem::new(Reason::NoFreeConnection, named(fault.to_string()))
                .with_setting("upstreams.upstream.connection-pool.max-connections")
        }
        ConnectError::NoDescriptor(_) => {
            Problem::new(Reason::NoFreeConnection, named(fault.to_string()))
        }
        ConnectError::TimedOut { timer, after } => timeout_problem(*timer, *after),
        ConnectError::Io(error) => Problem::new(connect_reason(error), named(error.to_string())),
        ConnectError::Tls(error) => Problem::new(tls_reason(error), named(io_error_text(error))),
    }
}

/// Description of the failed connection attempt, for operators.
pub fn connect_failure_text(fault: &ConnectError) -> String {
    match fault {
        ConnectError::Io(error) => error.to_string(),
        ConnectError::Tls(error) => format!("tls handshake: {}", io_error_text(error)),
        ConnectError::NoAddress
        | ConnectError::LimitReached { .. }
        | ConnectError::NoDescriptor(_)
        | ConnectError::TimedOut { .. } => fault.to_string(),
    }
}

fn connect_reason(error: &io::Error) -> Reason {
    #[expect(clippy::wildcard_enum_match_arm, reason = "io::ErrorKind grows")]
    match error.kind() {
        io::ErrorKind::ConnectionRefused => Reason::ConnectRefused,
        io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::UnexpectedEof => Reason::ConnectReset,
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
            Reason::ConnectUnreachable
        }
        io::ErrorKind::TimedOut => Reason::ConnectTimeout,
        _ => Reason::ConnectFailed,
    }
}

fn tls_reason(error: &io::Error) -> Reason {
    match classify_io(error) {
        Some(TlsFailure::Verify(VerifyFailure::KeyNotPinned)) => Reason::TlsPinMismatch,
        Some(TlsFailure::Verify(_)) => Reason::TlsVerifyFailed,
        Some(
            TlsFailure::Alert(_)
            | TlsFailure::Incompatible
            | TlsFailure::NotTls
            | TlsFailure::Protocol
            | TlsFailure::Local,
        )
        | None => Reason::TlsHandshakeFailed,
    }
}

/// The problem of a request without a complete response. `unread` is the framing error of an
/// HTTP/1.x client, which has precedence over the upstream's failure.
pub(crate) fn exchange_problem(
    fault: &SendError,
    upstream: &str,
    body: Option<RequestBodyError>,
    unread: Option<FramingError>,
) -> Problem {
    match (body, unread) {
        (Some(RequestBodyError::BodyAborted), Some(fault)) => framing_problem(fault),
        (body, _) => send_problem(fault, upstream, body),
    }
}

fn send_problem(fault: &SendError, upstream: &str, body: Option<RequestBodyError>) -> Problem {
    let named = |text: String| Detail::named(upstream, text);
    match (fault, body) {
        (
            _,
            Some(RequestBodyError::TooLarge {
                seen,
                limit,
                setting,
            }),
        ) => {
            let current = seen;
            let problem = Problem::new(Reason::BodySizeLimit, Detail::Limit { current, limit });
            problem.with_setting(setting)
        }
        (
            _,
            Some(RequestBodyError::Trailers {
                reason,
                current,
                limit,
            }),
        ) => Problem::new(reason, Detail::Limit { current, limit }),
        (_, Some(RequestBodyError::BodyAborted)) => {
            Problem::new(Reason::ClientAborted, Detail::None)
        }
        (_, Some(RequestBodyError::Malformed(reason))) => malformed_body(reason),
        (SendError::TimedOut { timer, after }, None) => timeout_problem(*timer, *after),
        (SendError::BadResponse(fault), None) => {
            Problem::new(response_reason(*fault), named(fault.to_string()))
        }
        (SendError::Closed(Some(error)), None) => Problem::new(
            if error.kind() == io::ErrorKind::ConnectionReset {
                Reason::UpstreamReset
            } else {
                Reason::UpstreamClosedEarly
            },
            named(error.to_string()),
        ),
        (SendError::Closed(None) | SendError::BrokenHead | SendError::UnsentRequest, None) => {
            Problem::new(Reason::UpstreamClosedEarly, named(fault.to_string()))
        }
        // The body ended early, and no other reason is known.
        (
            SendError::RequestBody | SendError::Http2Request(Http2RequestError::RequestBody),
            None,
        ) => Problem::new(Reason::ClientAborted, Detail::None),
        (SendError::Http2Request(fault), None) => {
            Problem::new(call_reason(fault), named(call_text(fault)))
        }
    }
}

/// The problem of a request body or trailers that violate HTTP/2 or HTTP/3, by `reason`. [RFC 9113
/// §8.1.1, RFC 9114 §4.1.2]
pub(crate) fn malformed_body(reason: Reason) -> Problem {
    let detail = Detail::text("the request's body or its trailers are malformed");
    Problem::new(reason, detail)
}

/// The reason why an HTTP/2 request has no response.
fn call_reason(fault: &Http2RequestError) -> Reason {
    match fault {
        Http2RequestError::Unprocessed(error) if error.is_io() => Reason::UpstreamClosedEarly,
        Http2RequestError::Unprocessed(_) => Reason::UpstreamRefusedStream,
        Http2RequestError::Broken(error) if error.is_io() => Reason::UpstreamClosedEarly,
        Http2RequestError::Broken(error) if error.is_remote() => Reason::UpstreamReset,
        Http2RequestError::Broken(error) if error.is_library() => Reason::UpstreamHttp2Error,
        // HTTP/2 cannot carry the request, or the proxy has reset it.
        Http2RequestError::Broken(_) => Reason::InternalError,
        Http2RequestError::RequestBody => Reason::ClientAborted,
        Http2RequestError::TooManyInformational => Reason::TooManyInformational,
        Http2RequestError::UnaskedUpgrade => Reason::UnaskedUpgrade,
    }
}

fn call_text(fault: &Http2RequestError) -> String {
    match fault {
        Http2RequestError::Unprocessed(error) | Http2RequestError::Broken(error) => {
            error.to_string()
        }
        Http2RequestError::RequestBody
        | Http2RequestError::TooManyInformational
        | Http2RequestError::UnaskedUpgrade => fault.to_string(),
    }
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "what is left are faults in a response's fields"
)]
fn response_reason(fault: FramingError) -> Reason {
    match fault {
        FramingError::BadStatusLine
        | FramingError::BadStatusCode
        | FramingError::BadVersion
        | FramingError::UnexpectedData => Reason::BadStatusLine,
        FramingError::TooManyInformational => Reason::TooManyInformational,
        FramingError::UnaskedUpgrade => Reason::UnaskedUpgrade,
        FramingError::Truncated => Reason::ResponseTruncated,
        FramingError::ConflictingContentLength
        | FramingError::RepeatedContentLength
        | FramingError::BadContentLength
        | FramingError::ContentLengthWithTransferEncoding => Reason::ResponseConflictingLength,
        FramingError::TransferEncodingNotChunked
        | FramingError::TransferEncodingInHttp10
        | FramingError::BadChunkSize
        | FramingError::BadChunkExtension
        | FramingError::ChunkDataNotTerminated
        | FramingError::BadTrailer => Reason::ResponseBadChunk,
        FramingError::HeaderSize { .. }
        | FramingError::HeaderCount { .. }
        | FramingError::NameSize { .. }
        | FramingError::ValueSize { .. }
        | FramingError::TargetSize { .. } => Reason::UpstreamHeaderTooLarge,
        _ => Reason::BadResponseHeader,
    }
}

/// The problem of an expired timer.
#[must_use]
pub fn timeout_problem(timer: Timer, after: Duration) -> Problem {
    Problem::new(timeout_reason(timer), Detail::After(after))
}

/// The length of the expired timer; zero for any other problem.
pub(crate) fn waited(problem: &Problem) -> Duration {
    match problem.detail() {
        Detail::After(time) => *time,
        Detail::None
        | Detail::Text(_)
        | Detail::Named { .. }
        | Detail::Limit { .. }
        | Detail::LimitAtLeast { .. } => Duration::ZERO,
    }
}

pub(crate) const fn timeout_reason(timer: Timer) -> Reason {
    match timer {
        Timer::Handshake => Reason::ClientTlsFailed,
        Timer::RequestHeader | Timer::KeepAlive | Timer::Linger => Reason::RequestHeaderTimeout,
        Timer::RequestBody => Reason::RequestBodyTimeout,
        Timer::ResponseWrite => Reason::ClientWriteTimeout,
        Timer::UpstreamConnect => Reason::ConnectTimeout,
        Timer::UpstreamWrite => Reason::UpstreamWriteTimeout,
        Timer::ResponseHeader => Reason::ResponseHeaderTimeout,
        Timer::ResponseBody => Reason::ResponseReadTimeout,
        Timer::TunnelIdle => Reason::TunnelIdleTimeout,
        Timer::Agent => Reason::AgentTimeout,
        Timer::FileRead => Reason::StaticReadTimeout,
        Timer::Total => Reason::RequestTimeout,
    }
}
