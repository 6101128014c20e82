//! The risk of other limits of rate, size, number and time.

use super::values::{Classified, Routes, instead, number};
use crate::diff::parts::Change;
use crate::diff::risk::class::RiskClass;
use crate::diff::risk::{Compared, Risk};
use crate::diff::setting_change::SettingChange;
use proxy_model::registry::policies::{cache, cors, jwt};
use proxy_model::registry::{
    agents, circuit_breaker, limits, listener_tls, listeners, outlier_detection, policies, routes,
    system, upstreams,
};
use proxy_model::{Model, RateLimit, Route, Service};
use std::time::Duration;

/// Minimum factor of a risky decrease in a rate, size or number.
const RISKY_DECREASE: f64 = 2.0;

/// Minimum factor of a risky decrease in a time: few requests take as long as they may.
const RISKY_TIME_DECREASE: f64 = 4.0;

/// Minimum factor of a risky growth of a rate limit.
const RISKY_RATE_GROWTH: f64 = 10.0;

/// Minimum factor of a risky growth of a breaker's open time, or of the share of retries.
const RISKY_GROWTH: f64 = 4.0;

/// Period in seconds for comparing rate limits: the requests in it, with the burst at its start.
const RATE_PERIOD: f64 = 60.0;

/// Minimum factor of a growth that leaves a limit without effect.
const UNLIMITED_GROWTH: f64 = 1_000.0;

/// Minimum factor of a growth by which a time or number no longer protects from slow or hasty
/// clients, or from dead targets.
const UNPROTECTED_GROWTH: f64 = 30.0;

/// Blocks with numbers that refuse nothing when they fall: shares, thresholds of recovery,
/// intervals, levels and logs.
const NO_LIMITS: [&str; 21] = [
    "admin.",
    cache::CACHE.path,
    cache::ROUTE_CACHE.path,
    "control-plane.",
    "observability.",
    "routes.route.policies.compression.",
    circuit_breaker::HALF_OPEN_MAX_REQUESTS.path,
    circuit_breaker::SUCCESS_THRESHOLD.path,
    cors::CORS.path,
    jwt::JWKS_MIN_INTERVAL.path,
    jwt::JWKS_MAX_INTERVAL.path,
    listener_tls::TLS.path,
    outlier_detection::MIN_REQUESTS.path,
    policies::ATTEMPTS.path,
    policies::RATE_LIMIT.path,
    policies::SHADOW.path,
    routes::PRIORITY.path,
    "system.dns.",
    system::WORKER_THREADS.path,
    upstreams::SLOW_START.path,
    upstreams::TARGETS.path,
];

/// Limits without a default: one that is added limits what was unlimited.
const NEW_LIMITS: [&str; 7] = [
    listeners::MAX_CONNECTION_AGE.path,
    listeners::MAX_REQUESTS_PER_CONNECTION.path,
    upstreams::MAX_CONNECTIONS.path,
    upstreams::MAX_LIFETIME.path,
    policies::PER_TRY_TIMEOUT.path,
    policies::REQUEST.path,
    limits::MAX_MEMORY.path,
];

/// Limits in [`NEW_LIMITS`], each with the minimum of a usual new value: connections end
/// between two requests, and few responses take an hour.
const USUAL_LIMITS: [(&str, f64); 4] = [
    (listeners::MAX_CONNECTION_AGE.path, 300.0),
    (listeners::MAX_REQUESTS_PER_CONNECTION.path, 1_000.0),
    (upstreams::MAX_LIFETIME.path, 300.0),
    (policies::REQUEST.path, 3_600.0),
];

/// Settings outside of listeners that protect from dead targets and agents.
const PROTECTIONS: [&str; 3] = [
    upstreams::CONNECT.path,
    policies::CONNECT.path,
    agents::TIMEOUT.path,
];

/// Settings that a circuit breaker always has.
const BREAKERS: [&str; 2] = [
    circuit_breaker::FAILURE_THRESHOLD.path,
    agents::FAILURE_THRESHOLD.path,
];

/// Times in which a breaker refuses requests: longer is tighter.
const OPEN_TIMES: [&str; 2] = [circuit_breaker::TIMEOUT.path, agents::BREAKER_TIMEOUT.path];

