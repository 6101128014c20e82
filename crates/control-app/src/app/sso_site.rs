//! Settings of single sign-on, and cached documents of identity providers.

use crate::app::outbound::{Outbound, OutboundError};
use control_domain::PrivateAddresses;
use control_sso::oidc::{Discovery, KeyCache};
use jiff::Timestamp;
use quick_cache::sync::Cache;
use std::sync::{Arc, OnceLock};

/// Maximum number of providers with cached documents.
const MAX_PROVIDERS: usize = 1_000;

/// Settings of single sign-on; must be equal on all replicas.
#[derive(Clone, Debug, Default)]
pub struct SsoSite {
    /// URL under which browsers reach the control plane, without a trailing slash.
    pub public_url: Option<String>,
    /// Whether identity providers in private networks are permitted.
    pub private_addresses: PrivateAddresses,
}

/// Cached documents of identity providers. They are public, so organizations share them.
#[derive(Debug)]
pub(crate) struct SsoDocuments {
    pub(crate) outbound: OnceLock<Outbound>,
    pub(crate) discoveries: Cache<String, (Arc<Discovery>, Timestamp)>,
    pub(crate) keys: Cache<String, KeyCache>,
    /// Last failure of each address, with its time: limits retries.
    pub(crate) failures: Cache<String, (OutboundError, Timestamp)>,
}

impl Default for SsoDocuments {
    fn default() -> Self {
        Self {
            outbound: OnceLock::new(),
            discoveries: Cache::new(MAX_PROVIDERS),
            keys: Cache::new(MAX_PROVIDERS),
            failures: Cache::new(MAX_PROVIDERS),
        }
    }
}
