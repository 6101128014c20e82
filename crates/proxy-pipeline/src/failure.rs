//! Every way in which a request is not served, as the problem it is told as.

use crate::policy::http2_fields::{Unfit, check_field};
use crate::request_body::BodyFault;
use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use proxy_clock::Timer;
use proxy_errors::{Detail, Problem, Reason};
use proxy_framing::Fault;
use proxy_pool::{CallFault, ConnectFault, SendFault};
use proxy_tls::{TlsFailure, classify_io, io_error_text};
use std::io;
use std::time::Duration;

/// What a client sent is no request, or one that is too large.
#[must_use]
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "faults other than limits are told apart below"
)]
pub fn framing_problem(fault: Fault) -> Problem {
    let limit = |reason, actual: u32, limit: u32| {
        let (current, limit) = (u64::from(actual), u64::from(limit));
        Problem::new(reason, Detail::Limit { current, limit })
    };
    match fault {
        // Of the target, which has a bound of its own.
        Fault::TargetSize { actual, limit: max } => {
            limit(Reason::HeaderSizeLimit, actual, max).without_setting()
        }
        Fault::HeaderSize { actual, limit: max } => limit(Reason::HeaderSizeLimit, actual, max),
        Fault::HeaderCount { actual, limit: max } => limit(Reason::HeaderCountLimit, actual, max),
        Fault::NameSize { actual, limit: max } => limit(Reason::HeaderNameLimit, actual, max),
        Fault::ValueSize { actual, limit: max } => limit(Reason::HeaderValueLimit, actual, max),
        fault => Problem::new(request_reason(fault), Detail::text(fault.to_string())),
    }
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "faults that only a response can have are no client's"
)]
fn request_reason(fault: Fault) -> Reason {
    match fault {
        Fault::BareLf => Reason::BareLf,
        Fault::BareCr => Reason::BareCr,
        Fault::NulByte => Reason::NulByte,
        Fault::ObsFold | Fault::SpaceBeforeFields => Reason::ObsFold,
        Fault::SpaceBeforeColon => Reason::SpaceBeforeColon,
        Fault::EmptyName | Fault::BadNameByte => Reason::BadHeaderName,
        Fault::ControlByteInValue => Reason::BadHeaderValue,
        Fault::MissingHost => Reason::MissingHost,
        Fault::RepeatedHost => Reason::RepeatedHost,
        Fault::BadHost => Reason::InvalidHost,
        Fault::ConflictingContentLength | Fault::RepeatedContentLength => {
            Reason::ConflictingContentLength
        }
        Fault::BadContentLength => Reason::BadContentLength,
        Fault::ContentLengthWithTransferEncoding => Reason::ContentLengthWithTransferEncoding,
        Fault::TransferEncodingNotChunked | Fault::TransferEncodingInHttp10 => {
            Reason::BadTransferEncoding
        }
        Fault::BadChunkSize | Fault::BadChunkExtension | Fault::ChunkDataNotTerminated => {
            Reason::BadChunk
        }
        Fault::BadTrailer => Reason::BadTrailer,
        _ => Reason::BadRequestLine,
    }
}

/// A request's head came by HTTP/2 and could not go on by HTTP/1.1.
#[cold]
pub(crate) fn unfit_request(unfit: Unfit, headers: &HeaderMap) -> Problem {
    let reason = match unfit {
        Unfit::Name => Reason::BadHeaderName,
        Unfit::Value => Reason::BadHeaderValue,
        Unfit::Length => Reason::BadContentLength,
        Unfit::Lengths => Reason::ConflictingContentLength,
    };
    let problem = Problem::new(reason, Detail::None);
    let mut fields = headers.iter();
    let field = match unfit {
        Unfit::Length | Unfit::Lengths => Some(&CONTENT_LENGTH),
        Unfit::Name | Unfit::Value => fields
            .find(|(name, value)| check_field(name, value).is_err())
            .map(|(name, _)| name),
    };
    match field {
        Some(name) => problem.with_field(name.as_str()),
        None => problem,
    }
}

/// The same for a response's.
pub(crate) fn unfit_response(unfit: Unfit, upstream: &str) -> Problem {
    let reason = match unfit {
        Unfit::Name | Unfit::Value => Reason::BadResponseHeader,
        Unfit::Length | Unfit::Lengths => Reason::ResponseConflictingLength,
    };
    Problem::new(reason, Detail::name(upstream))
}

/// No connection to a target came about.
pub(crate) fn connect_problem(fault: &ConnectFault, upstream: &str, target: &str) -> Problem {
    let named = |text: String| Detail::named(upstream, text);
    match fault {
        ConnectFault::NoAddress => {
            Problem::new(Reason::DnsFailed, named(format!("{target}: {fault}")))
        }
        ConnectFault::Full { .. } => {
            Problem::new(Reason::NoFreeConnection, named(fault.to_string()))
        }
        ConnectFault::TimedOut { timer, after } => timeout_problem(*timer, *after),
        ConnectFault::Io(error) => Problem::new(connect_reason(error), named(error.to_string())),
        ConnectFault::Tls(error) => Problem::new(tls_reason(error), named(io_error_text(error))),
    }
}

fn connect_reason(error: &io::Error) -> Reason {
    #[expect(clippy::wildcard_enum_match_arm, reason = "io::ErrorKind grows")]
    match error.kind() {
        io::ErrorKind::ConnectionRefused => Reason::ConnectRefused,
        io::ErrorKind::ConnectionReset => Reason::ConnectReset,
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
            Reason::ConnectUnreachable
        }
        io::ErrorKind::TimedOut => Reason::ConnectTimeout,
        _ => Reason::ConnectFailed,
    }
}

