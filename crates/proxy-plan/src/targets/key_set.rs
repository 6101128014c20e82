//! Key sets that are fetched from upstreams.

use proxy_auth::RemoteKeys;
use proxy_model::{KeySetUrl, RemoteKeySet, Upstream};
use std::sync::Arc;
use std::time::Duration;

/// A key set that is fetched from an upstream.
#[derive(Clone, Debug)]
pub struct KeySetPlan {
    /// Identity of the key set across plans.
    pub identity: KeySetIdentity,
    /// The keys, shared by all plans and workers.
    pub state: Arc<RemoteKeys>,
    /// Index of the upstream.
    pub upstream: usize,
}

/// Identity of a key set across plans: keys are kept while their source is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeySetIdentity {
    /// URL of the key set; equal URLs share their keys.
    pub url: KeySetUrl,
    /// The name of the upstream.
    pub upstream: String,
    /// Times of fetches.
    pub times: KeySetTimes,
    /// Targets and TLS of the upstream.
    trust: String,
}

/// Times of the fetches of a key set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeySetTimes {
    /// Shortest time between two fetches.
    pub min_interval: Duration,
    /// Longest time between two fetches.
    pub max_interval: Duration,
    /// Longest use of a set after its fetch.
    pub max_age: Duration,
}

impl KeySetIdentity {
    /// The identity of the key set of `remote` from `upstream`, with its TLS settings.
    pub(super) fn new(remote: &RemoteKeySet, upstream: &Upstream, tls: &str) -> Self {
        let RemoteKeySet {
            url,
            upstream: _,
            min_interval,
            max_interval,
            max_age,
        } = remote;
        let targets = upstream.targets.iter();
        let targets: Vec<String> = targets.map(|one| one.address.to_string()).collect();
        Self {
            url: url.value.clone(),
            upstream: upstream.name.clone(),
            times: KeySetTimes {
                min_interval: **min_interval,
                max_interval: **max_interval,
                max_age: **max_age,
            },
            trust: format!("{targets:?} {tls}"),
        }
    }
}