pub(super) fn risk(
    compared: &Compared<'_>,
    change: &SettingChange,
    [old, new]: Routes<'_>,
) -> Classified {
    let row = change.row;
    if let Some(text) = lost_reserve(change) {
        return Some((RiskClass::LimitTightened, text));
    }
    if NO_LIMITS.iter().any(|block| row.starts_with(block)) {
        return None;
    }
    if BREAKERS.contains(&row) && change.change == Change::Removed {
        let text = format!("the circuit breaker is removed: {}", instead(change));
        return Some((RiskClass::LimitRemoved, text));
    }
    // A time for the whole exchange is new even if it is as long as the upstream's, which ends with
    // the head.
    let is_new = row == policies::REQUEST.path && change.change == Change::Added;
    let before =
        number(&change.before).or_else(|| inherited(compared.before, old, row).filter(|_| !is_new));
    let after = number(&change.after).or_else(|| inherited(compared.after, new, row));
    match (before, after) {
        (Some(before), Some(after)) if after * tighter(row) <= before => {
            let text = format!("`{}` is {after} instead of {before}", change.path);
            Some((RiskClass::LimitTightened, text))
        }
        (Some(before), Some(after))
            if before * RISKY_GROWTH <= after && OPEN_TIMES.contains(&row) =>
        {
            let text = format!(
                "requests are refused longer: `{}` is {after} instead of {before}",
                change.path
            );
            Some((RiskClass::LimitTightened, text))
        }
        (Some(before), Some(after))
            if before * RISKY_GROWTH <= after && row == policies::BUDGET_PERCENT.path =>
        {
            let text =
                format!("{after} % of an upstream's requests may be retries instead of {before} %");
            Some((RiskClass::LimitRemoved, text))
        }
        (Some(before), Some(after))
            if before * UNLIMITED_GROWTH <= after && is_limit(row)
                || before * UNPROTECTED_GROWTH <= after && protects(row) =>
        {
            let text = format!(
                "limits nothing: `{}` is {after} instead of {before}",
                change.path
            );
            Some((RiskClass::LimitRemoved, text))
        }
        (Some(_), Some(_)) => None,
        _ if !is_limit(row) => None,
        (None, Some(after)) if is_usual(row, after) => None,
        (None, Some(after)) => {
            let text = format!("new limit: `{}` is {after}", change.path);
            Some((RiskClass::LimitTightened, text))
        }
        (Some(before), None) => {
            let text = format!("the limit is removed: `{}` was {before}", change.path);
            Some((RiskClass::LimitRemoved, text))
        }
        (None, None) => None,
    }
}

/// The risk of fewer workers or retries, or of a breaker that hardly closes.
fn lost_reserve(change: &SettingChange) -> Option<String> {
    let row = change.row;
    let default = |value: u32| Some(f64::from(value));
    let after = number(&change.after)?;
    let before = number(&change.before);
    let is_less = if row == policies::ATTEMPTS.path {
        before.or_else(|| default(policies::ATTEMPTS.default()))? > 0.0 && after == 0.0
    } else if row == circuit_breaker::SUCCESS_THRESHOLD.path {
        let before = before.or_else(|| default(circuit_breaker::SUCCESS_THRESHOLD.default()))?;
        before * RISKY_RATE_GROWTH <= after
    } else if row == system::WORKER_THREADS.path {
        // 0 is one for each core.
        match before.filter(|threads| *threads > 0.0) {
            Some(before) => after > 0.0 && after * RISKY_DECREASE <= before,
            None => 0.0 < after && after < RISKY_DECREASE,
        }
    } else {
        false
    };
    is_less.then(|| instead(change))
}

/// Returns true if a larger value permits more to slow or hasty clients, or to dead targets.
fn protects(row: &str) -> bool {
    let is_of_clients = row.starts_with(listeners::TIMEOUTS.path)
        || [
            listeners::MAX_CONCURRENT_STREAMS.path,
            listeners::MAX_STREAM_RESETS.path,
        ]
        .contains(&row);
    is_of_clients || PROTECTIONS.contains(&row)
}

/// Returns true if a new limit of this value ends few exchanges.
fn is_usual(row: &str, value: f64) -> bool {
    USUAL_LIMITS
        .iter()
        .any(|(usual, least)| *usual == row && *least <= value)
}

/// Returns true if a setting without a value means that there is no limit.
fn is_limit(row: &str) -> bool {
    NEW_LIMITS.contains(&row) || row == policies::MAX_BODY_SIZE.path || row.starts_with("limits.")
}

fn tighter(row: &str) -> f64 {
    let is_time = ["-secs", "-seconds", "-ms"];
    if is_time.iter().any(|unit| row.ends_with(unit)) {
        RISKY_TIME_DECREASE
    } else {
        RISKY_DECREASE
    }
}

