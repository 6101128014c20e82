//! Sign-in through identity providers: SAML 2.0 and OpenID Connect, given bytes and a time.
//!
//! No function here opens a connection or reads a clock: the caller fetches, keeps state, and passes both in.

mod asserted_user;
mod group_claims;
pub mod oidc;
pub mod saml;
mod web_url;

pub use asserted_user::{AssertedUser, Groups};
pub use web_url::WebUrl;
