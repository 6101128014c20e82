//! Traffic of a running proxy, live in a terminal.
//!
//! [`watch`] shows it until a key or a signal ends it; [`page`] is one page of text, [`ready`] one check for probes. All read the admin interface
//! through an [`AdminClient`].

mod watch;

mod screen;
mod terminal;

mod view;

mod interval;
mod table;

mod reading;

mod client;
mod exposition;
mod histogram;
mod text;

pub use client::error::TopError;
pub use client::{AdminAddress, AdminAddressError, AdminClient};
pub use watch::{page, ready, watch};
