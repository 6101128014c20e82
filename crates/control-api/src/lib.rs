//! The REST interface.
//!
//! [`ROUTES`] is the one table of routes with their access rules; `admission.rs` is the way in of
//! every request, `problem.rs` the way out of every failure.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod admission;
mod answer;
mod body;
mod docs;
mod extract;
mod idempotency;
mod names;
mod object;
mod openapi;
mod page;
mod problem;
mod reference;
mod resource;
mod route;
mod routes;

mod api_key;
mod audit;
mod bundle;
mod bundle_archive;
mod certificate;
mod drift;
mod enrolment_token;
mod invitation;
mod member;
mod node;
mod node_session;
mod node_view;
mod org;
mod project;
mod rollout;
mod rollout_view;
mod second_factor;
mod service;
mod session;
mod setup;
mod sign_in;
mod signing_key;
mod sso;
mod sso_browser;
mod upstream;
mod user;
mod wording;

pub use reference::reference_md;
pub use route::Route;
pub use routes::{ROUTES, description, router};
