//! HTTP client for addresses that users configure: identity providers, webhooks, metrics servers.
//!
//! Redirects are not followed, so that a secret reaches no other host; a response is bounded in
//! time and size; a name is resolved once, and the connection uses one of the checked addresses.

use control_domain::PrivateAddresses;
use control_sso::WebUrl;
use proxy_tls::{ClientTls, ClientTlsSettings, PlatformRoots};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, HeaderMap};
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::lookup_host;

const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_BYTES: usize = 256 * 1024;

/// Reason why a request got no usable response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum OutboundError {
    /// The name or the address is of a private network, or the URL has no TLS.
    #[error("the address is private, or without TLS: the installation's settings do not allow it")]
    PrivateAddress,
    /// The complete response did not arrive in time.
    #[error("no answer within 10 seconds")]
    Timeout,
    /// The name has no address, or its servers do not answer.
    #[error("the name of the address cannot be resolved")]
    Name,
    /// The connection is refused, or the address is unreachable.
    #[error("no connection: it is refused, or the address cannot be reached")]
    Connect,
    /// The TLS handshake failed.
    #[error(
        "no TLS: the certificate is not trusted or of another name, or the server speaks no TLS"
    )]
    Tls,
    /// The response is incomplete, is not HTTP, or has too large a head.
    #[error("incomplete answer: it breaks off, is not HTTP, or has too large a head")]
    Exchange,
    /// The client cannot be set up, or the address is not a URL.
    #[error("no request can be sent to the address")]
    Unsendable,
    /// The answer's status is not 2xx.
    #[error("the answer has another status than 2xx; redirects are not followed")]
    Status,
    /// The answer is larger than 256 KiB.
    #[error("the answer is larger than 256 KiB")]
    TooLarge,
}

/// A response with its whole body, of at most 256 KiB.
#[derive(Debug)]
pub(crate) struct OutboundAnswer {
    pub(crate) is_success: bool,
    /// `max-age` of `Cache-Control`.
    pub(crate) max_age_secs: Option<u32>,
    pub(crate) body: Vec<u8>,
}

/// Client with a time limit, without redirects and proxies; checks every address against the
/// settings for private networks.
#[derive(Clone, Debug)]
pub(crate) struct Outbound {
    client: Client,
    addresses: PrivateAddresses,
}

impl Outbound {
    /// Creates a client that trusts the root certificates of this machine.
    pub(crate) fn new(addresses: PrivateAddresses) -> Result<Self, OutboundError> {
        let tls = ClientTlsSettings::http1(None);
        let tls = ClientTls::load(tls, &PlatformRoots::new());
        let tls = tls.map_err(|_| OutboundError::Unsendable)?;
        let client = Client::builder()
            .tls_backend_preconfigured((*tls.config()).clone())
            .dns_resolver(Arc::new(CheckingResolver { addresses }))
            .redirect(Policy::none())
            .no_proxy()
            .http1_only()
            .timeout(RESPONSE_TIMEOUT)
            .user_agent("controld")
            .build();
        Ok(Self {
            client: client.map_err(|_| OutboundError::Unsendable)?,
            addresses,
        })
    }

    /// Fetches a document; `bearer` is an access token. Any status but 2xx is an error.
    pub(crate) async fn get(
        &self,
        url: &WebUrl,
        bearer: Option<&str>,
    ) -> Result<OutboundAnswer, OutboundError> {
        self.check(url)?;
        let mut request = self.client.get(url.as_str());
        if let Some(token) = bearer {
            request = request.bearer_auth(token);
        }
        let answer = self.send(request).await?;
        answer
            .is_success
            .then_some(answer)
            .ok_or(OutboundError::Status)
    }

    /// Posts a form; `basic` is user and password. Returns responses of any status.
    pub(crate) async fn post_form(
        &self,
        url: &WebUrl,
        form: String,
        basic: Option<(&str, &str)>,
    ) -> Result<OutboundAnswer, OutboundError> {
        self.check(url)?;
        let mut request = self.client.post(url.as_str());
        if let Some((user, password)) = basic {
            request = request.basic_auth(user, Some(password));
        }
        let form = request
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(ACCEPT, "application/json")
            .body(form);
        self.send(form).await
    }

