//! One token bucket, as a key of the server.

use proxy_limits::RateDecision;
use redis::aio::MultiplexedConnection;
use redis::{RedisResult, Script};
use std::time::Duration;

/// The rate of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SharedRate {
    /// Tokens refilled each second, at least 1.
    pub requests_per_second: u32,
    /// Capacity in tokens, at least 1.
    pub burst: u32,
}

/// Takes a token of the bucket `KEYS[1]` with `ARGV[1]` tokens a second and room for `ARGV[2]`. The
/// key holds the time at which the bucket is full again, in microseconds since the beginning of
/// 2026, and expires at that time. The result is whether there was a token, the tokens left, and
/// the microseconds until the bucket is full and until there is a token.
const TAKE: &str = "
local time = redis.call('TIME')
local now = (time[1] - 1767225600) * 1000000 + time[2]
local interval = 1000000 / ARGV[1]
local room = interval * ARGV[2]
local full = math.max(tonumber(redis.call('GET', KEYS[1]) or now), now)
local left = room - (full - now)
if left + 0.01 < interval then
    return {0, 0, math.ceil(full - now), math.ceil(interval - left)}
end
full = full + interval
redis.call('SET', KEYS[1], string.format('%.3f', full), 'PX', math.ceil((full - now) / 1000) + 1)
left = math.floor((left - interval) / interval + 0.0001)
return {1, left, math.ceil(full - now), 0}
";

/// The script, with its digest.
pub(crate) fn script() -> Script {
    Script::new(TAKE)
}

/// Takes a token of the bucket called `key`.
pub(crate) async fn take(
    script: &Script,
    connection: &mut MultiplexedConnection,
    key: &[u8],
    rate: SharedRate,
) -> RedisResult<RateDecision> {
    let mut call = script.key(key);
    call.arg(rate.requests_per_second).arg(rate.burst);
    let (admitted, remaining, full, wait): (u8, u32, u64, u64) =
        call.invoke_async(connection).await?;
    Ok(RateDecision {
        admitted: admitted == 1,
        limit: rate.burst,
        remaining,
        reset: Duration::from_micros(full),
        retry_after: Duration::from_micros(wait),
    })
}
