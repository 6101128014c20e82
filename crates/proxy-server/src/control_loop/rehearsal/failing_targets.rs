//! Targets that a bundle would lose: their health check fails, they do not speak TLS, or no server
//! listens at their addresses.

use super::endpoints::{Endpoint, UpstreamEndpoints};
use futures_util::stream::{StreamExt, iter};
use proxy_probe::{CheckError, check};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// Maximum time of one probe. A health check with a longer timeout that does not end in this time
/// is not counted as failed.
const PROBE_TIME: Duration = Duration::from_secs(5);
/// Maximum time for all targets; those not reached by then are skipped.
const MAX_TIME: Duration = Duration::from_secs(40);
/// Delay before the second attempt of a failed probe.
const REPEAT_DELAY: Duration = Duration::from_millis(250);
/// Delay before the third attempt of a probe that timed out: a machine may be busy for longer than
/// two attempts.
const LATE_DELAY: Duration = Duration::from_secs(2);
/// Upstreams probed at the same time, and targets of each: a silent one does not delay the rest.
const MAX_CONCURRENT: usize = 8;

/// A message for each of these faults:
/// - A target in use fails by the rules of `after` but passes by the rules of `before`.
/// - None of an upstream's targets passes, some of them are new, and a current one passes.
/// - A new target does not exist, or accepts connections and never answers.
///
/// An upstream that was down before is not the bundle's fault. `has_other_dns` is true if the DNS
/// settings of `after` differ.
pub(super) async fn failing_targets(
    before: &[UpstreamEndpoints],
    after: &[UpstreamEndpoints],
    has_other_dns: bool,
) -> Vec<String> {
    let mut found = Vec::new();
    let judging = async {
        let upstreams = after
            .iter()
            .map(|upstream| judge(before, upstream, has_other_dns));
        // Collected, since a closure with a reference in a stream makes a future that is not
        // `Send`.
        let upstreams: Vec<_> = upstreams.collect();
        let mut judged = iter(upstreams).buffer_unordered(MAX_CONCURRENT);
        while let Some(failure) = judged.next().await {
            found.extend(failure);
        }
    };
    if timeout(MAX_TIME, judging).await.is_err() {
        tracing::warn!("targets of the bundle take long to answer: not all are judged");
    }
    found
}

/// New targets that pass their health check, in upstreams of both configurations, as pairs of
/// upstream and address as written. All addresses of a DNS name have to pass.
pub(super) async fn healthy_new_targets(
    before: &[UpstreamEndpoints],
    after: &[UpstreamEndpoints],
) -> BTreeSet<(String, String)> {
    let checked = after.iter().filter(|upstream| upstream.has_check);
    let new = checked.flat_map(|upstream| {
        let own = before.iter().find(|old| old.name == upstream.name);
        let targets = own.map_or(&[][..], |_| &upstream.targets).iter();
        let new = targets.filter(move |target| {
            let mut known = own.iter().flat_map(|own| &own.targets);
            known.all(|old| !old.is_same_target(target))
        });
        new.map(move |target| (upstream, target))
    });
    let new: Vec<_> = new.collect();
    let written = |upstream: &UpstreamEndpoints, target: &Endpoint| {
        (upstream.name.clone(), target.probe.authority.to_string())
    };
    let mut unproved = BTreeMap::new();
    for (upstream, target) in &new {
        *unproved.entry(written(upstream, target)).or_insert(0_usize) += 1;
    }
    let probes = new.iter().map(|&(upstream, target)| async move {
        let is_healthy = passes(target).await;
        is_healthy.then(|| written(upstream, target))
    });
    // Collected, since a closure with a reference in a stream makes a future that is not `Send`.
    let probes: Vec<_> = probes.collect();
    let mut probes = iter(probes).buffer_unordered(MAX_CONCURRENT);
    let probing = async {
        while let Some(passed) = probes.next().await {
            if let Some(left) = passed.and_then(|target| unproved.get_mut(&target)) {
                *left = left.saturating_sub(1);
            }
        }
    };
    // Targets without a result by then count as still starting.
    timeout(PROBE_TIME, probing).await.unwrap_or_default();
    drop(probes);
    let healthy = unproved.into_iter().filter(|(_, left)| *left == 0);
    healthy.map(|(target, _)| target).collect()
}

