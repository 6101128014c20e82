//! The rate limits and connection limits of routes. Their state outlives plans.

use proxy_errors::Reason;
use proxy_limits::{
    ClientShareLimit, DEFAULT_KEY_CAPACITY, KeySeed, KeyedBuckets, Rate, RateError,
    RateLimitSettings, TokenBucket,
};
use proxy_model::{BasicAuth, Limits, RateKey, RateLimit};
use proxy_pipeline::{RateBuckets, RateRule, RouteLimits, SharedLimit};
use proxy_plan::{Plan, RateStage, RoutePlan, Service, StateRegistry, StateTransaction};
use proxy_redis::{SharedBuckets, SharedRate, StoreSettings};
use proxy_telemetry::{Gauge, Registry, SharedCounter, names};
use std::sync::Arc;
use std::time::Duration;

/// Interval of [`LimitRegistry::settle`], which reads all buckets of all limits. The fastest limits
/// must be settled within a quarter of an hour.
pub(crate) const SETTLE_INTERVAL: Duration = Duration::from_mins(1);

/// Buckets and connection counts of the active plan, each kept across plans while its settings are
/// unchanged.
#[derive(Debug)]
pub(crate) struct LimitRegistry {
    seed: KeySeed,
    rates: StateRegistry<RateIdentity, RateState>,
    connections: StateRegistry<Arc<str>, ClientShareLimit>,
    /// Keyed limits, each with the number of dropped keys at the last count.
    evictions: Vec<Evictions>,
    stores: StateRegistry<StoreIdentity, SharedBuckets>,
    store_metrics: Vec<StoreMetrics>,
}

/// The limits of the next plan.
#[derive(Debug)]
pub(crate) struct RouteLimitTransaction {
    rates: StateTransaction<RateIdentity, RateState>,
    connections: StateTransaction<Arc<str>, ClientShareLimit>,
    stores: StateTransaction<StoreIdentity, SharedBuckets>,
    /// Indexed by route position, followed by the limits for requests without a route.
    pub(crate) routes: Arc<[RouteLimits]>,
}

/// Identity of a rate limit across plans: everything that its buckets depend on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct RateIdentity {
    scope: Scope,
    settings: RateLimitSettings,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Scope {
    Global,
    PerClient,
    PerRoute(Arc<str>),
    Policy(Arc<str>, RateKey),
    /// Wrong passwords on a route.
    Attempts(Arc<str>),
}

#[derive(Debug)]
enum RateState {
    One(Arc<TokenBucket>),
    Keyed(Arc<KeyedBuckets>),
}

/// A store: its name in metrics, and its connection settings.
type StoreIdentity = (Box<str>, StoreSettings);

#[derive(Debug)]
struct StoreMetrics {
    buckets: Arc<SharedBuckets>,
    up: Arc<Gauge>,
    unanswered: Arc<SharedCounter>,
    counted: u64,
}

#[derive(Debug)]
struct Evictions {
    table: Arc<KeyedBuckets>,
    counter: Arc<SharedCounter>,
    counted: u64,
}

impl LimitRegistry {
    /// A registry without limits. `seed` is the hash seed of tables with keys chosen by clients.
    pub(crate) fn new(seed: KeySeed) -> Self {
        Self {
            seed,
            rates: StateRegistry::default(),
            connections: StateRegistry::default(),
            evictions: Vec::new(),
            stores: StateRegistry::default(),
            store_metrics: Vec::new(),
        }
    }

    /// Prepares the limits that `plan` requires; new buckets are full at `now_ns`. Active limits
    /// are not changed.
    pub(crate) fn prepare(&self, plan: &Plan, now_ns: u64) -> RouteLimitTransaction {
        let mut transaction = RouteLimitTransaction {
            rates: self.rates.begin(),
            connections: self.connections.begin(),
            stores: self.stores.begin(),
            routes: Arc::default(),
        };
        let mut builder = Builder {
            rates: &mut transaction.rates,
            stores: &mut transaction.stores,
            limits: &plan.model().limits,
            seed: self.seed,
            now_ns,
        };
        let connections = &mut transaction.connections;
        let max = *plan.model().limits.max_connections_per_route;
        let routes = plan.routes().iter().zip(&plan.model().routes);
        let routes = routes.map(|(route, model)| {
            let is_served = !matches!(route.service, Service::Builtin(_));
            let own = || {
                connections.enter(Arc::clone(&route.id), || {
                    ClientShareLimit::new(max, self.seed)
                })
            };
            RouteLimits {
                connections: is_served.then(own).map(|limit| limit.as_ref().clone()),
                rates: builder.rules(route, model.policies.rate_limit.as_ref()),
                attempts: builder.attempts(route, model.policies.basic_auth.as_ref()),
            }
        });
        let mut routes: Vec<_> = routes.collect();
        routes.push(RouteLimits {
            connections: None,
            rates: builder.common(None),
            attempts: None,
        });
        transaction.routes = routes.into();
        transaction
    }

