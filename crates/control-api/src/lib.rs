//! The REST interface.
//!
//! [`ROUTES`] is the one table of routes with their access rules; `request/admission.rs` is the way in
//! of every request, `response/problem.rs` the way out of every failure.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod names;
mod reference;
mod route;
mod routes;

mod request;
mod response;

mod account;
mod audit;
mod org;
mod project;
mod sso;

mod bundle;
mod definition;
mod node;
mod rollout;

pub use reference::{access_md, reference_md};
pub use route::Route;
pub use routes::{ROUTES, answering, description, router};