fn tls_reason(error: &io::Error) -> Reason {
    match classify_io(error) {
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

/// A request that was given to a connection has no response, or half of one. `unread` is what was wrong
/// with the bytes of an HTTP/1.x client, if anything was: then no upstream is to blame.
pub(crate) fn exchange_problem(
    fault: &SendFault,
    upstream: &str,
    body: Option<BodyFault>,
    unread: Option<Fault>,
) -> Problem {
    match (body, unread) {
        (Some(BodyFault::CutOff), Some(fault)) => framing_problem(fault),
        (body, _) => send_problem(fault, upstream, body),
    }
}

fn send_problem(fault: &SendFault, upstream: &str, body: Option<BodyFault>) -> Problem {
    let named = |text: String| Detail::named(upstream, text);
    match (fault, body) {
        (_, Some(BodyFault::TooLarge { seen, limit })) => {
            let current = seen;
            Problem::new(Reason::BodySizeLimit, Detail::Limit { current, limit })
        }
        (_, Some(BodyFault::CutOff)) => Problem::new(Reason::ClientAborted, Detail::None),
        (_, Some(BodyFault::Malformed)) => malformed_body(),
        (SendFault::TimedOut { timer, after }, None) => timeout_problem(*timer, *after),
        (SendFault::BadResponse(fault), None) => {
            Problem::new(response_reason(*fault), named(fault.to_string()))
        }
        (SendFault::Closed(Some(error)), None) => Problem::new(
            if error.kind() == io::ErrorKind::ConnectionReset {
                Reason::UpstreamReset
            } else {
                Reason::UpstreamClosedEarly
            },
            named(error.to_string()),
        ),
        (SendFault::Closed(None) | SendFault::Unsent | SendFault::RequestBody, None) => {
            Problem::new(Reason::UpstreamClosedEarly, named(fault.to_string()))
        }
        (SendFault::Call(fault), None) => Problem::new(call_reason(fault), named(call_text(fault))),
    }
}

/// A request's body, or what came behind it, is none by HTTP/2. [RFC 9113 §8.1.1]
pub(crate) fn malformed_body() -> Problem {
    let detail = Detail::text("the request's body or its trailers are malformed");
    Problem::new(Reason::Http2ProtocolError, detail)
}

/// Why a request by HTTP/2 has no response.
fn call_reason(fault: &CallFault) -> Reason {
    match fault {
        CallFault::Unprocessed(error) if error.is_io() => Reason::UpstreamClosedEarly,
        CallFault::Unprocessed(_) => Reason::UpstreamRefusedStream,
        CallFault::Broken(error) if error.is_io() => Reason::UpstreamClosedEarly,
        CallFault::Broken(error) if error.is_remote() => Reason::UpstreamReset,
        CallFault::Broken(_) => Reason::UpstreamHttp2Error,
        CallFault::RequestBody => Reason::UpstreamClosedEarly,
        CallFault::TooManyInformational => Reason::TooManyInformational,
    }
}

fn call_text(fault: &CallFault) -> String {
    match fault {
        CallFault::Unprocessed(error) | CallFault::Broken(error) => error.to_string(),
        CallFault::RequestBody | CallFault::TooManyInformational => fault.to_string(),
    }
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "what is left are faults in a response's fields"
)]
fn response_reason(fault: Fault) -> Reason {
    match fault {
        Fault::BadStatusLine | Fault::BadStatusCode | Fault::BadVersion | Fault::UnexpectedData => {
            Reason::BadStatusLine
        }
        Fault::TooManyInformational => Reason::TooManyInformational,
        Fault::UnaskedUpgrade => Reason::UnaskedUpgrade,
        Fault::Truncated => Reason::ResponseTruncated,
        Fault::ConflictingContentLength
        | Fault::RepeatedContentLength
        | Fault::BadContentLength
        | Fault::ContentLengthWithTransferEncoding => Reason::ResponseConflictingLength,
        Fault::TransferEncodingNotChunked
        | Fault::TransferEncodingInHttp10
        | Fault::BadChunkSize
        | Fault::BadChunkExtension
        | Fault::ChunkDataNotTerminated
        | Fault::BadTrailer => Reason::ResponseBadChunk,
        Fault::HeaderSize { .. }
        | Fault::HeaderCount { .. }
        | Fault::NameSize { .. }
        | Fault::ValueSize { .. }
        | Fault::TargetSize { .. } => Reason::UpstreamHeaderTooLarge,
        _ => Reason::BadResponseHeader,
    }
}

/// A timer ran out.
#[must_use]
pub fn timeout_problem(timer: Timer, after: Duration) -> Problem {
    Problem::new(timeout_reason(timer), Detail::After(after))
}

/// The time after which a timer ran out; zero for any other problem.
pub(crate) fn waited(problem: &Problem) -> Duration {
    match problem.detail() {
        Detail::After(time) => *time,
        Detail::None | Detail::Text(_) | Detail::Named { .. } | Detail::Limit { .. } => {
            Duration::ZERO
        }
    }
}

/// The reason that stands for a timer.
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
        Timer::FileRead => Reason::StaticReadTimeout,
        Timer::Total => Reason::RequestTimeout,
    }
}
