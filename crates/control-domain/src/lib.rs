//! The nouns, the permissions on them, and what follows.
//!
//! Every verb is pure: it takes the actor, the time and what was loaded, and gives what is to be
//! stored, or a [`Refusal`]. Its first line is the permission.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod access;
mod actor;
mod machine;
mod named;
mod refusal;
mod text;

mod api_key;
mod membership;
mod org;
mod project;
mod session;
mod setup_link;
mod signing_key;
mod user;

pub use access::{Access, Role, Scope, ScopeRule, Tenant};
pub use actor::{Actor, NodeCredential};
pub use api_key::{API_KEY_TRANSITIONS, ApiKey, ApiKeyEvent, ApiKeyState, NewApiKey};
pub use machine::{Transition, next_state};
pub use membership::Membership;
pub use org::Org;
pub use project::Project;
pub use refusal::Refusal;
pub use session::Session;
pub use setup_link::SetupLink;
pub use signing_key::{SigningKey, SigningKeyState};
pub use text::{Email, Name};
pub use user::{NewUser, User};