    /// Activates the prepared limits of `plan`.
    pub(crate) fn commit(
        &mut self,
        transaction: RouteLimitTransaction,
        plan: &Plan,
        registry: &Registry,
    ) {
        let RouteLimitTransaction {
            rates,
            connections,
            stores,
            routes: _,
        } = transaction;
        self.commit_stores(stores, registry);
        self.rates.commit(rates);
        self.connections.commit(connections);
        let max = *plan.model().limits.max_connections_per_route;
        for limit in self.connections.states() {
            limit.set_max(max);
        }
        let known = std::mem::take(&mut self.evictions);
        self.evictions = self
            .rates
            .entries()
            .filter_map(|(identity, state)| {
                let RateState::Keyed(table) = &**state else {
                    return None;
                };
                let counted = known.iter().find(|known| Arc::ptr_eq(&known.table, table));
                let route = identity.scope.route().unwrap_or_default();
                Some(Evictions {
                    table: Arc::clone(table),
                    counter: registry.counter(&names::RATE_LIMIT_KEYS_EVICTED_TOTAL, [route]),
                    counted: counted.map_or(0, |known| known.counted),
                })
            })
            .collect();
    }

    fn commit_stores(
        &mut self,
        stores: StateTransaction<StoreIdentity, SharedBuckets>,
        registry: &Registry,
    ) {
        self.stores.commit(stores);
        let known = std::mem::take(&mut self.store_metrics);
        let metrics = self.stores.entries().map(|((address, _), buckets)| {
            let counted = known
                .iter()
                .find(|known| Arc::ptr_eq(&known.buckets, buckets));
            StoreMetrics {
                buckets: Arc::clone(buckets),
                up: registry.gauge(&names::RATE_LIMIT_STORE_UP, [address]),
                unanswered: registry.counter(&names::RATE_LIMIT_STORE_UNANSWERED_TOTAL, [address]),
                counted: counted.map_or(0, |known| known.counted),
            }
        });
        self.store_metrics = metrics.collect();
    }

    /// The limits on connections, one for each route.
    pub(crate) fn connections(&self) -> Vec<ClientShareLimit> {
        let limits = self.connections.states();
        limits.map(|limit| ClientShareLimit::clone(limit)).collect()
    }

    /// Settles idle buckets before their clock wraps around. Call it once per [`SETTLE_INTERVAL`].
    pub(crate) fn settle(&self, now_ns: u64) {
        for state in self.rates.states() {
            match &**state {
                RateState::One(bucket) => bucket.settle(now_ns),
                RateState::Keyed(table) => table.settle(now_ns),
            }
        }
    }

    /// Counts the keys dropped since the last call.
    pub(crate) fn count_evictions(&mut self) {
        for Evictions {
            table,
            counter,
            counted,
        } in &mut self.evictions
        {
            let evicted = table.evicted();
            counter.add(evicted.saturating_sub(*counted));
            *counted = evicted;
        }
        for metrics in &mut self.store_metrics {
            metrics.up.set(u64::from(metrics.buckets.is_up()));
            let unanswered = metrics.buckets.unanswered();
            let more = unanswered.saturating_sub(metrics.counted);
            metrics.unanswered.add(more);
            metrics.counted = unanswered;
        }
    }
}

impl Scope {
    fn route(&self) -> Option<&str> {
        match self {
            Self::Global | Self::PerClient => None,
            Self::PerRoute(route) | Self::Policy(route, _) | Self::Attempts(route) => Some(route),
        }
    }
}

struct Builder<'a> {
    rates: &'a mut StateTransaction<RateIdentity, RateState>,
    stores: &'a mut StateTransaction<StoreIdentity, SharedBuckets>,
    limits: &'a Limits,
    seed: KeySeed,
    now_ns: u64,
}

