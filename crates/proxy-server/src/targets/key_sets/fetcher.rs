//! The fetches of one key set.

use crate::runtime::task_scope::TaskContext;
use proxy_auth::{JwtKeys, RemoteKeys};
use proxy_plan::{KeySetIdentity, KeySetPlan, KeySetTimes};
use proxy_probe::{ProbeSettings, fetch};
use proxy_telemetry::{FetchedKeySet, Gauge, Lifecycle, Registry, names};
use proxy_upstream::TargetState;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::{Instant, MissedTickBehavior};

/// Interval of checking whether an early fetch is requested.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);
/// Maximum size of a key set, in bytes.
const MAX_BYTES: usize = 1 << 20;

/// The targets that a key set is fetched from.
#[derive(Clone, Debug)]
pub(super) struct KeySetSource {
    /// State of each target, and the request to it.
    pub(super) targets: Vec<(Arc<TargetState>, ProbeSettings)>,
}

/// Sources are equal if they query the same targets with the same settings.
impl PartialEq for KeySetSource {
    fn eq(&self, other: &Self) -> bool {
        let Self { targets } = self;
        let mut pairs = targets.iter().zip(&other.targets);
        targets.len() == other.targets.len()
            && pairs.all(|((state, own), (other, theirs))| {
                Arc::ptr_eq(state, other) && own.sends_the_same(theirs)
            })
    }
}

/// The fetches of one key set, with their logs, metrics and status.
pub(super) struct Fetcher {
    identity: KeySetIdentity,
    keys: Arc<RemoteKeys>,
    url: String,
    state: FetchedKeySet,
    /// The last fetch that succeeded.
    fetched: Option<Instant>,
    registry: Arc<Registry>,
    lifecycle: Arc<Lifecycle>,
    /// Metrics of the keys in use and of the last success. A gauge is exported as long as it is
    /// held.
    gauges: (Arc<Gauge>, Arc<Gauge>),
}

impl Fetcher {
    pub(super) fn new(
        set: &KeySetPlan,
        registry: Arc<Registry>,
        lifecycle: Arc<Lifecycle>,
    ) -> Self {
        let url = set.identity.url.to_string();
        let labels = [set.identity.upstream.as_str(), url.as_str()];
        let gauges = (
            registry.gauge(&names::KEY_SET_KEYS, labels),
            registry.gauge(&names::KEY_SET_LAST_SUCCESS_TIMESTAMP_SECONDS, labels),
        );
        Self {
            identity: set.identity.clone(),
            keys: Arc::clone(&set.state),
            url,
            gauges,
            state: FetchedKeySet::default(),
            fetched: None,
            registry,
            lifecycle,
        }
    }

    /// Fetches at once and then repeatedly, until the sender of the settings is dropped.
    pub(super) async fn run(mut self, context: TaskContext<KeySetSource>) {
        let TaskContext { settings, now } = context;
        let KeySetTimes {
            min_interval,
            max_interval,
            max_age,
        } = self.identity.times;
        // The series of both results exist from the beginning, so that an alert can compare them.
        self.count("success", 0);
        self.count("failure", 0);
        let mut ticks = tokio::time::interval(LOOK_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // Times of the next fetch: on request, and at the latest.
        let mut next: Option<(Instant, Instant)> = None;
        while settings.has_changed().is_ok() {
            let started = ticks.tick().await;
            self.drop_old(max_age, started);
            if let Some((earliest, due)) = next {
                let is_requested = self.keys.is_requested() && earliest <= started;
                if started < due && !is_requested {
                    continue;
                }
            }
            self.keys.clear_request();
            let source = settings.borrow().clone();
            let pause = match fetch_any(&source).await {
                Ok((keys, age)) => {
                    self.succeeded(keys, started, now());
                    let age = age.unwrap_or(max_interval);
                    age.clamp(min_interval, max_interval)
                }
                Err(error) => {
                    self.failed(error);
                    min_interval
                }
            };
            next = Some((started + min_interval, started + pause));
        }
    }

    /// Stops the use of keys that are too old.
    fn drop_old(&mut self, max_age: Duration, now: Instant) {
        if self
            .fetched
            .is_some_and(|at| max_age <= now.duration_since(at))
        {
            self.fetched = None;
            self.state.keys = 0;
            let (url, upstream) = (&self.url, &self.identity.upstream);
            tracing::error!(%upstream, %url, "the keys of an issuer are too old; its tokens are refused");
            self.show();
            self.keys.set(None);
        }
    }

    fn succeeded(&mut self, keys: JwtKeys, started: Instant, now: SystemTime) {
        let (url, upstream) = (&self.url, &self.identity.upstream);
        let count = keys.len();
        if self.state.failure.take().is_some() || self.state.fetched_at.is_none() {
            tracing::info!(%upstream, %url, keys = count, "the keys of an issuer were fetched");
        }
        self.fetched = Some(started);
        self.state.keys = count;
        self.state.fetched_at = Some(now);
        self.count("success", 1);
        self.show();
        self.keys.set(Some(keys));
    }

    fn failed(&mut self, error: String) {
        let (url, upstream) = (&self.url, &self.identity.upstream);
        if self.state.failure.as_ref() != Some(&error) {
            let in_use = self.state.keys;
            tracing::warn!(%upstream, %url, error, in_use, "the keys of an issuer cannot be fetched");
        }
        self.state.failure = Some(error);
        self.count("failure", 1);
        self.show();
    }

    fn count(&self, result: &str, fetches: u64) {
        let labels = [self.identity.upstream.as_str(), &self.url, result];
        let counter = self.registry.counter(&names::KEY_SET_FETCHES_TOTAL, labels);
        counter.add(fetches);
    }

    fn show(&self) {
        let (keys, last_success) = &self.gauges;
        keys.set(u64::try_from(self.state.keys).unwrap_or(u64::MAX));
        if let Some(at) = self.state.fetched_at {
            let seconds = at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
            last_success.set(seconds);
        }
        let upstream = &self.identity.upstream;
        self.lifecycle.set_key_set(upstream, &self.url, &self.state);
    }
}

/// The keys from the first target that has them, healthy ones first, and how long they may be kept.
async fn fetch_any(source: &KeySetSource) -> Result<(JwtKeys, Option<Duration>), String> {
    let mut last_error = "the upstream has no target with an address".to_owned();
    let mut targets: Vec<_> = source.targets.iter().collect();
    targets.sort_by_key(|(state, _)| state.unhealthy_reason().is_some());
    for (state, settings) in targets {
        let Some(address) = state.address() else {
            continue;
        };
        match fetch_from(address, settings).await {
            Ok(fetched) => return Ok(fetched),
            Err(error) => last_error = format!("{}: {error}", settings.authority),
        }
    }
    Err(last_error)
}

async fn fetch_from(
    address: SocketAddr,
    settings: &ProbeSettings,
) -> Result<(JwtKeys, Option<Duration>), String> {
    let document = fetch(Some(address), settings).await?;
    if MAX_BYTES < document.body.len() {
        return Err("the key set is larger than 1 MiB".to_owned());
    }
    let keys = JwtKeys::from_jwks(&document.body).map_err(|error| error.to_string())?;
    Ok((keys, document.max_age))
}