/// The value that applies to a part without its own. A new breaker is compared with one that has
/// the defaults.
fn inherited(model: &Model, route: Option<&Route>, row: &str) -> Option<f64> {
    if row == policies::MAX_BODY_SIZE.path {
        return route.map(|_| bytes(*model.limits.max_body_size_bytes));
    } else if row == upstreams::MAX_IDLE.path {
        return Some(f64::from(*model.limits.max_idle_connections_per_upstream));
    } else if row == policies::BUDGET_PERCENT.path {
        return Some(f64::from(policies::BUDGET_PERCENT.default()));
    } else if BREAKERS.contains(&row) {
        return Some(f64::from(circuit_breaker::FAILURE_THRESHOLD.default()));
    } else if OPEN_TIMES.contains(&row) {
        return Some(circuit_breaker::TIMEOUT.default().as_secs_f64());
    }
    let times = &upstream(model, route?)?.timeouts;
    let time: Duration = if row == policies::REQUEST.path {
        *times.request
    } else if row == policies::CONNECT.path {
        *times.connect
    } else if row == policies::READ.path {
        *times.read
    } else if row == policies::IDLE.path {
        *times.idle
    } else {
        return None;
    };
    Some(time.as_secs_f64())
}

fn upstream<'m>(model: &'m Model, route: &Route) -> Option<&'m proxy_model::Upstream> {
    match &route.service {
        Service::Upstream(index) => model.upstream(index.value),
        Service::Builtin(_) | Service::Static(_) | Service::Redirect(_) | Service::Respond(_) => {
            None
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "compared by a factor of ten")]
fn bytes(bytes: u64) -> f64 {
    bytes as f64
}

/// The risks of the rate limits of retained routes. A limit that only observes refuses nothing.
pub(crate) fn rate_limit_risks(compared: &Compared<'_>) -> Vec<Risk> {
    let risks = compared.after.routes.iter().filter_map(|after| {
        let before = compared
            .before
            .routes
            .iter()
            .find(|route| route.id == after.id)?;
        let (class, change) = rate_limit_risk([Some(before), Some(after)])?;
        Some(Risk {
            class,
            subject: format!("route {}", after.id),
            change,
        })
    });
    risks.collect()
}

pub(crate) fn rate_limit_risk(routes: Routes<'_>) -> Classified {
    let [before, after] =
        routes.map(|route| route.and_then(|route| route.policies.rate_limit.as_ref()));
    let refuses = |limit: Option<&RateLimit>| limit.is_some_and(|limit| !*limit.observe_only);
    match (before, after) {
        (Some(old), Some(new)) if refuses(before) && refuses(after) => changed(old, new),
        (_, Some(new)) if refuses(after) => {
            let text = format!("new limit: {} requests", *new.rate);
            Some((RiskClass::LimitTightened, text))
        }
        (_, Some(_)) if refuses(before) => {
            let text = "the rate limit only observes".to_owned();
            Some((RiskClass::LimitRemoved, text))
        }
        _ if refuses(before) => Some((
            RiskClass::LimitRemoved,
            "the rate limit is removed".to_owned(),
        )),
        _ => None,
    }
}

fn changed(old: &RateLimit, new: &RateLimit) -> Classified {
    let [before, after] = [old, new].map(|limit| limit.rate.as_f64());
    let [burst, new_burst] = [old, new].map(|limit| f64::from(*limit.burst));
    let rates = || {
        format!(
            "the rate limit is {}, bursts of {new_burst}, instead of {}, bursts of {burst}",
            *new.rate, *old.rate
        )
    };
    if *old.key != *new.key {
        let text = format!("counts requests by {} instead of {}", *new.key, *old.key);
        return Some((RiskClass::LimitRemoved, text));
    }
    match (&old.store, &new.store) {
        (Some(old), new) if new.as_ref().map(|new| &new.value) != Some(&old.value) => {
            let text = "counts requests in another store, or each proxy by itself".to_owned();
            return Some((RiskClass::LimitRemoved, text));
        }
        (None, Some(_)) => {
            let text = "counts the requests of all proxies together".to_owned();
            return Some((RiskClass::LimitTightened, text));
        }
        (Some(_) | None, _) => {}
    }
    let in_period = |rate: f64, burst: f64| rate * RATE_PERIOD + burst;
    if in_period(before, burst) * RISKY_RATE_GROWTH <= in_period(after, new_burst) {
        return Some((RiskClass::LimitRemoved, rates()));
    }
    let is_tighter = after * RISKY_DECREASE <= before || new_burst * RISKY_DECREASE <= burst;
    is_tighter.then(|| (RiskClass::LimitTightened, rates()))
}
