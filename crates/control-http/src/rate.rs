//! Rates of requests by user or API key, or else by address.

use axum::extract::ConnectInfo;
use axum::http::{Extensions, HeaderMap, HeaderName, HeaderValue};
use control_app::{Allowance, App, Error, Rate};
use control_domain::Actor;
use jiff::Timestamp;
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
/// A bundle may name a thousand certificates, and a node fetches each by a request.
const DELIVERY: Rate = Rate {
    per_minute: 1_200,
    burst: 200,
};
const STRICT: Rate = Rate {
    per_minute: 30,
    burst: 10,
};

/// Number of /64 networks that an IPv6 site, a /48, may use concurrently: it has 65 536 of them.
const SITE_SHARES: i64 = 8;

/// Class of a route's rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateClass {
    /// 300 a minute, 60 at once.
    General,
    /// 30 a minute, 10 at once, counted separately: for secrets that can be guessed.
    Strict,
    /// 1 200 a minute, 200 at once, counted separately: pages for browsers.
    Pages,
    /// 1 200 a minute, 200 at once, counted separately: certificates for a node.
    Delivery,
}

impl RateClass {
    /// The tokens of a bucket.
    pub fn rate(self) -> Rate {
        match self {
            Self::General => GENERAL,
            Self::Strict => STRICT,
            Self::Pages => PAGES,
            Self::Delivery => DELIVERY,
        }
    }

    /// The bucket of an actor; `None` for bearers of an enrolment token, which are counted by their address: one of
    /// them must not lock the rest out.
    pub(crate) fn actor_bucket(self, actor: &Actor) -> Option<String> {
        let is_shared = matches!(actor, Actor::Enrolment { .. });
        (!is_shared).then(|| format!("{} {} {}", self.name(), actor.kind(), actor.id()))
    }

    /// The buckets of the request's client address.
    pub fn address(self, extensions: &Extensions) -> AddressBuckets {
        let name = self.name();
        let (own, site) = match client_ip(extensions) {
            Some(IpAddr::V4(address)) => (format!("{name} ip {address}"), None),
            Some(IpAddr::V6(address)) => {
                let network = |prefix: u32| {
                    let bits = address.to_bits() & (u128::MAX << (Ipv6Addr::BITS - prefix));
                    format!("{name} ip {}/{prefix}", Ipv6Addr::from_bits(bits))
                };
                (network(64), Some(network(48)))
            }
            None => (format!("{name} ip unknown"), None),
        };
        AddressBuckets {
            class: self,
            own,
            site,
        }
    }

    /// The name in metrics and buckets.
    pub fn name(self) -> &'static str {
        match self {
            Self::General => "general",
            Self::Strict => "strict",
            Self::Pages => "pages",
            Self::Delivery => "delivery",
        }
    }
}

/// The buckets of an address. IPv6 addresses count by their /64, and all of a /48, which one site has, by eight times its
/// rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressBuckets {
    class: RateClass,
    own: String,
    site: Option<String>,
}

impl AddressBuckets {
    /// Takes a token of each.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the database does not answer.
    pub async fn take(&self, app: &App, now: Timestamp) -> Result<Allowance, Error> {
        let allowance = app.take_token(&self.own, self.class.rate(), now).await?;
        let Some(site) = self.site.as_ref().filter(|_| allowance.admitted) else {
            return Ok(allowance);
        };
        let site_allowance = app.take_token(site, self.site_rate(), now).await?;
        Ok(self.narrower(allowance, site_allowance))
    }

    /// The refusal for buckets of which one is known to be empty; does not query the database.
    pub fn known_refusal(&self, app: &App, now: Timestamp) -> Option<Allowance> {
        let rate = self.class.rate();
        let own = app.known_refusal(&self.own, rate, now);
        own.or_else(|| {
            let site_allowance = app.known_refusal(self.site.as_ref()?, self.site_rate(), now)?;
            Some(Allowance {
                limit: rate.burst,
                ..site_allowance
            })
        })
    }

    fn narrower(&self, own: Allowance, site_allowance: Allowance) -> Allowance {
        if site_allowance.admitted {
            return own;
        }
        Allowance {
            limit: self.class.rate().burst,
            ..site_allowance
        }
    }

    fn site_rate(&self) -> Rate {
        let Rate { per_minute, burst } = self.class.rate();
        Rate {
            per_minute: per_minute * SITE_SHARES,
            burst: burst * SITE_SHARES,
        }
    }
}

/// The client address of a request.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn buckets_from(address: &str) -> AddressBuckets {
        let peer = SocketAddr::new(address.parse().unwrap(), 1);
        let mut extensions = Extensions::new();
        extensions.insert(ConnectInfo(peer));
        RateClass::Strict.address(&extensions)
    }

    #[test]
    fn addresses_of_ipv6_share_the_buckets_of_their_networks() {
        let one = buckets_from("2001:db8:1:2::3");
        assert_eq!(one.own, "strict ip 2001:db8:1:2::/64");
        assert_eq!(one.site.as_deref(), Some("strict ip 2001:db8:1::/48"));
        assert_eq!(one, buckets_from("2001:db8:1:2:ffff::1"));
        let neighbour = buckets_from("2001:db8:1:3::3");
        assert_ne!(one.own, neighbour.own);
        assert_eq!(one.site, neighbour.site);
        assert_ne!(one.site, buckets_from("2001:db8:2:2::3").site);
        let mapped = buckets_from("::ffff:192.0.2.1");
        assert_eq!(
            (mapped.own.as_str(), &mapped.site),
            ("strict ip 192.0.2.1", &None)
        );
    }
}
