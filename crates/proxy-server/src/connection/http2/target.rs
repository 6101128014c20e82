//! Request targets that the HTTP/2 library received in another form than the client sent.

use super::session::Session;
use bytes::Bytes;
use http::{Request, Uri};
use proxy_http1::RawTarget;

/// The target cannot be written as a URI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UnfitTarget;

/// Restores the target of `request` as sent, in the form of an HTTP/1.1 request: raw in the
/// extensions, and escaped in the URI.
#[inline]
pub(super) fn restore<B>(
    session: &Session,
    stream: u32,
    request: &mut Request<B>,
) -> Result<(), UnfitTarget> {
    let path = session.meter.borrow_mut().take_path(stream);
    match path {
        None => Ok(()),
        Some(path) => insert(RawTarget(Bytes::copy_from_slice(&path)), request),
    }
}

#[cold]
fn insert<B>(target: RawTarget, request: &mut Request<B>) -> Result<(), UnfitTarget> {
    let mut parts = std::mem::take(request.uri_mut()).into_parts();
    parts.path_and_query = Some(target.for_uri().ok_or(UnfitTarget)?);
    *request.uri_mut() = Uri::from_parts(parts).map_err(|_| UnfitTarget)?;
    request.extensions_mut().insert(target);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_target(uri: &'static str, target: &'static str) -> Result<Request<()>, UnfitTarget> {
        let mut request = Request::get(uri).body(()).unwrap();
        let target = RawTarget(Bytes::from_static(target.as_bytes()));
        insert(target, &mut request).map(|()| request)
    }

    #[test]
    fn a_target_is_escaped_in_the_uri_only() {
        for (uri, escaped) in [
            ("/~?a=~", "/%3C?a=%22"),
            ("http://a.test:80/~?a=~", "http://a.test:80/%3C?a=%22"),
        ] {
            let request = with_target(uri, "/<?a=\"").unwrap();
            assert_eq!(request.uri(), escaped);
            assert_eq!(*request.uri(), escaped.parse::<Uri>().unwrap());
            let raw = request.extensions().get::<RawTarget>().unwrap();
            assert_eq!(raw.0, "/<?a=\"");
        }
    }

    #[test]
    fn a_target_that_is_not_a_path_is_refused() {
        assert_eq!(with_target("/", "/a b").unwrap_err(), UnfitTarget);
        assert_eq!(with_target("/", "").unwrap_err(), UnfitTarget);
    }
}
