//! Rate limits, concurrency limits, queues and memory limits.
//!
//! This crate reads no clock, allocates for a request only if its body is buffered, and is
//! independent of HTTP. Callers pass `now`, in nanoseconds since a common origin; every decision is
//! a value.

mod client_key;
mod client_share_limit;
mod concurrency_limit;
mod connections_by_client;
mod fair_limit;
mod fair_shares;
mod gcra;
mod keyed_buckets;
mod memory_limit;
mod rate;
mod request_queue;
mod retry_budget;
mod token_bucket;

pub use client_key::{ClientKey, KeySeed, RateKey};
pub use client_share_limit::{ClientShareLimit, ClientSharePermit};
pub use concurrency_limit::{ConcurrencyLimit, LimitReached, Permit};
pub use connections_by_client::{ClientPermit, ConnectionsByClient};
pub use fair_limit::{FairLimit, FairPermit};
pub use fair_shares::{Claim, Destination, FairShares, Occupancy, ShareCheck, fair_share};
pub use gcra::RateDecision;
pub use keyed_buckets::{DEFAULT_KEY_CAPACITY, KeyedBuckets};
pub use memory_limit::{
    BodyMemory, BodyMemoryFull, BodyReservation, MemoryChange, MemoryLimit, MemoryLimitSettings,
    ResponseReservation,
};
pub use rate::{MAX_RATE_EVENTS, MAX_RATE_PERIOD_SECS, Rate, RateError, RateLimitSettings};
pub use request_queue::{QueueFull, Queued, RequestQueue, RequestQueueSettings, Ticket};
pub use retry_budget::{MIN_RETRIES_PER_SECOND, RetryBudget};
pub use token_bucket::TokenBucket;