impl Builder<'_> {
    /// The rate limits that apply to `route`. Builtin handlers have only the limit of their policy.
    fn rules(&mut self, route: &RoutePlan, policy: Option<&RateLimit>) -> Vec<RateRule> {
        let mut rules = Vec::new();
        rules.extend(policy.and_then(|policy| self.policy(route, policy)));
        if !matches!(route.service, Service::Builtin(_)) {
            rules.extend(self.common(Some(&route.id)));
        }
        rules
    }

    /// The limits of the `limits` block on requests of `route`, or without a route.
    fn common(&mut self, route: Option<&Arc<str>>) -> Vec<RateRule> {
        let global = self.limits.max_requests_per_second_global;
        let per_client = self.limits.max_requests_per_second_per_client;
        let per_route = self.limits.max_requests_per_second_per_route;
        let route_limit = route.map(|id| {
            let scope = Scope::PerRoute(Arc::clone(id));
            (Reason::RouteRateLimit, per_route, scope)
        });
        let limits = [
            Some((Reason::ClientRateLimit, per_client, Scope::PerClient)),
            route_limit,
            Some((Reason::GlobalRateLimit, global, Scope::Global)),
        ];
        let rules = limits.into_iter().flatten();
        let rules = rules.filter_map(|(reason, rate, scope)| {
            let per_second = *rate?;
            let settings = RateLimitSettings::per_second(per_second).ok()?;
            Some(RateRule {
                reason,
                events: per_second,
                observe_only: false,
                stage: RateStage::First,
                buckets: self.buckets(scope, settings)?,
                shared: None,
            })
        });
        rules.collect()
    }

    fn policy(&mut self, route: &RoutePlan, policy: &RateLimit) -> Option<RateRule> {
        let RateLimit {
            place: _,
            rate,
            burst,
            key,
            observe_only,
            store: _,
            store_timeout: _,
        } = policy;
        let settings = RateLimitSettings {
            rate: Rate::per(rate.events, rate.period_secs).ok()?,
            burst: **burst,
        };
        let scope = Scope::Policy(Arc::clone(&route.id), key.value.clone());
        Some(RateRule {
            reason: Reason::PolicyRateLimit,
            events: rate.events,
            observe_only: **observe_only,
            stage: route.rate_stage(&key.value),
            buckets: self.buckets(scope, settings)?,
            shared: self.shared(route, policy),
        })
    }

    /// The buckets that limit each client's wrong passwords; `None` without basic authentication.
    fn attempts(
        &mut self,
        route: &RoutePlan,
        auth: Option<&BasicAuth>,
    ) -> Option<Arc<KeyedBuckets>> {
        let rate = &auth?.attempts;
        let settings = RateLimitSettings {
            rate: Rate::per(rate.events, rate.period_secs).ok()?,
            burst: rate.events,
        };
        match self.buckets(Scope::Attempts(Arc::clone(&route.id)), settings)? {
            RateBuckets::Client(table) => Some(table),
            RateBuckets::One(_) | RateBuckets::Header(..) | RateBuckets::Path(_) => None,
        }
    }

    /// The limit's buckets in a store that several nodes share; `None` if the store's thread cannot
    /// be started: then the buckets of this process decide.
    fn shared(&mut self, route: &RoutePlan, policy: &RateLimit) -> Option<SharedLimit> {
        let store = policy.store.as_ref()?;
        let settings = StoreSettings {
            url: store.secret().to_owned(),
            timeout: *policy.store_timeout,
        };
        let identity = (store.address().into(), settings.clone());
        let made = || SharedBuckets::start(&settings);
        let buckets = match self.stores.try_enter(identity, made) {
            Ok(buckets) => buckets,
            Err(error) => {
                tracing::error!(%error, "no thread for a store of rate limits");
                return None;
            }
        };
        let rate = SharedRate {
            requests_per_second: policy.rate.events,
            burst: *policy.burst,
        };
        let SharedRate {
            requests_per_second: events,
            burst,
        } = rate;
        let (id, key) = (&route.id, &policy.key.value);
        Some(SharedLimit {
            buckets,
            rate,
            prefix: format!("proxyd:{id}:{key}:{events}/{burst}:").into(),
        })
    }

    /// The buckets of a limit: existing ones, or new. `None` for settings that
    /// [`RateLimitSettings`] cannot hold.
    fn buckets(&mut self, scope: Scope, settings: RateLimitSettings) -> Option<RateBuckets> {
        let (seed, now_ns) = (self.seed, self.now_ns);
        let identity = RateIdentity {
            scope: scope.clone(),
            settings,
        };
        let made = || new_state(&scope, settings, seed, now_ns);
        let state = self.rates.try_enter(identity, made).ok()?;
        Some(match (&*state, scope) {
            (RateState::One(bucket), _) => RateBuckets::One(Arc::clone(bucket)),
            (RateState::Keyed(table), Scope::Policy(_, RateKey::Header(name))) => {
                RateBuckets::Header(name, Arc::clone(table))
            }
            (RateState::Keyed(table), Scope::Policy(_, RateKey::Path)) => {
                RateBuckets::Path(Arc::clone(table))
            }
            (RateState::Keyed(table), _) => RateBuckets::Client(Arc::clone(table)),
        })
    }
}

