//! Age and lifetime of a stored response. [RFC 9111 §4.2]

use crate::cache_control::ResponseDirectives;
use crate::clock_reading::ClockReading;
use crate::settings::CacheSettings;
use http::header::{AGE, DATE, EXPIRES, LAST_MODIFIED};
use http::{HeaderMap, HeaderName, StatusCode};
use std::time::UNIX_EPOCH;

/// Maximum lifetime of a stored response in seconds: a year.
const MAX_LIFETIME: u32 = 365 * 24 * 3_600;

/// Maximum heuristic lifetime in seconds: a day.
const MAX_HEURISTIC: u64 = 24 * 3_600;

/// Statuses of responses that may have a heuristic lifetime without `public`. [RFC 9110 §15.1]
const HEURISTIC_STATUSES: [u16; 11] = [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501];

/// Times of an exchange with the upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// Time of sending the request.
    pub requested_at: ClockReading,
    /// Arrival of the response's head.
    pub received_at: ClockReading,
}

/// Age and lifetime of a stored response. All spans are seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freshness {
    /// Arrival of the response.
    pub received_at: ClockReading,
    /// Age of the response on arrival.
    pub initial_age: u32,
    /// The age at which it becomes stale, in seconds.
    pub lifetime: u32,
    /// True if the response states no lifetime, so that the route's or a heuristic one applies. It
    /// does not apply to requests with credentials or `Cookie`.
    pub is_default: bool,
    /// True if it must be validated before each use: `no-cache`.
    pub always_validates: bool,
    /// Seconds for which it may be served stale during a fetch (`stale-while-revalidate`).
    pub stale_while_revalidate: u32,
    /// Seconds for which it may be served stale in place of an error (`stale-if-error`).
    pub stale_if_error: u32,
    /// True if the `max-stale` of clients applies: false with `must-revalidate` and the like.
    pub may_be_stale: bool,
}

impl Freshness {
    /// Reads the head of a response. If it states no lifetime, the settings' one applies, provided
    /// that `may_default` is true. Returns `None` without a lifetime.
    pub(crate) fn read(
        (status, headers): (StatusCode, &HeaderMap),
        directives: &ResponseDirectives,
        settings: &CacheSettings,
        times: Times,
        may_default: bool,
    ) -> Option<Self> {
        let date = seconds_of(headers, &DATE).unwrap_or(times.received_at.unix.as_secs());
        let expires = headers.get(EXPIRES).map(|_| {
            // An unreadable date counts as past. [RFC 9111 §5.3]
            let until = single(headers, &EXPIRES).unwrap_or(0);
            bounded(until.saturating_sub(date))
        });
        let own = directives.s_maxage.or(directives.max_age).or(expires);
        let may_guess = directives.public || HEURISTIC_STATUSES.contains(&status.as_u16());
        let heuristic = settings.heuristic_percent.filter(|_| may_guess);
        let heuristic = heuristic.and_then(|percent| heuristic_lifetime(headers, date, percent));
        let default = heuristic.or(settings.default_ttl).filter(|_| may_default);
        let lifetime = match own.or(default) {
            Some(lifetime) => lifetime,
            // Stored only to be validated, which needs no lifetime.
            None if directives.no_cache => 0,
            None => return None,
        };
        let forbids_stale = directives.must_revalidate || directives.proxy_revalidate;
        let implies_stale = forbids_stale || directives.s_maxage.is_some();
        // `s-maxage` implies `proxy-revalidate`, unless the response itself allows staleness.
        let stale = |stated: Option<u32>, usual: u32| match stated {
            _ if forbids_stale || directives.no_cache => 0,
            Some(stated) => stated,
            None if implies_stale => 0,
            None => usual,
        };
        Some(Self {
            received_at: times.received_at,
            initial_age: initial_age(headers, date, times),
            lifetime: lifetime.min(MAX_LIFETIME),
            is_default: own.is_none() && default.is_some(),
            always_validates: directives.no_cache,
            stale_while_revalidate: stale(
                directives.stale_while_revalidate,
                settings.stale_while_revalidate,
            ),
            stale_if_error: stale(directives.stale_if_error, settings.stale_if_error),
            may_be_stale: !implies_stale && !directives.no_cache,
        })
    }

