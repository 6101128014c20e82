//! A shared HTTP cache [RFC 9111, RFC 5861]: rules for storing and serving responses, and a store
//! with a limit in bytes.
//!
//! The rules are pure functions over heads, settings and a time. The store is shared by threads; it
//! does no I/O and reads no clock. A time is a reading of both the time of day and a monotonic
//! clock.

mod cache_control;
mod cache_key;
mod cache_status;
mod clock_reading;
mod decision;
mod freshness;
mod key_target;
mod memory;
mod selection;
mod settings;
mod stored_response;
mod storing;
mod vary;

mod store;

pub use cache_control::{RequestDirectives, ResponseDirectives};
pub use cache_key::CacheKey;
pub use cache_status::CacheStatus;
pub use clock_reading::ClockReading;
pub use decision::{BypassReason, CacheRequest, Decision, MissReason, bypass, decide, stored_miss};
pub use freshness::{Freshness, Times};
pub use key_target::KeyTarget;
pub use selection::{SelectedResponse, select};
pub use settings::{CacheSettings, StoreLimits};
pub use store::fill::{BodyReservation, Fill, Joined};
pub use store::fill_state::FillWait;
pub use store::results::{Found, Purge, Purged};
pub use store::{CacheStore, Figures};
pub use stored_response::{ResponseHead, StoredResponse};
pub use storing::{RefuseReason, StoringRequest, may_store};
pub use vary::Variant;
