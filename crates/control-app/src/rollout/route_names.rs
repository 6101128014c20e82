//! Comparison of a rollout's bundle with those that its nodes are ordered to run, once for the risk of the change and for
//! renamed routes.

use crate::app::App;
use crate::bundle::approval::MAX_BASES;
use crate::configuration::diff::{BaseComparison, compare_base};
use crate::error::Error;
use control_domain::{Rollout, RouteNames};
use control_wire::BundleId;
use std::collections::{BTreeMap, BTreeSet};

impl App {
    /// Compares the bundle of a rollout with a gate with `bases`, which its nodes are ordered to run. Call it without an
    /// open transaction, because archives are read. Empty without a gate, or if the nodes run too many bundles; a base
    /// that cannot be compared is left out.
    pub(crate) async fn compare_bases(
        &self,
        rollout: &Rollout,
        bases: &BTreeSet<Option<BundleId>>,
    ) -> Result<BTreeMap<BundleId, BaseComparison>, Error> {
        let mut compared = BTreeMap::new();
        if rollout.strategy.gate.is_none() || usize::from(MAX_BASES) < bases.len() {
            return Ok(compared);
        }
        for base in bases.iter().flatten() {
            let found = self.compare_base(*base, rollout.bundle).await?;
            compared.extend(found.map(|found| (*base, found)));
        }
        Ok(compared)
    }

    async fn compare_base(
        &self,
        before: BundleId,
        after: BundleId,
    ) -> Result<Option<BaseComparison>, Error> {
        let mut tx = self.store.read().await?;
        let bundles = (tx.bundle(before).await?, tx.bundle(after).await?);
        drop(tx);
        let (Some(before), Some(after)) = bundles else {
            return Ok(None);
        };
        let compared = self.compare_contents(&before.value, &after.value, compare_base);
        match compared.await {
            Ok(found) => Ok(found),
            Err(error) => {
                let bundle = after.value.id;
                tracing::warn!(%bundle, %error, "renamed routes are compared by their names");
                Ok(None)
            }
        }
    }
}

/// The routes that a gate counts as one, of nodes that are ordered to run `bases`: those that each of the bundles has by
/// another name. None if a base was not compared: the gate compares each route by its name then.
pub(crate) fn route_names(
    bases: &BTreeSet<Option<BundleId>>,
    compared: &BTreeMap<BundleId, BaseComparison>,
) -> RouteNames {
    let mut common: Option<BTreeSet<(String, String)>> = None;
    for base in bases.iter().flatten() {
        let pairs = compared.get(base).map(|found| found.successors.clone());
        let pairs = pairs.unwrap_or_default();
        common = Some(match common {
            Some(known) => known.intersection(&pairs).cloned().collect(),
            None => pairs,
        });
    }
    RouteNames::new(&common.unwrap_or_default())
}
