//! OpenID Connect: the relying party's side of the authorization code flow with PKCE.
//!
//! The caller sends the requests; these functions build them and validate the responses.

mod authorization;
mod callback;
mod discovery;
mod error;
mod id_token;
mod key_cache;
mod key_set;
mod logout;
mod token_request;
mod user_info;

pub use authorization::{Attempt, AuthorizationRequest};
pub use callback::{Callback, CallbackCode};
pub use discovery::{Discovery, discovery_url};
pub use error::OidcError;
pub use id_token::{ExpectedToken, IdToken, verify_id_token};
pub use key_cache::KeyCache;
pub use key_set::KeySet;
pub use logout::logout_url;
pub use token_request::{BasicAuthentication, TokenRequest, Tokens};
pub use user_info::add_user_info;
