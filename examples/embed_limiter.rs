//! A limit alone: at most two at once, whatever they do.

use proxy_limits::Gauge;

fn main() {
    let gauge = Gauge::new(2);
    let first = gauge.acquire();
    let second = gauge.acquire();
    assert!(first.is_ok() && second.is_ok());
    assert!(gauge.acquire().is_err());

    drop(first);
    assert!(gauge.acquire().is_ok());
}
