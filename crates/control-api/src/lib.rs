//! REST interface of the control plane.
//!
//! [`ROUTES`] lists all routes with their access rules. `request/admission.rs` handles every
//! incoming request, `response/problem.rs` every failure.

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