    /// The age at `now`.
    #[must_use]
    pub fn age(&self, now: ClockReading) -> u32 {
        let resident = now.seconds_since(self.received_at);
        self.initial_age.saturating_add(resident)
    }

    /// Seconds until the response is stale; negative if it already is.
    #[must_use]
    pub fn rest(&self, now: ClockReading) -> i64 {
        i64::from(self.lifetime) - i64::from(self.age(now))
    }

    /// Returns true if it may be used without validation.
    #[must_use]
    pub fn is_fresh(&self, now: ClockReading) -> bool {
        !self.always_validates && self.rest(now) > 0
    }

    /// Seconds since the response became stale.
    #[must_use]
    pub fn staleness(&self, now: ClockReading) -> u32 {
        self.age(now).saturating_sub(self.lifetime)
    }

    /// Returns true if the response may be served while a new one is fetched. [RFC 5861 §3]
    #[must_use]
    pub fn is_usable_while_revalidating(&self, now: ClockReading) -> bool {
        !self.always_validates && self.staleness(now) < self.stale_while_revalidate
    }

    /// Returns true if the response may be served in place of an error. [RFC 5861 §4]
    #[must_use]
    pub fn is_usable_on_error(&self, now: ClockReading) -> bool {
        self.is_fresh(now) || (!self.always_validates && self.staleness(now) < self.stale_if_error)
    }

    /// Returns true if the response may be used only after a validation.
    pub(crate) fn is_expired(&self, now: ClockReading) -> bool {
        let stale = self.stale_while_revalidate.max(self.stale_if_error);
        let left = self.lifetime.saturating_sub(self.initial_age);
        left.saturating_add(stale) <= now.seconds_since(self.received_at)
    }
}

/// `percent` of the time from `Last-Modified` to `date`; `None` unless `Last-Modified` is earlier.
/// [RFC 9111 §4.2.2]
fn heuristic_lifetime(headers: &HeaderMap, date: u64, percent: u32) -> Option<u32> {
    let unchanged = date.checked_sub(single(headers, &LAST_MODIFIED)?)?;
    let lifetime = unchanged.saturating_mul(percent.into()) / 100;
    Some(bounded(lifetime.min(MAX_HEURISTIC)))
}

/// The age of the response on arrival: the larger of the ages by `Date` and by `Age`. [RFC 9111
/// §4.2.3]
fn initial_age(headers: &HeaderMap, date: u64, times: Times) -> u32 {
    let apparent = bounded(times.received_at.unix.as_secs().saturating_sub(date));
    let delay = times.received_at.seconds_since(times.requested_at);
    let stated = headers.get(AGE).map_or(0, |age| {
        let text = age.to_str().unwrap_or_default();
        let first = text.split(',').next().unwrap_or_default().trim();
        let is_number = !first.is_empty() && first.bytes().all(|byte| byte.is_ascii_digit());
        // Anything else is ignored. [RFC 9111 §5.1]
        if is_number {
            first.parse().unwrap_or(u32::MAX)
        } else {
            0
        }
    });
    apparent.max(stated.saturating_add(delay))
}

/// The date in the first field of this name, since 1970.
pub(crate) fn seconds_of(headers: &HeaderMap, name: &HeaderName) -> Option<u64> {
    let text = headers.get(name)?.to_str().ok()?;
    let date = httpdate::parse_http_date(text).ok()?;
    let since = date.duration_since(UNIX_EPOCH).ok()?;
    Some(since.as_secs())
}

/// The date in a field that occurs exactly once.
fn single(headers: &HeaderMap, name: &HeaderName) -> Option<u64> {
    let mut all = headers.get_all(name).iter();
    all.next()?;
    match all.next() {
        Some(_) => None,
        None => seconds_of(headers, name),
    }
}

fn bounded(seconds: u64) -> u32 {
    u32::try_from(seconds).unwrap_or(u32::MAX)
}
