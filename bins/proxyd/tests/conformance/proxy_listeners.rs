//! A proxy with a listener of each kind.

use crate::bridge;
use crate::certificates::Authority;
use proxy_testkit::{Launch, Proxyd, Upstream};
use std::net::SocketAddr;

const BINARY: &str = env!("CARGO_BIN_EXE_proxyd");

/// Number of concurrent streams that a client may open.
pub(crate) const MOST_STREAMS: u32 = 8;

/// A proxy with a listener of each kind, in front of one upstream. Paths that begin with `/wait` go
/// to another one, which never answers; `nowhere.test` is answered by the proxy itself.
pub(crate) struct ProxyListeners {
    /// HTTP/1.1, or HTTP/2 by prior knowledge.
    pub(crate) plain: SocketAddr,
    /// HTTP/1.1 over TLS.
    pub(crate) tls: SocketAddr,
    /// HTTP/2 over TLS.
    pub(crate) tls_h2: SocketAddr,
    _running: (Proxyd, Upstream),
}

/// Starts the proxy in front of `target`, with these settings of its upstream.
pub(crate) fn open(target: SocketAddr, upstream: &str) -> ProxyListeners {
    let waiting = Upstream::start(|served| {
        served.end();
    });
    let nowhere = waiting.address();
    let kdl = format!(
        r#"
        listeners {{
            listener "plain" {{ address "127.0.0.1:0"; h2c #true; via #true; max-concurrent-streams {MOST_STREAMS} }}
            listener "tls" {{
                via #true
                address "127.0.0.1:0"
                protocol "https"
                tls {{ cert-file "site.crt"; key-file "site.key" }}
                max-concurrent-streams {MOST_STREAMS}
            }}
        }}
        routes {{
            route "wait" {{ upstream "waiting"; matches {{ path-prefix "/wait" }} }}
            route "local" {{
                service-type "builtin"
                builtin-handler "health"
                matches {{ host "nowhere.test" }}
            }}
            route "all" {{ upstream "u" }}
        }}
        upstreams {{
            upstream "u" {{ target "{target}"; {upstream} }}
            upstream "waiting" {{ target "{nowhere}" }}
        }}
        system {{ worker-threads 1 }}
        "#
    );
    let authority = Authority::new("root");
    let launch = Launch::new(BINARY, &kdl);
    authority
        .issue(&["127.0.0.1"])
        .write(launch.folder(), "site");
    let proxyd = launch.start();
    let (plain, secure) = match proxyd.addresses() {
        [plain, secure] => (*plain, *secure),
        other => panic!("two listeners were asked for, not {other:?}"),
    };
    ProxyListeners {
        plain,
        tls: bridge::over_tls(secure, authority.roots(), "http/1.1"),
        tls_h2: bridge::over_tls(secure, authority.roots(), "h2"),
        _running: (proxyd, waiting),
    }
}
