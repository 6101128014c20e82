//! Comparison of a rollout's bundle with the bundles that its nodes run, to find the risk of the
//! change and renamed routes.

use crate::app::App;
use crate::bundle::approval::MAX_BASES;
use crate::configuration::diff::{BaseComparison, compare_base};
use crate::error::Error;
use control_domain::{Rollout, RouteNames};
use control_wire::BundleId;
use std::collections::{BTreeMap, BTreeSet};

impl App {
    /// Compares the bundle of a rollout that has a gate with each of `bases`, the bundles its nodes
    /// are ordered to run. Reads archives, so no transaction may be open. Empty without a gate, or
    /// if there are too many bases; a base that cannot be compared is left out.
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

/// Renamed routes that the gate counts as one: those that were renamed in the same way from every
/// base. Empty if a base was not compared; the gate then compares routes by name.
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
