//! The address of a server with shared rate limits.

use http::Uri;
use std::fmt;
use std::str::FromStr;

/// `redis://[user:password@]host[:port][/database]`, a Redis or a Valkey.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct StoreUrl {
    text: Box<str>,
    address: Box<str>,
}

/// The reason why text is not a [`StoreUrl`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreUrlError {
    /// The URL does not begin with `redis://`.
    #[error("write `redis://host:6379`; TLS (`rediss://`) is not supported")]
    Scheme,
    /// The rest is not a host with a port.
    #[error("write `redis://host:6379/0`: a host, a port up to 65535, the number of a database")]
    Form,
}

const DEFAULT_PORT: u16 = 6_379;

impl StoreUrl {
    /// The URL, with its password.
    pub fn secret(&self) -> &str {
        &self.text
    }

    /// Host and port.
    pub fn address(&self) -> &str {
        &self.address
    }
}

impl FromStr for StoreUrl {
    type Err = StoreUrlError;

    fn from_str(text: &str) -> Result<Self, StoreUrlError> {
        let url = text.parse::<Uri>().map_err(|_| StoreUrlError::Form)?;
        if url.scheme_str() != Some("redis") {
            return Err(StoreUrlError::Scheme);
        }
        let host = url.host().filter(|host| !host.is_empty());
        let host = host.ok_or(StoreUrlError::Form)?;
        let database = url.path().trim_start_matches('/');
        if url.query().is_some() || !database.is_empty() && database.parse::<u32>().is_err() {
            return Err(StoreUrlError::Form);
        }
        let port = match written_port(&url) {
            None => DEFAULT_PORT,
            // `u16` accepts a sign, and a URL does not.
            Some(port) if port.starts_with('+') => return Err(StoreUrlError::Form),
            Some(port) => port.parse().map_err(|_| StoreUrlError::Form)?,
        };
        Ok(Self {
            text: text.into(),
            address: format!("{host}:{port}").into(),
        })
    }
}

/// The port as written; `Uri` has none for one that is out of range, as for an absent one.
fn written_port(url: &Uri) -> Option<&str> {
    let authority = url.authority()?.as_str();
    let (_, place) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (_, after) = place.rsplit_once(']').unwrap_or(("", place));
    after.split_once(':').map(|(_, port)| port)
}

/// Omits user and password.
impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "redis://{}", self.address)
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreUrl({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_has_an_address_and_its_password_is_not_shown() {
        for (text, address) in [
            ("redis://cache", "cache:6379"),
            ("redis://10.0.0.1:7000/3", "10.0.0.1:7000"),
            ("redis://:s3cret@[::1]:1", "[::1]:1"),
        ] {
            let url: StoreUrl = text.parse().unwrap();
            assert_eq!(url.address(), address);
            assert_eq!(url.secret(), text);
            assert!(!format!("{url} {url:?}").contains("s3cret"));
        }
        for (text, error) in [
            ("rediss://a", StoreUrlError::Scheme),
            ("http://a", StoreUrlError::Scheme),
            ("redis://a/b", StoreUrlError::Form),
            ("redis://a:99999", StoreUrlError::Form),
            ("redis://a:x", StoreUrlError::Form),
            ("redis://a:+6379", StoreUrlError::Form),
            ("redis://:s3cret@[::1]:70000", StoreUrlError::Form),
            ("redis://a/1?x", StoreUrlError::Form),
            ("", StoreUrlError::Form),
        ] {
            assert_eq!(text.parse::<StoreUrl>(), Err(error), "{text}");
        }
    }
}
