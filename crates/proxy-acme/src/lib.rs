//! Obtains certificates by ACME, stores them on disk, and renews them. [RFC 8555]
//!
//! [`maintain_certificate`] is the task for one certificate. It reads and writes its [`Storage`],
//! answers challenges through a [`Responder`], and reports each [`Event`]; the server of the
//! certificate watches the file. [`AuthorityAccount`] is for callers with a storage of their own.

mod account;
mod address_rule;
mod authority;
mod authority_account;
mod certificate;
mod dns_command;
mod error;
mod order;
mod renewal;
mod renewal_task;
mod request;
mod responder;
mod settings;
mod storage;

pub use address_rule::AddressRule;
pub use authority::AuthorityAccess;
pub use authority_account::{
    AuthorityAccount, CertificateKey, HttpChallenge, IssuedCertificate, PlacedOrder,
};
pub use error::{AcmeError, Refusal};
pub use renewal::{Window, retry_delay};
pub use renewal_task::{Event, maintain_certificate, set_aside_damaged};
pub use responder::Responder;
pub use settings::{AcmeSettings, Challenge, DnsCommand, ExternalAccount};
pub use storage::Storage;
