//! One plan of a replay, with the state of its limits and breakers in virtual time.

use super::answer::ReplayedAnswer;
use super::recorded_head::RecordedHead;
use crate::decide::{Decision, Outcome};
use crate::diff::answer::Answer;
use crate::plan::Plan;
use crate::route::{RateStage, RoutePlan, Service, rate_key_value};
use crate::upstream_states::AssumeHealthy;
use http::HeaderName;
use http::uri::PathAndQuery;
use proxy_limits::{
    ClientKey, DEFAULT_KEY_CAPACITY, KeySeed, KeyedBuckets, Rate, RateKey, RateLimitSettings,
};
use proxy_model as model;
use proxy_routing::forgiving_path;
use std::cell::OnceCell;
use std::collections::HashSet;
use std::rc::Rc;

/// Replays are reproducible: recordings do not attack the hash.
const SEED: KeySeed = KeySeed { low: 1, high: 2 };

/// Maximum number of rate-limit buckets of a plan, divided evenly among the limits keyed by client,
/// value or path: a configuration of 10 000 routes with limits would take gigabytes.
const MAX_KEYS: usize = 400_000;
/// Minimum number of keys of one rate limit.
const MIN_KEYS_PER_LIMIT: usize = 64;

/// One plan with its states.
#[derive(Debug)]
pub(super) struct ReplaySide<'p> {
    plan: &'p Plan,
    states: AssumeHealthy,
    /// Rate limits in their order of evaluation, by the route's index; last those of requests
    /// without a route.
    limits: Vec<Vec<Rc<RateRule>>>,
    /// Buckets of each keyed rate limit.
    keys_per_limit: usize,
}

/// An enforced rate limit.
#[derive(Debug)]
struct RateRule {
    settings: RateLimitSettings,
    key: RateRuleKey,
    stage: RateStage,
    /// Created at the first request, since most limits of a large configuration see none.
    buckets: OnceCell<Option<KeyedBuckets>>,
}

#[derive(Debug)]
enum RateRuleKey {
    Client,
    Header(HeaderName),
    Path,
    /// A single bucket for all requests.
    One,
}

impl<'p> ReplaySide<'p> {
    pub(super) fn new(plan: &'p Plan) -> Self {
        let limits = rules(plan);
        let own = limits.iter().flatten().filter(|rule| rule.is_keyed());
        // The limit for each client is a single one, in the list of each route.
        let distinct: HashSet<*const RateRule> = own.map(Rc::as_ptr).collect();
        let share = MAX_KEYS / distinct.len().max(1);
        Self {
            plan,
            states: AssumeHealthy::new(plan),
            limits,
            keys_per_limit: share.clamp(MIN_KEYS_PER_LIMIT, DEFAULT_KEY_CAPACITY),
        }
    }

    /// The answer to a request, which takes its tokens and counts for breakers.
    pub(super) fn answer(&self, head: &RecordedHead) -> ReplayedAnswer {
        let request = head.request(self.plan, &head.headers);
        let decision = self.plan.decide(&request, &self.states, head.at);
        let now_ns = u64::try_from(head.at.as_nanos()).unwrap_or(u64::MAX);
        // As in the proxy, a request that is refused and one without a route take their tokens too.
        if !self.is_admitted(&decision, head, now_ns) {
            let route = decision.route.map(|route| route.id.to_string());
            return ReplayedAnswer::RateLimited(route);
        }
        if let Some(route) = decision.route
            && !passes_breaker(route, &decision, head, now_ns)
        {
            return ReplayedAnswer::BreakerOpen(route.id.to_string());
        }
        ReplayedAnswer::Decided(Answer::new(self.plan, &decision))
    }

    fn is_admitted(&self, decision: &Decision<'_>, head: &RecordedHead, now_ns: u64) -> bool {
        let rules = match decision.route {
            Some(route) => self.limits.get(route.index),
            None => self.limits.last(),
        };
        let is_refused = matches!(decision.outcome, Outcome::Refuse(_));
        let mut reached = rules
            .into_iter()
            .flatten()
            .filter(|rule| !is_refused || rule.stage != RateStage::AfterCredentials);
        reached.all(|rule| rule.admits(head, now_ns, self.keys_per_limit))
    }
}

