//! The gRPC health protocol: one request and one answer, `grpc.health.v1.Health/Check`.
//!
//! Its two messages have one field each, so they are read and written here.
//! [<https://github.com/grpc/grpc/blob/master/doc/health-checking.md>]

use crate::error::CheckError;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, TE};
use http::{HeaderMap, Method, Request};
use http_body_util::Full;

/// Bytes before a message: whether it is compressed, and its length.
const PREFIX_BYTES: usize = 5;

/// `status` of the answer: SERVING.
const SERVING: u64 = 1;

/// The request to a server at `authority`, such as `http://10.0.0.1:80`.
pub(crate) fn request(service: &str, authority: &str) -> Result<Request<Full<Bytes>>, http::Error> {
    let mut message = Vec::new();
    if !service.is_empty() {
        // Field 1, of a length.
        message.push(1 << 3 | 2);
        write_varint(&mut message, service.len() as u64);
        message.extend_from_slice(service.as_bytes());
    }
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    let mut body = vec![0];
    body.extend_from_slice(&length.to_be_bytes());
    body.extend_from_slice(&message);
    Request::builder()
        .method(Method::POST)
        .uri(format!("{authority}/grpc.health.v1.Health/Check"))
        .header(CONTENT_TYPE, "application/grpc")
        .header(TE, "trailers")
        .body(Full::new(body.into()))
}

/// Checks an answer: gRPC status 0, and SERVING. A refusal has its status in `headers`.
pub(crate) fn check(
    headers: &HeaderMap,
    body: &[u8],
    trailers: Option<&HeaderMap>,
) -> Result<(), CheckError> {
    let status = trailers
        .and_then(|trailers| trailers.get("grpc-status"))
        .or_else(|| headers.get("grpc-status"));
    let status = status.map_or("missing", |status| status.to_str().unwrap_or_default());
    if status != "0" {
        return Err(CheckError::GrpcStatus(status.to_owned()));
    }
    match serving_status(body) {
        Some(SERVING) => Ok(()),
        Some(_) | None => Err(CheckError::NotServing),
    }
}

/// Field 1 of the one message in `body`; 0 if it is left out.
fn serving_status(body: &[u8]) -> Option<u64> {
    let mut message = body.get(PREFIX_BYTES..)?;
    let mut status = 0;
    while !message.is_empty() {
        let key = read_varint(&mut message)?;
        match key & 7 {
            0 => {
                let value = read_varint(&mut message)?;
                if key >> 3 == 1 {
                    status = value;
                }
            }
            2 => {
                let length = usize::try_from(read_varint(&mut message)?).ok()?;
                message = message.get(length..)?;
            }
            1 => message = message.get(8..)?,
            5 => message = message.get(4..)?,
            _ => return None,
        }
    }
    Some(status)
}

fn write_varint(out: &mut Vec<u8>, mut value: u64) {
    let low = |value: u64| u8::try_from(value & 0x7f).unwrap_or_default();
    while value > 0x7f {
        out.push(low(value) | 0x80);
        value >>= 7;
    }
    out.push(low(value));
}

fn read_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(body: &[u8], status: &'static str) -> Result<(), String> {
        let trailers =
            HeaderMap::from_iter([("grpc-status".parse().unwrap(), status.parse().unwrap())]);
        let checked = check(&HeaderMap::new(), body, Some(&trailers));
        checked.map_err(|error| error.to_string())
    }

    #[test]
    fn only_serving_is_well() {
        assert_eq!(outcome(&[0, 0, 0, 0, 2, 8, 1], "0"), Ok(()));
        // An unknown field is first.
        assert_eq!(outcome(&[0, 0, 0, 0, 6, 18, 2, 7, 7, 8, 1], "0"), Ok(()));
        let not_serving = Err("the gRPC health service does not say SERVING".to_owned());
        for body in [
            &[0, 0, 0, 0, 2, 8, 2][..],
            &[0, 0, 0, 0, 0],
            &[0, 0],
            &[0, 0, 0, 0, 2, 8, 129],
        ] {
            assert_eq!(outcome(body, "0"), not_serving, "{body:?}");
        }
        let unknown = Err("gRPC status 5".to_owned());
        assert_eq!(outcome(&[0, 0, 0, 0, 2, 8, 1], "5"), unknown);
    }
}
