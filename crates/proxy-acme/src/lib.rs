//! Certificates obtained from an authority by ACME, stored on disk and renewed. [RFC 8555]
//!
//! [`keep`] is the task of one certificate. It reads and writes its [`Storage`], answers challenges
//! through a [`Responder`] and reports each [`Event`]; the code that serves the certificate watches the
//! file.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod account;
mod authority;
mod certificate;
mod dns_command;
mod error;
mod keep;
mod order;
mod renewal;
mod request;
mod responder;
mod settings;
mod storage;

pub use error::{AcmeError, Refusal};
pub use keep::{Event, keep};
pub use responder::Responder;
pub use settings::{AcmeSettings, Challenge, DnsCommand, ExternalAccount};
pub use storage::Storage;
