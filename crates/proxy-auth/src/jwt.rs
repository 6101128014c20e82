//! JSON Web Tokens in the compact form of a signature. [RFC 7515, RFC 7519]
//!
//! The library verifies signatures. These modules choose the key, and refuse inputs that the
//! library accepts: critical extensions, keys that do not match their algorithm, short keys.

mod algorithm;
mod claims;
mod key_set;
mod remote_keys;
mod token;
mod token_error;

pub use algorithm::JwtAlgorithm;
pub use claims::{TokenClaims, UnfitClaim};
pub use key_set::{JwtKeys, KeyError};
pub use remote_keys::RemoteKeys;
pub use token::TokenRules;
pub use token_error::TokenError;
