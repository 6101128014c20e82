//! HTTP pieces that the REST interface and the pages share.
//!
//! `identity.rs` takes the token of a rate limit and finds the actor; the response is the caller's.

mod accept;
mod browser;
mod cookie;
mod correlation;
mod identity;
mod origin;
mod path;
mod rate;

pub use accept::prefers_html;
pub use browser::browser;
pub use cookie::{SessionCookie, cookie};
pub use correlation::CorrelationId;
pub use identity::{check_again, identify};
pub use origin::is_same_origin;
pub use path::{id_in_path, named_tenant};
pub use rate::{AddressBuckets, RATE_LIMIT, RateClass, client_ip, write_allowance};
