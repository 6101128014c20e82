//! How the targets of an upstream are reached.

use crate::tls::Outward;
use proxy_pipeline::UpstreamLinks;
use proxy_plan::UpstreamPlan;
use proxy_pool::ConnectSettings;
use std::sync::Arc;
use std::time::Duration;

/// Ways to the targets of `upstream`; the time to connect is the route's and set for each request.
pub(crate) fn of(upstream: &UpstreamPlan, tls: Option<&Outward>) -> UpstreamLinks {
    let link = |tls| ConnectSettings {
        timeout: Duration::ZERO,
        tls,
    };
    let targets = match tls {
        // A target without a name would have no link at all, rather than one in plaintext.
        Some(Outward { tls, names }) => {
            let names = names.iter().cloned();
            names
                .map(|name| link(Some((Arc::clone(tls), name))))
                .collect()
        }
        None => vec![link(None); upstream.targets.len()],
    };
    UpstreamLinks { targets }
}
