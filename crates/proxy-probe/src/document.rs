//! A document that a target publishes.

use crate::check::{expect, get, whole};
use crate::connection::{connect, send};
use crate::error::CheckError;
use crate::settings::{Check, ProbeSettings};
use bytes::Bytes;
use http::HeaderMap;
use http::header::CACHE_CONTROL;
use std::net::SocketAddr;
use std::time::Duration;

/// A document of at most 4 MiB.
#[derive(Clone, Debug)]
pub struct Document {
    /// Body, at most as long as the limit.
    pub body: Bytes,
    /// `max-age` of `Cache-Control`; zero with `no-store` or `no-cache`. `None` without one.
    pub max_age: Option<Duration>,
}

/// Fetches the document of `settings`, a check of the kind [`Check::Http`], from `address`. Redirects are not followed.
///
/// # Errors
/// The cause, for the log.
pub async fn fetch(
    address: Option<SocketAddr>,
    settings: &ProbeSettings,
) -> Result<Document, String> {
    let fetching = fetch_once(address, settings);
    let fetched = tokio::time::timeout(settings.timing.timeout, fetching).await;
    let fetched = fetched.unwrap_or(Err(CheckError::TimedOut));
    fetched.map_err(|error| error.to_string())
}

async fn fetch_once(
    address: Option<SocketAddr>,
    settings: &ProbeSettings,
) -> Result<Document, CheckError> {
    let Check::Http {
        path,
        expected,
        host,
    } = &settings.check
    else {
        return Err(CheckError::NoDocument);
    };
    let host = host.as_deref().unwrap_or(&settings.authority);
    let transport = connect(address, settings).await?;
    let request = get(settings, path, host)?;
    let (response, _connection) = send(transport, request, settings.http2).await?;
    expect(response.status(), expected)?;
    let max_age = max_age(response.headers());
    let (body, _) = whole(response.into_body()).await?;
    Ok(Document { body, max_age })
}

fn max_age(headers: &HeaderMap) -> Option<Duration> {
    let lines = headers.get_all(CACHE_CONTROL).iter();
    let texts = lines.filter_map(|line| line.to_str().ok());
    let mut directives = texts.flat_map(|text| text.split(',')).map(str::trim);
    directives.find_map(|directive| {
        let directive = directive.to_ascii_lowercase();
        if directive == "no-store" || directive == "no-cache" {
            return Some(Duration::ZERO);
        }
        let seconds = directive.strip_prefix("max-age=")?;
        seconds
            .trim_matches('"')
            .parse()
            .ok()
            .map(Duration::from_secs)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn the_age_of_an_answer_is_parsed() {
        for (value, seconds) in [
            ("max-age=60", Some(60)),
            ("public, Max-Age=\"5\"", Some(5)),
            ("no-store", Some(0)),
            ("private", None),
            ("max-age=-1", None),
            ("s-maxage=9", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(CACHE_CONTROL, HeaderValue::from_static(value));
            assert_eq!(
                max_age(&headers),
                seconds.map(Duration::from_secs),
                "{value}"
            );
        }
    }
}