async fn judge(
    before: &[UpstreamEndpoints],
    upstream: &UpstreamEndpoints,
    has_other_dns: bool,
) -> Option<String> {
    let own = before.iter().find(|old| old.name == upstream.name);
    for target in &upstream.targets {
        let Some(old) = former(before, own, target) else {
            continue;
        };
        if has_other_dns && target.address.is_none() && old.address.is_some() {
            return Some(format!(
                "upstream \"{}\" loses {}: its name has no address by the bundle's `system.dns`, but one by the current \
                 setting",
                upstream.name, target.label
            ));
        }
        if target.is_probed_like(old) {
            continue;
        }
        if let Some(error) = failure(target).await
            && passes(old).await
        {
            return Some(lost_target(upstream, target, &error));
        }
    }
    let own = own?;
    let is_known = |target: &Endpoint| own.targets.iter().any(|old| old.is_same_target(target));
    let new: Vec<&Endpoint> = upstream
        .targets
        .iter()
        .filter(|target| !is_known(target))
        .collect();
    if new.is_empty() {
        return None;
    }
    if let Some(error) = failure_of_all(&upstream.targets).await {
        for old in &own.targets {
            if passes(old).await {
                return Some(down(upstream, &error));
            }
        }
        return None;
    }
    if let Some(name) = new.iter().find(|target| target.is_missing)
        && !upstream.has_check
    {
        return Some(format!(
            "upstream \"{}\" has the new target {}, and there is no such name",
            upstream.name, name.label
        ));
    }
    silent_target(own, upstream, &new).await
}

/// The message for a new target that accepts connections and never answers a request, while a
/// current target answers.
async fn silent_target(
    own: &UpstreamEndpoints,
    upstream: &UpstreamEndpoints,
    new: &[&Endpoint],
) -> Option<String> {
    if !upstream.is_untested {
        return None;
    }
    for target in new {
        // A server may close the connection of a request that it does not understand.
        let Some(CheckError::TimedOut) = failure(&target.answering()).await else {
            continue;
        };
        for old in &own.targets {
            if passes(&old.answering()).await {
                return Some(format!(
                    "upstream \"{}\" gets no answer from {} to `OPTIONS *` within {} s, but one from a target of the bundle in force",
                    upstream.name,
                    target.label,
                    PROBE_TIME.as_secs()
                ));
            }
        }
    }
    None
}

/// The last error if all targets fail, `None` if one passes.
async fn failure_of_all(targets: &[Endpoint]) -> Option<CheckError> {
    let failures: Vec<_> = targets.iter().map(failure).collect();
    let mut failures = iter(failures).buffer_unordered(MAX_CONCURRENT);
    let mut last = None;
    while let Some(failure) = failures.next().await {
        last = Some(failure?);
    }
    last
}

/// The current target with the same name or address, in the same upstream or any other.
fn former<'e>(
    before: &'e [UpstreamEndpoints],
    own: Option<&'e UpstreamEndpoints>,
    target: &Endpoint,
) -> Option<&'e Endpoint> {
    let upstreams = own.into_iter().chain(before);
    let mut targets = upstreams.flat_map(|upstream| &upstream.targets);
    targets.find(|old| old.is_same_target(target))
}

/// The error of a target that fails two probes in a row, or three if they time out. `None` if one
/// passes, or if the health check may take longer than [`PROBE_TIME`] and timed out.
async fn failure(target: &Endpoint) -> Option<CheckError> {
    probed(target).await.err()?;
    sleep(REPEAT_DELAY).await;
    let mut error = probed(target).await.err()?;
    if matches!(error, CheckError::TimedOut) {
        sleep(LATE_DELAY).await;
        error = probed(target).await.err()?;
    }
    let is_cut_short = PROBE_TIME < target.probe.timing.timeout;
    (!is_cut_short || !matches!(error, CheckError::TimedOut)).then_some(error)
}

