//! Restriction of the addresses that requests to an authority may reach.

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use tokio::net::lookup_host;

/// Decides which addresses may be connected to. Every request is checked, because an authority's
/// responses contain further URLs.
pub trait AddressRule: Send + Sync + 'static {
    /// Returns true if connections to `address`, resolved from `host`, are permitted.
    fn permits(&self, host: &str, address: IpAddr) -> bool;
}

/// Error of a host with an address that the rule refuses.
#[derive(Debug, thiserror::Error)]
#[error("the address of {host} is not permitted")]
pub(crate) struct RefusedAddress {
    host: String,
}

/// Resolves a name for one connection; refuses it if any of its addresses is refused.
pub(crate) struct FilteredResolver {
    rule: Arc<dyn AddressRule>,
}

impl FilteredResolver {
    pub(crate) fn new(rule: Arc<dyn AddressRule>) -> Self {
        Self { rule }
    }
}

impl Resolve for FilteredResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let rule = Arc::clone(&self.rule);
        Box::pin(async move {
            let found: Vec<SocketAddr> = lookup_host((name.as_str(), 0)).await?.collect();
            let mut found_ips = found.iter().map(SocketAddr::ip);
            if !found_ips.all(|ip| rule.permits(name.as_str(), ip)) {
                let host = name.as_str().to_owned();
                return Err(RefusedAddress { host }.into());
            }
            let found: Addrs = Box::new(found.into_iter());
            Ok(found)
        })
    }
}

/// Checks an IP address in a URL, which the resolver does not see. The client reads `127.1` and
/// `0x7f000001` as addresses too, so the check reads the host as the client does.
pub(crate) fn check_literal(rule: &dyn AddressRule, url: &http::Uri) -> Result<(), RefusedAddress> {
    let normalized = reqwest::Url::parse(&url.to_string()).ok();
    let host = normalized.as_ref().and_then(|url| url.host_str());
    let host = host.or(url.host()).unwrap_or_default();
    let literal: Option<IpAddr> = host.trim_matches(['[', ']']).parse().ok();
    if literal.is_some_and(|address| !rule.permits(host, address)) {
        let host = host.to_owned();
        return Err(RefusedAddress { host });
    }
    Ok(())
}

impl fmt::Debug for FilteredResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FilteredResolver(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct NoLoopback;

    impl AddressRule for NoLoopback {
        fn permits(&self, _: &str, address: IpAddr) -> bool {
            !address.is_loopback()
        }
    }

    #[test]
    fn an_address_in_a_url_is_checked_in_each_form() {
        let checked = |url: &str| check_literal(&NoLoopback, &url.parse().unwrap()).is_ok();
        assert!(!checked("https://127.0.0.1/order"));
        assert!(!checked("https://[::1]:8443/order"));
        assert!(!checked("https://127.1/order"));
        assert!(!checked("https://0x7f000001/order"));
        assert!(checked("https://1.1.1.1/order"));
        assert!(
            checked("https://ca.example/order"),
            "checked when it is resolved"
        );
    }

    #[tokio::test]
    async fn a_name_with_a_refused_address_is_not_connected_to() {
        let resolver = FilteredResolver::new(Arc::new(NoLoopback));
        let refused = resolver.resolve("localhost".parse().unwrap()).await;
        assert!(refused.is_err());
    }
}
