//! Configurations shared by many tests.

use super::certificates::Identity;
use proxy_testkit::{Launch, Proxyd, Upstream};
use std::net::SocketAddr;

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_proxyd");

/// Starts proxyd with this configuration, and with these certificates in its folder.
#[track_caller]
pub(crate) fn start(kdl: &str, identities: &[(&str, &Identity)]) -> Proxyd {
    let launch = Launch::new(BINARY, kdl);
    for (name, identity) in identities {
        identity.write(launch.folder(), name);
    }
    launch.start()
}

/// A listener with these settings, and one route for every request to `upstream`.
pub(crate) fn to(upstream: &Upstream, listener: &str) -> String {
    let address = upstream.address();
    format!(
        r#"
        listeners {{ listener "main" {{ address "127.0.0.1:0"; {listener} }} }}
        routes {{ route "all" {{ upstream "u" }} }}
        upstreams {{ upstream "u" {{ targets {{ target "{address}" }} }} }}
        system {{ worker-threads 1 }}
        "#
    )
}

/// A listener of HTTP/2 without TLS, and one route for every request to the HTTP/2 upstream at `address`,
/// with `more` blocks.
pub(crate) fn to_http2(address: SocketAddr, more: &str) -> String {
    format!(
        r#"
        listeners {{ listener "main" {{ address "127.0.0.1:0"; h2c #true }} }}
        routes {{ route "all" {{ upstream "u" }} }}
        upstreams {{ upstream "u" {{ target "{address}"; protocol "h2" }} }}
        system {{ worker-threads 1 }}
        {more}
        "#
    )
}

/// The settings of a listener with `site.crt`, with more settings for its TLS.
pub(crate) fn over_tls(more: &str) -> String {
    format!(r#"protocol "https"; tls {{ cert-file "site.crt"; key-file "site.key"; {more} }}"#)
}
