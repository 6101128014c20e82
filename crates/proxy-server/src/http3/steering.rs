//! Forwarding of datagrams to the endpoint that owns their connection: between workers, and between
//! processes in an upgrade.

mod connection_ids;
mod datagrams;
mod relay;
mod secrets;
mod shared;

pub(super) use connection_ids::{IdCipher, OwnedIds, Owner, destination};
pub(super) use datagrams::{DatagramRouter, RegisteredEndpoint};
pub(crate) use relay::RelayReceiver;
pub(super) use secrets::Http3Secrets;
pub(crate) use shared::Http3Shared;