    /// Posts JSON. Returns the status of the response; its body is not read.
    pub(crate) async fn post_json(
        &self,
        url: &WebUrl,
        body: String,
        headers: &[(&'static str, String)],
    ) -> Result<u16, OutboundError> {
        self.check(url)?;
        let mut request = self.client.post(url.as_str());
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let request = request.header(CONTENT_TYPE, "application/json").body(body);
        let answer = request.send().await.map_err(|error| reason(&error))?;
        Ok(answer.status().as_u16())
    }

    /// Checks an IP address in the URL; the resolver checks only names.
    fn check(&self, url: &WebUrl) -> Result<(), OutboundError> {
        if is_refused(url, self.addresses) {
            return Err(OutboundError::PrivateAddress);
        }
        Ok(())
    }

    async fn send(&self, request: RequestBuilder) -> Result<OutboundAnswer, OutboundError> {
        let mut response = request.send().await.map_err(|error| reason(&error))?;
        let is_success = response.status().is_success();
        let max_age_secs = max_age(response.headers());
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| reason(&error))? {
            body.extend_from_slice(&chunk);
            if MAX_BYTES < body.len() {
                return Err(OutboundError::TooLarge);
            }
        }
        Ok(OutboundAnswer {
            is_success,
            max_age_secs,
            body,
        })
    }
}

/// Returns true if the installation's settings forbid the address in the URL, or its lack of TLS.
pub(crate) fn is_refused(url: &WebUrl, addresses: PrivateAddresses) -> bool {
    match addresses {
        PrivateAddresses::Allowed => false,
        PrivateAddresses::Refused => !url.is_https() || url.ip().is_some_and(is_private),
    }
}

/// Finds the cause in the error's chain: the resolver's refusal, or a failed handshake.
fn reason(error: &reqwest::Error) -> OutboundError {
    let mut is_tls = false;
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(own) = source {
        if let Some(found) = own.downcast_ref::<OutboundError>() {
            return *found;
        }
        is_tls |= own.downcast_ref::<io::Error>().is_some_and(is_handshake);
        source = own.source();
    }
    match (error.is_timeout(), error.is_connect()) {
        (true, _) => OutboundError::Timeout,
        (false, true) if is_tls => OutboundError::Tls,
        (false, true) => OutboundError::Connect,
        (false, false) => OutboundError::Exchange,
    }
}

/// Returns true for an error of the TLS handshake. The client wraps it in I/O errors that do not
/// name it as their source.
fn is_handshake(error: &io::Error) -> bool {
    let inner = error.get_ref().and_then(|it| it.downcast_ref());
    error.kind() == io::ErrorKind::InvalidData || inner.is_some_and(is_handshake)
}

fn max_age(headers: &HeaderMap) -> Option<u32> {
    let text = headers.get(CACHE_CONTROL)?.to_str().ok()?;
    let directives = text.split(',').map(str::trim);
    let mut ages = directives.filter_map(|own| own.strip_prefix("max-age="));
    ages.next()?.parse().ok()
}

/// Resolves a name for one connection; refuses a name if any of its addresses is private.
#[derive(Debug)]
struct CheckingResolver {
    addresses: PrivateAddresses,
}

impl Resolve for CheckingResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let addresses = self.addresses;
        Box::pin(async move {
            let found = lookup_host((name.as_str(), 0)).await;
            let found: Vec<SocketAddr> = found.map_err(|_| OutboundError::Name)?.collect();
            let has_private = found.iter().any(|address| is_private(address.ip()));
            if has_private && addresses == PrivateAddresses::Refused {
                return Err(OutboundError::PrivateAddress.into());
            }
            let found: Addrs = Box::new(found.into_iter());
            Ok(found)
        })
    }
}

/// Returns true for every address that is not public: loopback, private, shared, link-local,
/// documentation, multicast, reserved, or an IPv6 form that embeds such an IPv4 address (RFC 6890).
pub(crate) fn is_private(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_private_v4(address),
        IpAddr::V6(address) => is_private_v6(address),
    }
}

fn is_private_v4(address: Ipv4Addr) -> bool {
    let [first, second, third, _] = address.octets();
    let is_shared = first == 100 && (64..128).contains(&second);
    let is_protocol = first == 192 && second == 0 && third == 0;
    let is_benchmark = first == 198 && (18..20).contains(&second);
    address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        || first == 0
        || 224 <= first
        || is_shared
        || is_protocol
        || is_benchmark
}

/// Public addresses are in `2000::/3`; some parts of it embed IPv4 addresses or are for
/// documentation.
fn is_private_v6(address: Ipv6Addr) -> bool {
    let [first, second, third, ..] = address.segments();
    let embedded = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        is_private_v4(Ipv4Addr::new(a, b, c, d))
    };
    match first {
        // 6to4.
        0x2002 => embedded(second, third),
        // Teredo, ORCHID and documentation.
        0x2001 => second < 0x200 || second == 0xdb8,
        0x3fff => second < 0x1000,
        // NAT64.
        0x64 if second == 0xff9b => {
            let [.., high, low] = address.segments();
            third != 0 || embedded(high, low)
        }
        _ => first & 0xe000 != 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_and_reserved_addresses_are_known_in_every_form() {
        let private = [
            "127.0.0.1",
            "10.1.2.3",
            "172.31.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "192.0.0.8",
            "198.18.0.1",
            "203.0.113.1",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "::ffff:10.0.0.1",
            "64:ff9b::a00:1",
            "2002:a00:1::1",
            "fd00::1",
            "fe80::1",
            "ff02::1",
            "2001:db8::1",
            "2001::1",
        ];
        for text in private {
            assert!(is_private(text.parse().unwrap()), "{text}");
        }
        for text in [
            "1.1.1.1",
            "100.128.0.1",
            "2606:4700::1111",
            "64:ff9b::808:808",
            "2002:808:808::1",
        ] {
            assert!(!is_private(text.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn the_age_of_an_answer_is_read() {
        let age = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(CACHE_CONTROL, text.parse().unwrap());
            max_age(&headers)
        };
        assert_eq!(age("public, max-age=600"), Some(600));
        assert_eq!(age("max-age=-1"), None);
        assert_eq!(age("no-cache"), None);
    }
}
