//! How many requests a user or an API key, or else an address, may send.

use axum::extract::ConnectInfo;
use axum::http::{Extensions, HeaderMap, HeaderName, HeaderValue};
use control_app::{Allowance, Rate};
use control_domain::Actor;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

const GENERAL: Rate = Rate {
    per_minute: 300,
    burst: 60,
};
/// A page that shows live figures loads itself again whenever they change.
const PAGES: Rate = Rate {
    per_minute: 1_200,
    burst: 200,
};
const STRICT: Rate = Rate {
    per_minute: 30,
    burst: 10,
};

/// Which rate a route has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateClass {
    /// 300 a minute, 60 at once.
    General,
    /// 30 a minute, 10 at once, counted apart: what is worth guessing at.
    Strict,
    /// 1 200 a minute, 200 at once, counted apart: pages for browsers.
    Pages,
}

impl RateClass {
    /// The tokens of a bucket.
    pub fn rate(self) -> Rate {
        match self {
            Self::General => GENERAL,
            Self::Strict => STRICT,
            Self::Pages => PAGES,
        }
    }

    /// The bucket of an actor. The bearers of one enrolment token are counted by their `address`:
    /// one of them must not lock the rest out.
    pub fn actor_bucket(self, actor: &Actor, address: String) -> String {
        if matches!(actor, Actor::Enrolment { .. }) {
            return address;
        }
        format!("{} {} {}", self.name(), actor.kind(), actor.id())
    }

    /// The bucket of the address that a request comes from; IPv6 addresses count by their /64.
    pub fn address_bucket(self, extensions: &Extensions) -> String {
        match client_ip(extensions) {
            Some(IpAddr::V4(address)) => format!("{} ip {address}", self.name()),
            Some(IpAddr::V6(address)) => {
                let network = Ipv6Addr::from_bits(address.to_bits() >> 64 << 64);
                format!("{} ip {network}/64", self.name())
            }
            None => format!("{} ip unknown", self.name()),
        }
    }

    /// The name in metrics and buckets.
    pub fn name(self) -> &'static str {
        match self {
            Self::General => "general",
            Self::Strict => "strict",
            Self::Pages => "pages",
        }
    }
}

/// The address that a request comes from.
pub fn client_ip(extensions: &Extensions) -> Option<IpAddr> {
    let peer = extensions.get::<ConnectInfo<SocketAddr>>();
    peer.map(|ConnectInfo(peer)| peer.ip().to_canonical())
}

/// Tokens of a full bucket; on every response that took one.
pub const RATE_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");

/// Writes the `X-RateLimit-…` fields.
pub fn write_allowance(allowance: &Allowance, headers: &mut HeaderMap) {
    let Allowance {
        admitted: _,
        limit,
        remaining,
        full_at,
        retry_after_secs: _,
    } = *allowance;
    let reset = full_at.as_second() + i64::from(full_at.subsec_nanosecond() > 0);
    headers.insert(RATE_LIMIT, HeaderValue::from(limit));
    headers.insert("x-ratelimit-remaining", HeaderValue::from(remaining));
    headers.insert("x-ratelimit-reset", HeaderValue::from(reset));
}
