//! Limits without a proxy: at most two requests at once, and five a second for each client.

use proxy_limits::{
    ClientKey, ConcurrencyLimit, DEFAULT_KEY_CAPACITY, KeySeed, KeyedBuckets, Rate, RateError,
    RateKey, RateLimitSettings,
};
use std::net::IpAddr;

fn main() -> Result<(), RateError> {
    count();
    rate()
}

fn count() {
    let gauge = ConcurrencyLimit::new(2);
    let first = gauge.acquire();
    let second = gauge.acquire();
    assert!(first.is_ok() && second.is_ok());
    assert!(gauge.acquire().is_err());

    drop(first);
    assert!(gauge.acquire().is_ok());
}

fn rate() -> Result<(), RateError> {
    let settings = RateLimitSettings {
        rate: Rate::per_second(5)?,
        burst: 2,
    };
    // A seed from the system's random numbers, in a real program.
    let seed = KeySeed { low: 1, high: 2 };
    let buckets = KeyedBuckets::new(settings, DEFAULT_KEY_CAPACITY, seed)?;
    let [one, other] = ["192.0.2.1", "2001:db8::1"].map(|address| {
        let address: IpAddr = address.parse().unwrap_or(IpAddr::from([127, 0, 0, 1]));
        RateKey::Client(ClientKey::from(address))
    });

    // Time is an argument: nanoseconds since any origin.
    let now_ns = 1_000_000_000;
    assert!(buckets.admit(&one, now_ns).admitted);
    assert!(buckets.admit(&one, now_ns).admitted);
    let refused = buckets.admit(&one, now_ns);
    assert!(!refused.admitted);
    assert_eq!(refused.retry_after.as_millis(), 200);
    assert!(buckets.admit(&other, now_ns).admitted);
    assert!(buckets.admit(&one, now_ns + 200_000_000).admitted);
    Ok(())
}
