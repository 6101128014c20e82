//! Quotas: limits on the number of an organization's objects.

use crate::access::refusal::Refusal;
use crate::named::named;

named! {
    /// Values that each organization has a quota of.
    QuotaKind {
        /// Projects.
        Projects = "projects",
        /// Nodes in all projects.
        Nodes = "nodes",
        /// API keys that are not deleted.
        ApiKeys = "API keys",
        /// Bundles that are not deleted, rejected ones too.
        Bundles = "bundles",
        /// Bytes of the archives of all bundles.
        ArchiveBytes = "bytes of archives",
        /// Webhooks of all projects.
        Webhooks = "webhooks",
    }
}

/// Quotas of each organization; must be equal on all replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quotas {
    /// Number of projects.
    pub projects: u64,
    /// Number of nodes in all projects.
    pub nodes: u64,
    /// Number of API keys that are not deleted.
    pub api_keys: u64,
    /// Number of bundles that are not deleted, including rejected ones.
    pub bundles: u64,
    /// Total size of the bundles' archives.
    pub archive_bytes: u64,
    /// Number of webhooks in all projects.
    pub webhooks: u64,
}

impl Default for Quotas {
    fn default() -> Self {
        Self {
            projects: 1_000,
            nodes: 50_000,
            api_keys: 1_000,
            bundles: 10_000,
            archive_bytes: 20 << 30,
            webhooks: 1_000,
        }
    }
}

impl Quotas {
    /// Checks that an organization with `current` objects may have `added` more.
    ///
    /// # Errors
    ///
    /// [`Refusal::Quota`] if the sum exceeds the limit of this kind.
    pub fn check(&self, kind: QuotaKind, current: u64, added: u64) -> Result<(), Refusal> {
        let Self {
            projects,
            nodes,
            api_keys,
            bundles,
            archive_bytes,
            webhooks,
        } = *self;
        let limit = match kind {
            QuotaKind::Projects => projects,
            QuotaKind::Nodes => nodes,
            QuotaKind::ApiKeys => api_keys,
            QuotaKind::Bundles => bundles,
            QuotaKind::ArchiveBytes => archive_bytes,
            QuotaKind::Webhooks => webhooks,
        };
        let wanted = current.saturating_add(added);
        (wanted <= limit).then_some(()).ok_or(Refusal::Quota {
            kind: kind.name(),
            owner: "an organization",
            limit,
        })
    }
}
