//! Configurations and requests that many tests share.

use proxy_testkit::{Proxyd, Upstream};

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_proxyd");

/// Starts proxyd with this configuration.
#[track_caller]
pub(crate) fn start(kdl: &str) -> Proxyd {
    Proxyd::start(BINARY, kdl)
}

/// One listener, and one route that leads everything to `upstream`.
pub(crate) fn to(upstream: &Upstream) -> String {
    with(upstream, "", "", "")
}

/// The same, with more settings for the listener, the route and the upstream.
pub(crate) fn with(upstream: &Upstream, listener: &str, route: &str, more: &str) -> String {
    let address = upstream.address();
    format!(
        r#"
        listeners {{ listener "main" {{ address "127.0.0.1:0"; {listener} }} }}
        routes {{ route "all" {{ upstream "u"; {route} }} }}
        upstreams {{ upstream "u" {{ targets {{ target "{address}" }}; {more} }} }}
        system {{ worker-threads 1 }}
        "#
    )
}
