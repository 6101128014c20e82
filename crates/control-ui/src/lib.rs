//! Web interface of the control plane: HTML pages, rendered by the server.
//!
//! [`PAGES`] lists all pages with their access rules. `admission.rs` handles every incoming
//! request, `frame/failure_page.rs` every failure. `request` parses input from browsers, `view` has
//! components of pages, `frame` their layout; each kind of resource has a module.

mod admission;
mod frame;
mod live;
mod page;
mod pages;
mod request;
mod ui;
mod view;

mod account;
mod bundle;
mod definition;
mod node;
mod organization;
mod project;
mod rollout;

pub use page::Page;
pub use pages::{PAGES, router};
