//! The web interface: pages for people with a browser.
//!
//! [`PAGES`] is the table of all pages with their access rules; `admission.rs` handles every
//! incoming request, `frame/failure_page.rs` every failure. `request` parses browsers' input,
//! `view` has the components of pages, `frame` the layout around them; each noun has its own
//! module.

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
