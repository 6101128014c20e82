//! Slow start of a target that has returned.

use std::time::Duration;

/// The share of a target in thousandths, 1 to 1000, `since` it began to serve, for a slow start of
/// `window`: grows linearly from a tenth to the whole.
#[inline]
#[must_use]
pub fn slow_start_share(since: Duration, window: Duration) -> u32 {
    if since >= window {
        return WHOLE_SHARE;
    }
    let passed = since.as_micros() * u128::from(WHOLE_SHARE) / window.as_micros().max(1);
    let passed = u32::try_from(passed).unwrap_or(WHOLE_SHARE);
    passed.clamp(MIN_SHARE, WHOLE_SHARE)
}

/// The share of a target without slow start.
pub const WHOLE_SHARE: u32 = 1_000;

/// Minimum share, so that a target gets the first requests that warm it up.
const MIN_SHARE: u32 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_grows_from_a_tenth_to_the_whole() {
        let window = Duration::from_secs(30);
        let shares = [0, 1, 6, 15, 29, 30, 31]
            .map(|secs| slow_start_share(Duration::from_secs(secs), window));

        assert_eq!(shares, [100, 100, 200, 500, 966, 1_000, 1_000]);
        assert_eq!(slow_start_share(Duration::ZERO, Duration::ZERO), 1_000);
    }
}