fn new_state(
    scope: &Scope,
    settings: RateLimitSettings,
    seed: KeySeed,
    now_ns: u64,
) -> Result<RateState, RateError> {
    let is_keyed = match scope {
        Scope::Global | Scope::PerRoute(_) | Scope::Policy(_, RateKey::Route) => false,
        Scope::PerClient
        | Scope::Attempts(_)
        | Scope::Policy(_, RateKey::ClientIp | RateKey::Header(_) | RateKey::Path) => true,
    };
    Ok(if is_keyed {
        let table = KeyedBuckets::new(settings, DEFAULT_KEY_CAPACITY, seed)?;
        RateState::Keyed(Arc::new(table))
    } else {
        RateState::One(Arc::new(TokenBucket::new(settings, now_ns)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proxy_limits::MAX_RATE_EVENTS;
    use proxy_plan::TargetRegistry;

    const ANN: &str = "$2y$04$co9osgv9qGuwPD/XdNUES.f2whZRS2F1aiA/sEoPTBqLenVJfvbqS";

    /// The numbers of rate limits and of limits on attempts that `policies` of a route result in.
    fn prepared(policies: &str) -> (usize, usize) {
        let text = format!(
            "listeners {{ listener \"main\" {{ address \"127.0.0.1:0\" }} }}\n\
             routes {{ route \"r\" {{ upstream \"u\"; policies {{ {policies} }} }} }}\n\
             upstreams {{ upstream \"u\" {{ target \"127.0.0.1:81\" }} }}"
        );
        let loaded = proxy_config::parse(&text, "test.kdl").unwrap();
        let mut targets = TargetRegistry::default().begin();
        let plan = Plan::compile(1, Arc::new(loaded.model), &mut targets);
        let registry = LimitRegistry::new(KeySeed { low: 1, high: 2 });
        let limits = registry.prepare(&plan, 0).routes;
        (
            limits[0].rates.len(),
            usize::from(limits[0].attempts.is_some()),
        )
    }

    #[test]
    fn every_rate_that_a_configuration_may_have_is_applied() {
        for rate in [
            r#"rate "25001/day""#,
            r#"rate "400009/h""#,
            r#"rate "1/day"; burst 20000"#,
            r#"rate "1/day"; burst 100000000"#,
            r#"rate "1000000/day"; burst 100000000"#,
            r#"rate "999999/s"; burst 100000000; key "route""#,
            "requests-per-second 1000000",
        ] {
            let (rates, _) = prepared(&format!("rate-limit {{ {rate} }}"));
            assert_eq!(rates, 1, "{rate}");
        }
        for attempts in ["25001/day", "1000000/day", "999983/h"] {
            let auth = format!("basic-auth {{ user \"ann\" \"{ANN}\"; attempts \"{attempts}\" }}");
            assert_eq!(prepared(&auth).1, 1, "{attempts}");
        }
    }

    #[test]
    fn the_fastest_buckets_are_settled_several_times_before_they_would_wrap() {
        let fastest = RateLimitSettings::per_second(MAX_RATE_EVENTS).unwrap();
        let odd = RateLimitSettings::per_second(MAX_RATE_EVENTS - 1).unwrap();

        for settings in [fastest, odd] {
            let bucket = TokenBucket::new(settings, 0).unwrap();
            assert!(SETTLE_INTERVAL * 10 < bucket.settle_within());
        }
    }
}
