//! Connection and rate limits of routes: the state that all workers share, as one plan refers to
//! it.

use crate::headers::indexed_headers::IndexedHeaders;
use crate::headers::names;
use crate::limits::shared_limit::SharedLimit;
use http::{HeaderMap, HeaderName, HeaderValue};
use proxy_errors::Reason;
use proxy_limits::{ClientKey, ClientShareLimit, KeyedBuckets, RateDecision, RateKey, TokenBucket};
use proxy_plan::{RateStage, rate_key_value};
use proxy_redis::Answer;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

/// The limits of one route.
#[derive(Clone, Debug)]
pub struct RouteLimits {
    /// Limit of connections with an active request on the route; `None` for builtin handlers, which
    /// are exempt.
    pub connections: Option<ClientShareLimit>,
    /// Limits in order of evaluation: after the first refusal no token is taken from the rest.
    pub rates: Vec<RateRule>,
    /// Wrong passwords by client; `None` for routes without `basic-auth`.
    pub attempts: Option<Arc<KeyedBuckets>>,
}

/// One rate limit.
#[derive(Clone, Debug)]
pub struct RateRule {
    /// Reason to refuse a request above the limit.
    pub reason: Reason,
    /// Number of requests in one period of the rate.
    pub events: u32,
    /// True if requests above the limit are served, and only logged.
    pub observe_only: bool,
    /// Time of the check: the proxy may set the field that is the limit's key.
    pub stage: RateStage,
    /// The buckets, by the key of the limit.
    pub buckets: RateBuckets,
    /// Buckets in a store that several proxies share. They decide while the store answers;
    /// `buckets` only count.
    pub shared: Option<SharedLimit>,
}

/// The buckets of one limit.
#[derive(Clone, Debug)]
pub enum RateBuckets {
    /// One bucket for all requests.
    One(Arc<TokenBucket>),
    /// A bucket for each client.
    Client(Arc<KeyedBuckets>),
    /// A bucket for each value of this field, and one for requests without it.
    Header(HeaderName, Arc<KeyedBuckets>),
    /// A bucket for each path, in its normal form.
    Path(Arc<KeyedBuckets>),
}

/// Values of the `X-RateLimit-*` fields, of the limit that the request is nearest to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateLimitStatus {
    limit: u32,
    remaining: u32,
    /// Time when the bucket is full again, in seconds since 1970.
    reset: u64,
}

/// The parts of a request that select its bucket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateSubject<'a> {
    pub(crate) client: ClientKey,
    pub(crate) headers: &'a IndexedHeaders,
    pub(crate) path: &'a str,
}

impl RateRule {
    /// Takes one token for a request at `now_ns` of the clock of the process, if there is one.
    pub(crate) fn admit(&self, subject: RateSubject<'_>, now_ns: u64) -> RateDecision {
        match &self.buckets {
            RateBuckets::One(bucket) => bucket.admit(now_ns),
            RateBuckets::Client(table) => table.admit(&RateKey::Client(subject.client), now_ns),
            RateBuckets::Header(name, table) => {
                let value = subject.field(name);
                table.admit(&RateKey::Header(value.as_deref()), now_ns)
            }
            RateBuckets::Path(table) => table.admit(&RateKey::Path(subject.path), now_ns),
        }
    }
}

impl RateRule {
    /// The decision on a request without the field of the key; takes no token. `None` for other
    /// keys.
    pub(crate) fn peek_without_field(&self, now_ns: u64) -> Option<RateDecision> {
        match &self.buckets {
            RateBuckets::Header(_, table) => Some(table.peek(&RateKey::Header(None), now_ns)),
            RateBuckets::One(_) | RateBuckets::Client(_) | RateBuckets::Path(_) => None,
        }
    }

    /// Takes one token from the store, if the limit is shared.
    pub(crate) fn ask(&self, subject: RateSubject<'_>) -> Option<Answer> {
        let shared = self.shared.as_ref()?;
        Some(match &self.buckets {
            RateBuckets::One(_) => shared.take(None),
            RateBuckets::Client(_) => {
                let client = match subject.client {
                    ClientKey::V4(bits) => format!("{bits:08x}"),
                    ClientKey::V6(bits) => format!("{bits:016x}"),
                };
                shared.take(Some(client.as_bytes()))
            }
            RateBuckets::Header(name, _) => shared.take(subject.field(name).as_deref()),
            RateBuckets::Path(_) => shared.take(Some(subject.path.as_bytes())),
        })
    }
}

impl<'a> RateSubject<'a> {
    /// The value of a field as a key.
    fn field(&self, name: &HeaderName) -> Option<Cow<'a, [u8]>> {
        rate_key_value(self.headers.as_map(), name)
    }
}

impl RateLimitStatus {
    /// Returns true if the limit has less left than `other`.
    pub(crate) fn is_nearer(&self, other: &Self) -> bool {
        self.remaining < other.remaining
    }

    pub(crate) fn new(decision: RateDecision, unix: Duration) -> Self {
        let full = unix + decision.reset;
        Self {
            limit: decision.limit,
            remaining: decision.remaining,
            reset: full.as_secs() + u64::from(full.subsec_nanos() != 0),
        }
    }

    /// The fields, which replace any that the target sends.
    pub(crate) fn fields(&self) -> [(HeaderName, u64); 3] {
        let Self {
            limit,
            remaining,
            reset,
        } = *self;
        [
            (names::RATE_LIMIT_LIMIT, u64::from(limit)),
            (names::RATE_LIMIT_REMAINING, u64::from(remaining)),
            (names::RATE_LIMIT_RESET, reset),
        ]
    }

    /// Writes the fields, replacing the target's own.
    pub(crate) fn write(&self, headers: &mut HeaderMap) {
        for (name, number) in self.fields() {
            headers.insert(name, HeaderValue::from(number));
        }
    }
}
