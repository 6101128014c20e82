//! Upstreams of which a bundle leaves no target that accepts a connection.

use proxy_model::{Host, Model, Upstream};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

/// Longest time of one connection.
const CONNECT_TIME: Duration = Duration::from_secs(2);
/// Longest time for all upstreams. Those that are not reached then are not judged.
const MAX_TIME: Duration = Duration::from_secs(10);
/// Delay before refused targets are tried once more.
const REPEAT_DELAY: Duration = Duration::from_millis(250);

/// A message for each upstream of `after` with changed targets of which none accepts a connection,
/// although a target in `before` does. An upstream that was down already is not the bundle's fault.
/// Upstreams with a DNS name among their targets are not judged.
pub(super) async fn dead_upstreams(before: &Model, after: &Model) -> Vec<String> {
    let mut found = Vec::new();
    let judging = async {
        for upstream in &after.upstreams {
            found.extend(judge(before, upstream).await);
        }
    };
    if timeout(MAX_TIME, judging).await.is_err() {
        tracing::warn!("targets of the bundle take long to connect: not all are judged");
    }
    found
}

async fn judge(before: &Model, upstream: &Upstream) -> Option<String> {
    let mut upstreams = before.upstreams.iter();
    let old = addresses(upstreams.find(|old| old.name == upstream.name)?)?;
    let new = addresses(upstream)?;
    if new.iter().all(|address| old.contains(address)) || accepts(&new).await {
        return None;
    }
    sleep(REPEAT_DELAY).await;
    if accepts(&new).await || !accepts(&old).await {
        return None;
    }
    let named: Vec<String> = new.iter().map(ToString::to_string).collect();
    Some(format!(
        "upstream \"{}\" is down: no connection to {}, and there is one to a target of before",
        upstream.name,
        named.join(", ")
    ))
}

/// Addresses of targets that receive requests; `None` if one of them is a name.
fn addresses(upstream: &Upstream) -> Option<Vec<SocketAddr>> {
    let used = upstream.targets.iter();
    let used = used.filter(|target| *target.weight > 0);
    let addresses = used.map(|target| match target.address.host {
        Host::Ip(ip) => Some(SocketAddr::new(ip, target.address.port)),
        Host::Name(_) | Host::Service(_) => None,
    });
    addresses.collect()
}

async fn accepts(addresses: &[SocketAddr]) -> bool {
    for address in addresses {
        let connecting = timeout(CONNECT_TIME, TcpStream::connect(address));
        if matches!(connecting.await, Ok(Ok(_))) {
            return true;
        }
    }
    false
}
