//! The place of this installation among identity providers, and their documents that it keeps.

use crate::app::outbound::{Outbound, OutboundError};
use control_domain::PrivateAddresses;
use control_sso::oidc::{Discovery, KeyCache};
use jiff::Timestamp;
use quick_cache::sync::Cache;
use std::sync::{Arc, OnceLock};

/// Providers of which this replica keeps documents.
const PROVIDERS: usize = 1_000;

/// The place of this installation among identity providers and browsers; replicas have the same.
#[derive(Clone, Debug, Default)]
pub struct SsoSite {
    /// The address under which browsers reach the control plane, without a slash at its end.
    pub public_url: Option<String>,
    /// Permission for identity providers in the private network.
    pub private_addresses: PrivateAddresses,
}

/// Documents of providers that this replica read. They are public, so organizations share them.
#[derive(Debug)]
pub(crate) struct SsoDocuments {
    pub(crate) outbound: OnceLock<Outbound>,
    pub(crate) discoveries: Cache<String, (Arc<Discovery>, Timestamp)>,
    pub(crate) keys: Cache<String, KeyCache>,
    /// Addresses without an answer, with the time of the last try.
    pub(crate) failures: Cache<String, (OutboundError, Timestamp)>,
}

impl Default for SsoDocuments {
    fn default() -> Self {
        Self {
            outbound: OnceLock::new(),
            discoveries: Cache::new(PROVIDERS),
            keys: Cache::new(PROVIDERS),
            failures: Cache::new(PROVIDERS),
        }
    }
}
