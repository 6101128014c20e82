//! Targets that a bundle would lose: by a health check that they fail, by TLS that they do not speak, or by addresses at
//! which there is no server.

use super::endpoints::{Endpoint, UpstreamEndpoints};
use proxy_probe::{CheckError, check};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// Longest time of one probe. A health check that may take longer is not judged by it.
const PROBE_TIME: Duration = Duration::from_secs(5);
/// Longest time for all targets. Those that are not reached then are not judged.
const MAX_TIME: Duration = Duration::from_secs(20);
/// Delay before a failed probe is sent once more.
const REPEAT_DELAY: Duration = Duration::from_millis(250);

/// A message for each target in use that fails the rules of `after` and passes those of `before`, and for each upstream
/// with new targets of which none passes, although a target of before does. An upstream that was down is not the bundle's
/// fault.
pub(super) async fn failing_targets(
    before: &[UpstreamEndpoints],
    after: &[UpstreamEndpoints],
) -> Vec<String> {
    let mut found = Vec::new();
    let judging = async {
        for upstream in after {
            found.extend(judge(before, upstream).await);
        }
    };
    if timeout(MAX_TIME, judging).await.is_err() {
        tracing::warn!("targets of the bundle take long to answer: not all are judged");
    }
    found
}

async fn judge(before: &[UpstreamEndpoints], upstream: &UpstreamEndpoints) -> Option<String> {
    let own = before.iter().find(|old| old.name == upstream.name);
    for target in &upstream.targets {
        let Some(old) = former(before, own, target) else {
            continue;
        };
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
    if upstream.targets.iter().all(is_known) {
        return None;
    }
    let mut last = None;
    for target in &upstream.targets {
        last = Some(failure(target).await?);
    }
    for old in &own.targets {
        if passes(old).await {
            return Some(down(upstream, &last?));
        }
    }
    None
}

/// The target of before at the same address: of the same upstream, or of a renamed one.
fn former<'e>(
    before: &'e [UpstreamEndpoints],
    own: Option<&'e UpstreamEndpoints>,
    target: &Endpoint,
) -> Option<&'e Endpoint> {
    let upstreams = own.into_iter().chain(before);
    let mut targets = upstreams.flat_map(|upstream| &upstream.targets);
    targets.find(|old| old.is_same_target(target))
}

/// The error of two probes in a row. `None` for a target that passes one, or that has not answered in the time of a
/// rehearsal.
async fn failure(target: &Endpoint) -> Option<CheckError> {
    probed(target).await.err()?;
    sleep(REPEAT_DELAY).await;
    let error = probed(target).await.err()?;
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
        "upstream \"{}\" loses {}: its {probe} fails by the bundle's rules ({error}), and not by those of before",
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
        "upstream \"{}\" is down: {probe} {named}, and there is one to a target of before ({error})",
        upstream.name
    )
}
