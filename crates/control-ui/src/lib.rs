//! The web interface: pages for people with a browser.
//!
//! [`PAGES`] is the one table of pages with their access rules; `admission.rs` is the way in of every request,
//! `frame/failure_page.rs` the way out of every failure. `request` is what a browser sent, `view` what pages are made
//! of, `frame` what surrounds them; each noun has a room of its own.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

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
