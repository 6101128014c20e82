//! Routes that a bundle answers by other names than the bundles before.

use crate::app::App;
use crate::bundle::approval::MAX_BASES;
use crate::configuration::diff::successors;
use crate::error::Error;
use control_domain::{Rollout, RouteNames};
use control_wire::BundleId;
use std::collections::BTreeSet;

impl App {
    /// The routes that the gate of a rollout counts as one, of nodes that are ordered to run `bases`. Call it without an
    /// open transaction, because archives are read. None if the nodes run too many bundles, or if the comparison fails:
    /// the gate compares each route by its name then.
    pub(crate) async fn route_names(
        &self,
        rollout: &Rollout,
        bases: &BTreeSet<Option<BundleId>>,
    ) -> Result<RouteNames, Error> {
        if rollout.strategy.gate.is_none() || usize::from(MAX_BASES) < bases.len() {
            return Ok(RouteNames::default());
        }
        let mut common: Option<BTreeSet<(String, String)>> = None;
        for base in bases.iter().flatten() {
            let pairs = self.successors(*base, rollout.bundle).await?;
            common = Some(match common {
                Some(known) => known.intersection(&pairs).cloned().collect(),
                None => pairs,
            });
        }
        Ok(RouteNames::new(&common.unwrap_or_default()))
    }

    async fn successors(
        &self,
        before: BundleId,
        after: BundleId,
    ) -> Result<BTreeSet<(String, String)>, Error> {
        let mut tx = self.store.read().await?;
        let bundles = (tx.bundle(before).await?, tx.bundle(after).await?);
        drop(tx);
        let (Some(before), Some(after)) = bundles else {
            return Ok(BTreeSet::new());
        };
        let compared = self.compare_contents(&before.value, &after.value, successors);
        match compared.await {
            Ok(found) => Ok(found.unwrap_or_default()),
            Err(error) => {
                let bundle = after.value.id;
                tracing::warn!(%bundle, %error, "renamed routes are compared by their names");
                Ok(BTreeSet::new())
            }
        }
    }
}
