//! Sign-in through identity providers by SAML 2.0 and OpenID Connect.
//!
//! The functions open no connections and read no clock: the caller fetches documents, keeps state,
//! and passes bytes and times.

mod asserted_user;
mod group_claims;
pub mod oidc;
pub mod saml;
mod web_url;

pub use asserted_user::{AssertedUser, Groups};
pub use web_url::WebUrl;
