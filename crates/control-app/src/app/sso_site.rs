//! Public address of the installation for single sign-on, and cached documents of identity providers.

use crate::app::outbound::{Outbound, OutboundError};
use control_domain::PrivateAddresses;
use control_sso::oidc::{Discovery, KeyCache};
use jiff::Timestamp;
use quick_cache::sync::Cache;
use std::sync::{Arc, OnceLock};

/// Providers of which this replica keeps documents.
const PROVIDERS: usize = 1_000;

/// Settings of single sign-on, equal on all replicas.
#[derive(Clone, Debug, Default)]
pub struct SsoSite {
    /// The address under which browsers reach the control plane, without a slash at its end.
    pub public_url: Option<String>,
    /// Permission for identity providers in the private network.
    pub private_addresses: PrivateAddresses,
}

/// Documents of providers that this replica has read. They are public, so organizations share them.
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
