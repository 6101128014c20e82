//! Key sets of token issuers, fetched concurrently with requests.

mod fetcher;

use crate::runtime::system_clock;
use crate::runtime::task_scope::TaskScope;
use crate::tls::{LoadedTls, LoadedUpstreamTls};
use fetcher::{Fetcher, KeySetSource};
use proxy_health::{CheckTiming, Thresholds};
use proxy_plan::{KeySetIdentity, KeySetPlan, Plan, TargetPlan, UpstreamPlan};
use proxy_probe::{Check, ProbeSettings};
use proxy_telemetry::{Lifecycle, Registry};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// Maximum time of one fetch.
const TIMEOUT: Duration = Duration::from_secs(10);

/// One task for each key set of the active plan.
#[derive(Debug)]
pub(crate) struct KeySetTasks {
    tasks: TaskScope<KeySetIdentity, KeySetSource>,
    registry: Arc<Registry>,
    lifecycle: Arc<Lifecycle>,
}

impl KeySetTasks {
    pub(crate) fn new(registry: &Arc<Registry>, lifecycle: &Arc<Lifecycle>) -> Self {
        Self {
            tasks: TaskScope::new(system_clock::now),
            registry: Arc::clone(registry),
            lifecycle: Arc::clone(lifecycle),
        }
    }

    /// Fetches exactly the key sets of `plan` from now on. A key set that was fetched before keeps
    /// its keys and times.
    pub(crate) fn apply(&mut self, plan: &Plan, loaded: &LoadedTls) {
        let mut tasks = self.tasks.begin();
        let mut seen = HashSet::new();
        for set in plan.key_sets() {
            if !seen.insert(&set.identity) {
                continue;
            }
            let KeySetIdentity { url, upstream, .. } = &set.identity;
            let name = format!("key set {url} of {upstream}");
            let registry = Arc::clone(&self.registry);
            let fetcher = Fetcher::new(set, registry, Arc::clone(&self.lifecycle));
            let source = source(set, plan, loaded);
            tasks.add(set.identity.clone(), name, source, |context| {
                fetcher.run(context)
            });
        }
        self.tasks.commit(tasks);
        let running: HashSet<(String, String)> = self
            .tasks
            .keys()
            .map(|own| (own.upstream.clone(), own.url.to_string()))
            .collect();
        self.lifecycle.retain_key_sets(|upstream, url| {
            running.contains(&(upstream.to_owned(), url.to_owned()))
        });
    }
}

/// The targets that a key set is fetched from, by the active plan.
fn source(set: &KeySetPlan, plan: &Plan, loaded: &LoadedTls) -> KeySetSource {
    let upstream = plan.upstreams().get(set.upstream);
    let tls = loaded.upstreams.get(set.upstream).and_then(Option::as_ref);
    let targets = upstream.map(|upstream| {
        let targets = upstream.targets.iter();
        targets.map(move |target| {
            (
                Arc::clone(&target.state),
                settings(set, upstream, target, tls),
            )
        })
    });
    KeySetSource {
        targets: targets.into_iter().flatten().collect(),
    }
}

fn settings(
    set: &KeySetPlan,
    upstream: &UpstreamPlan,
    target: &TargetPlan,
    tls: Option<&LoadedUpstreamTls>,
) -> ProbeSettings {
    let KeySetIdentity { url, times, .. } = &set.identity;
    let tls = tls.and_then(|LoadedUpstreamTls { tls, names }| {
        Some((Arc::clone(tls), names.get(target.position)?.clone()))
    });
    ProbeSettings {
        check: Check::Http {
            path: url.path.as_str().to_owned(),
            expected: 200..=200,
            host: Some(url.authority.as_str().to_owned()),
        },
        timing: CheckTiming {
            interval: times.max_interval,
            timeout: TIMEOUT,
            thresholds: Thresholds {
                healthy: 1,
                unhealthy: 1,
            },
        },
        authority: Arc::clone(&target.authority),
        tls,
        http2: upstream.http2,
        proxy_header: upstream.local_header(),
    }
}
