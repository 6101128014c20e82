//! One check of one target.

use crate::connection::{connect, send};
use crate::error::CheckError;
use crate::settings::{Check, ProbeSettings};
use crate::{grpc, models};
use bytes::Bytes;
use http::header::{CONNECTION, HOST, USER_AGENT};
use http::request::Builder;
use http::{Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use std::net::SocketAddr;
use std::ops::RangeInclusive;

/// Longest body that is read of an answer, in bytes.
const MAX_BODY_BYTES: usize = 4 * 1024 * 1024;

const AGENT: &str = "proxyd-health-check";

/// Probes a target once, within the timeout of its settings.
///
/// # Errors
///
/// [`CheckError`] with the reason why the target does not pass.
pub async fn check(
    address: Option<SocketAddr>,
    settings: &ProbeSettings,
) -> Result<(), CheckError> {
    let asking = ask(address, settings);
    let answered = tokio::time::timeout(settings.timing.timeout, asking).await;
    answered.unwrap_or(Err(CheckError::TimedOut))
}

async fn ask(address: Option<SocketAddr>, settings: &ProbeSettings) -> Result<(), CheckError> {
    let transport = connect(address, settings).await?;
    match &settings.check {
        Check::Tcp => Ok(()),
        Check::Http {
            path,
            expected,
            host,
        } => {
            let host = host.as_deref().unwrap_or(&settings.authority);
            let request = get(settings, path, host)?;
            let (response, _connection) = send(transport, request, settings.http2).await?;
            expect(response.status(), expected)
        }
        Check::Answer => {
            let host = &settings.authority;
            let request = by_http1(Method::OPTIONS, "*", host)?.body(Full::default())?;
            let (_, _connection) = send(transport, request, false).await?;
            Ok(())
        }
        Check::Inference {
            endpoint,
            expected_models,
        } => {
            let request = get(settings, endpoint, &settings.authority)?;
            let (response, _connection) = send(transport, request, settings.http2).await?;
            expect(response.status(), &(200..=299))?;
            let body = whole(response.into_body()).await?.0;
            models::check(&body, expected_models)
        }
        Check::Grpc { service } => {
            let request = grpc::request(service, &authority(settings, &settings.authority))?;
            let (response, _connection) = send(transport, request, true).await?;
            expect(response.status(), &(200..=200))?;
            let headers = response.headers().clone();
            let (body, trailers) = whole(response.into_body()).await?;
            grpc::check(&headers, &body, trailers.as_ref())
        }
    }
}

pub(crate) fn get(
    settings: &ProbeSettings,
    path: &str,
    host: &str,
) -> Result<Request<Full<Bytes>>, http::Error> {
    let request = if settings.http2 {
        let request = Request::builder().method(Method::GET);
        let request = request.header(USER_AGENT, AGENT);
        request.uri(format!("{}{path}", authority(settings, host)))
    } else {
        by_http1(Method::GET, path, host)?
    };
    request.body(Full::default())
}

fn by_http1(method: Method, path: &str, host: &str) -> Result<Builder, http::Error> {
    let path: Uri = path.parse()?;
    let request = Request::builder().method(method).uri(path);
    let request = request.header(USER_AGENT, AGENT).header(HOST, host);
    Ok(request.header(CONNECTION, "close"))
}

/// The scheme and the authority of requests by HTTP/2.
fn authority(settings: &ProbeSettings, host: &str) -> String {
    let scheme = if settings.tls.is_some() {
        "https"
    } else {
        "http"
    };
    format!("{scheme}://{host}")
}

pub(crate) fn expect(status: StatusCode, expected: &RangeInclusive<u16>) -> Result<(), CheckError> {
    if expected.contains(&status.as_u16()) {
        return Ok(());
    }
    Err(CheckError::Status {
        status,
        expected: expected.clone(),
    })
}

/// A body of at most [`MAX_BODY_BYTES`], and its trailers.
pub(crate) async fn whole(body: Incoming) -> Result<(Bytes, Option<http::HeaderMap>), CheckError> {
    let collected = Limited::new(body, MAX_BODY_BYTES).collect().await;
    let collected = collected.map_err(|error| {
        debug_assert!(error.is::<LengthLimitError>() || error.is::<hyper::Error>());
        CheckError::Body(error)
    })?;
    let trailers = collected.trailers().cloned();
    Ok((collected.to_bytes(), trailers))
}
