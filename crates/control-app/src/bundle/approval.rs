//! The project policy's decision on a bundle: refused, free, or in need of a second person's
//! approval.

use crate::app::App;
use crate::bundle::find;
use crate::configuration::diff::{BaseComparison, is_risky};
use crate::error::Error;
use control_domain::{ApprovalRule, Bundle, Refusal};
use control_store::{StoreError, Transaction};
use control_wire::{BundleId, ProjectId};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of active bundles that a new one is compared with; if nodes run more, the change
/// counts as risky.
pub(crate) const MAX_BASES: u8 = 4;

/// Whether a change needs approval, with what decided it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Approval {
    project: ProjectId,
    rule: ApprovalRule,
    /// Bundles that the nodes were ordered to run.
    bases: BTreeSet<Option<BundleId>>,
    pub(crate) is_needed: bool,
}

impl App {
    /// Decides on a change of nodes that are ordered to run `bases`. Reads archives, so no
    /// transaction may be open.
    pub(crate) async fn judge(
        &self,
        project: ProjectId,
        bundle: BundleId,
        bases: &BTreeSet<Option<BundleId>>,
    ) -> Result<Approval, Error> {
        let compared = BTreeMap::new();
        self.judge_compared(project, bundle, bases, &compared).await
    }

    /// Like [`App::judge`], with the comparisons that were already made.
    pub(crate) async fn judge_compared(
        &self,
        project: ProjectId,
        bundle: BundleId,
        bases: &BTreeSet<Option<BundleId>>,
        compared: &BTreeMap<BundleId, BaseComparison>,
    ) -> Result<Approval, Error> {
        let found = self.store.read().await?.project(project).await?;
        let rule = found.ok_or(Refusal::NotFound)?.value.policy.rules.approve;
        let is_needed = match rule {
            ApprovalRule::None => false,
            ApprovalRule::All => true,
            ApprovalRule::Risky => self.is_any_risky(project, bundle, bases, compared).await?,
        };
        Ok(Approval {
            project,
            rule,
            bases: bases.clone(),
            is_needed,
        })
    }

    async fn is_any_risky(
        &self,
        project: ProjectId,
        bundle: BundleId,
        bases: &BTreeSet<Option<BundleId>>,
        compared: &BTreeMap<BundleId, BaseComparison>,
    ) -> Result<bool, Error> {
        if usize::from(MAX_BASES) < bases.len() {
            return Ok(true);
        }
        for base in bases {
            let Some(base) = *base else { return Ok(true) };
            let is_risky = match compared.get(&base) {
                _ if base == bundle => false,
                Some(compared) => compared.is_risky,
                None => self.is_risky(project, base, bundle).await?,
            };
            if is_risky {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Compares two bundles; one that cannot be read or compared makes the change risky.
    async fn is_risky(
        &self,
        project: ProjectId,
        before: BundleId,
        after: BundleId,
    ) -> Result<bool, Error> {
        let mut tx = self.store.read().await?;
        let (before, after) = (tx.bundle(before).await?, tx.bundle(after).await?);
        drop(tx);
        let (Some(before), Some(after)) = (before, after) else {
            return Ok(true);
        };
        let own = |bundle: &Bundle| bundle.tenant.project == Some(project);
        if !own(&before.value) || !own(&after.value) {
            return Ok(true);
        }
        let judged = self.compare_contents(&before.value, &after.value, is_risky);
        Ok(judged.await.ok().flatten().unwrap_or(true))
    }
}

impl Approval {
    /// Checks that neither the policy nor the orders of the nodes, now for `bases`, have changed since
    /// the decision; returns true if approval is needed. The transaction must have locked the audit
    /// log.
    pub(crate) async fn check_unchanged(
        self,
        tx: &mut Transaction,
        bases: &BTreeSet<Option<BundleId>>,
    ) -> Result<bool, Error> {
        let found = tx.project(self.project).await?.ok_or(Refusal::NotFound)?;
        let compares = self.rule == ApprovalRule::Risky && !self.is_needed;
        if found.value.policy.rules.approve != self.rule || compares && self.bases != *bases {
            return Err(StoreError::Stale.into());
        }
        Ok(self.is_needed)
    }

    /// [`Refusal::NeedsApproval`] if approval is needed: for changes that have no approval step.
    pub(crate) async fn refuse_if_needed(
        self,
        tx: &mut Transaction,
        bases: &BTreeSet<Option<BundleId>>,
    ) -> Result<(), Error> {
        if self.check_unchanged(tx, bases).await? {
            return Err(Refusal::NeedsApproval.into());
        }
        Ok(())
    }
}

/// Checks that the project's policy permits ordering the bundle now; approval is not checked.
///
/// # Errors
///
/// [`Refusal::Frozen`], [`Refusal::Warnings`] or [`Refusal::UnknownWarnings`].
pub(crate) async fn check_policy(
    tx: &mut Transaction,
    project: ProjectId,
    id: BundleId,
    now: Timestamp,
) -> Result<(), Error> {
    let found = tx.project(project).await?.ok_or(Refusal::NotFound)?;
    let bundle = find(tx, project, id).await?.value;
    let rules = found.value.policy.rules;
    Ok(rules.check(bundle.warnings, now)?)
}