/// Returns true if the route's breaker admits the request. The recorded outcome is then counted, if
/// the recorded upstream is the same.
fn passes_breaker(
    route: &RoutePlan,
    decision: &Decision<'_>,
    head: &RecordedHead,
    now_ns: u64,
) -> bool {
    let (Some(breaker), Outcome::Forward(upstream, _)) = (&route.breaker, &decision.outcome) else {
        return true;
    };
    let Ok(permit) = breaker.admit(now_ns) else {
        return false;
    };
    let is_same = head.upstream.as_deref() == Some(&*upstream.name);
    let failed = is_same && head.status.is_some_and(|status| 500 <= status);
    if failed {
        permit.failure(now_ns);
    } else {
        permit.success(now_ns);
    }
    true
}

/// The enforced rate limits of each route, followed by those of requests without a route. Built-in
/// handlers have only their own.
fn rules(plan: &Plan) -> Vec<Vec<Rc<RateRule>>> {
    let model = &**plan.model();
    let limits = &model.limits;
    let per_second = |rate: Option<model::Setting<u32>>, key: RateRuleKey| {
        Some(RateRule::new(
            RateLimitSettings::per_second(*rate?).ok()?,
            key,
            RateStage::First,
        ))
    };
    let client = per_second(
        limits.max_requests_per_second_per_client,
        RateRuleKey::Client,
    );
    let global = per_second(limits.max_requests_per_second_global, RateRuleKey::One);
    let routes = plan.routes().iter().zip(&model.routes);
    let of_routes = routes.map(|(route, settings)| {
        let own = own_rule(route, settings);
        let shared = if matches!(route.service, Service::Builtin(_)) {
            [None, None, None]
        } else {
            let all = limits.max_requests_per_second_per_route;
            [
                client.clone(),
                per_second(all, RateRuleKey::One),
                global.clone(),
            ]
        };
        let mut rules: Vec<_> = own
            .into_iter()
            .chain(shared.into_iter().flatten())
            .collect();
        rules.sort_by_key(|rule| rule.stage);
        rules
    });
    let unrouted = [client.clone(), global.clone()].into_iter().flatten();
    of_routes.chain([unrouted.collect()]).collect()
}

fn own_rule(route: &RoutePlan, settings: &model::Route) -> Option<Rc<RateRule>> {
    let limit = settings
        .policies
        .rate_limit
        .as_ref()
        .filter(|limit| !*limit.observe_only)?;
    let bucket = RateLimitSettings {
        rate: Rate::per(limit.rate.events, limit.rate.period_secs).ok()?,
        burst: *limit.burst,
    };
    let key = match &limit.key.value {
        model::RateKey::ClientIp => RateRuleKey::Client,
        model::RateKey::Header(name) => RateRuleKey::Header(name.clone()),
        model::RateKey::Path => RateRuleKey::Path,
        model::RateKey::Route => RateRuleKey::One,
    };
    let stage = route.rate_stage(&limit.key.value);
    Some(RateRule::new(bucket, key, stage))
}

impl RateRule {
    fn new(settings: RateLimitSettings, key: RateRuleKey, stage: RateStage) -> Rc<Self> {
        Rc::new(Self {
            settings,
            key,
            stage,
            buckets: OnceCell::new(),
        })
    }

    /// Returns true if the limit has a bucket for each client, value or path.
    fn is_keyed(&self) -> bool {
        match self.key {
            RateRuleKey::One => false,
            RateRuleKey::Client | RateRuleKey::Header(_) | RateRuleKey::Path => true,
        }
    }

    fn admits(&self, head: &RecordedHead, now_ns: u64, keys: usize) -> bool {
        let buckets = self.buckets.get_or_init(|| {
            let capacity = if self.is_keyed() { keys } else { 1 };
            KeyedBuckets::new(self.settings, capacity, SEED).ok()
        });
        let Some(buckets) = buckets else {
            return true;
        };
        let path = head.target.as_ref().map_or("/", PathAndQuery::path);
        let decision = match &self.key {
            RateRuleKey::Client => {
                let client = ClientKey::from(head.client_ip);
                buckets.admit(&RateKey::Client(client), now_ns)
            }
            RateRuleKey::Header(name) => {
                let value = rate_key_value(&head.headers, name);
                buckets.admit(&RateKey::Header(value.as_deref()), now_ns)
            }
            RateRuleKey::Path => buckets.admit(&RateKey::Path(&forgiving_path(path).0), now_ns),
            RateRuleKey::One => buckets.admit(&RateKey::Route(0), now_ns),
        };
        decision.admitted
    }
}