async fn passes(target: &Endpoint) -> bool {
    probed(target).await.is_ok()
}

async fn probed(target: &Endpoint) -> Result<(), CheckError> {
    let mut settings = target.probe.clone();
    settings.timing.timeout = settings.timing.timeout.min(PROBE_TIME);
    check(target.address, &settings).await
}

fn lost_target(upstream: &UpstreamEndpoints, target: &Endpoint, error: &CheckError) -> String {
    let probe = if upstream.has_check {
        "health check"
    } else {
        "connection"
    };
    format!(
        "upstream \"{}\" loses {}: its {probe} fails by the bundle's rules ({error}), and passes by the current ones",
        upstream.name, target.label
    )
}

fn down(upstream: &UpstreamEndpoints, error: &CheckError) -> String {
    let labels = upstream.targets.iter().map(|target| &*target.label);
    let named = labels.collect::<Vec<_>>().join(", ");
    let probe = if upstream.has_check {
        "no healthy target among"
    } else {
        "no connection to"
    };
    format!(
        "upstream \"{}\" is down: {probe} {named}, although a target of the bundle in force answers ({error})",
        upstream.name
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proxy_health::{CheckTiming, Thresholds};
    use proxy_probe::{Check, ProbeSettings};
    use std::net::SocketAddr;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    /// An upstream with one target by name.
    fn named(address: Option<SocketAddr>) -> Vec<UpstreamEndpoints> {
        let second = Duration::from_secs(1);
        let target = Endpoint {
            label: "app.test:80".into(),
            address,
            is_missing: false,
            probe: ProbeSettings {
                check: Check::Tcp,
                timing: CheckTiming {
                    interval: second,
                    timeout: second,
                    thresholds: Thresholds {
                        healthy: 1,
                        unhealthy: 1,
                    },
                },
                authority: "app.test:80".into(),
                tls: None,
                http2: false,
                proxy_header: None,
            },
        };
        vec![UpstreamEndpoints {
            name: "app".to_owned(),
            has_check: false,
            is_untested: false,
            targets: vec![target],
        }]
    }

    #[tokio::test]
    async fn a_name_unknown_to_other_name_servers_is_a_lost_target() {
        let (before, after) = (named(Some(([192, 0, 2, 1], 80).into())), named(None));
        let found = failing_targets(&before, &after, true).await;
        let expected = "upstream \"app\" loses app.test:80: its name has no address by the bundle's `system.dns`, but \
                        one by the current setting";
        assert_eq!(found, [expected]);
        // By the same servers a look-up may fail at any time.
        assert!(failing_targets(&before, &after, false).await.is_empty());
        assert!(failing_targets(&after, &after, true).await.is_empty());
    }

    /// Answers requests except for the first ones.
    async fn serve(listener: TcpListener, mut silent: usize) {
        let mut open = Vec::new();
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            assert_ne!(stream.read(&mut [0; 1_024]).await.unwrap(), 0);
            if silent == 0 {
                let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
                stream.write_all(answer).await.unwrap();
            } else {
                silent -= 1;
            }
            open.push(stream);
        }
    }

    /// The failure of a target that leaves so many requests unanswered.
    async fn failure_after(silent: usize) -> Option<CheckError> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut upstreams = named(listener.local_addr().ok());
        let target = &mut upstreams[0].targets[0];
        target.probe.check = Check::Answer;
        let serving = tokio::spawn(serve(listener, silent));
        let found = failure(target).await;
        serving.abort();
        found
    }

    #[tokio::test]
    async fn a_probe_that_fails_by_time_alone_is_sent_a_third_time() {
        let (two, three) = tokio::join!(failure_after(2), failure_after(3));
        assert!(two.is_none(), "{two:?}");
        assert!(matches!(three, Some(CheckError::TimedOut)), "{three:?}");
    }
}
