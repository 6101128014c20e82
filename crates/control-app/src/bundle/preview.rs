//! Preview of a bundle: the effect of its files on nodes, before the bundle is created.

use crate::app::{App, tenant};
use crate::bundle::approval::MAX_BASES;
use crate::bundle::{Built, BundleSource, build, known_certificates, source_files};
use crate::call::Call;
use crate::configuration::Diagnostic;
use crate::configuration::diff::Comparison;
use crate::error::Error;
use control_bundle::{Files, digest};
use control_domain::{Access, ApprovalRule, Bundle, Labels, PolicyRules, Refusal};
use control_store::OrderedBundle;
use control_wire::{BundleId, ProjectId};
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Maximum number of active bundles that are counted; those with the most nodes are compared.
const MAX_ORDERED: i64 = 50;

/// Expected effect of a bundle with these files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Preview {
    /// SHA-256 of the archive in Base64-URL; `None` for files with errors.
    pub digest: Option<String>,
    /// Errors and warnings.
    pub diagnostics: Vec<Diagnostic>,
    /// Comparisons with the bundles that nodes are ordered to run: at most four, most nodes first.
    pub comparisons: Vec<PreviewComparison>,
    /// Number of nodes ordered to run a bundle that was not compared.
    pub other_nodes: i64,
    /// Number of nodes without an order.
    pub unordered_nodes: i64,
    /// True if the project's policy requires another person's approval.
    pub needs_approval: bool,
    /// True if the policy refuses the bundle because of its warnings.
    pub is_refused: bool,
    /// End of the current freeze; `None` if the policy permits changes now.
    pub frozen_until: Option<Timestamp>,
}

/// A bundle that nodes are ordered to run, compared with the files.
#[derive(Clone, Debug, PartialEq)]
pub struct PreviewComparison {
    /// Bundle that the nodes are ordered to run.
    pub before: BundleId,
    /// Name of that bundle.
    pub name: String,
    /// Number of nodes ordered to run it.
    pub nodes: i64,
    /// True if the new archive would have the same digest.
    pub is_same: bool,
    /// The difference; `None` if the checks of this release refuse the bundle, or its archive
    /// cannot be read.
    pub comparison: Option<Comparison>,
}

impl App {
    /// Checks files, and compares them with the bundles that nodes with these labels are ordered to
    /// run. Stores nothing.
    ///
    /// # Errors
    ///
    /// [`Error`]; [`Error::Files`] for files that cannot be a bundle at all.
    pub async fn preview_bundle(
        &self,
        call: &Call,
        project: ProjectId,
        source: BundleSource,
        labels: BTreeMap<String, String>,
    ) -> Result<Preview, Error> {
        let mut tx = self.store.read().await?;
        let tenant = tenant(&mut tx, project).await?;
        call.actor.require(Access::READ_BUNDLES, tenant)?;
        let labels = Labels::parse(labels)?;
        let files = source_files(&mut tx, call, tenant, source).await?;
        let known = known_certificates(&mut tx, project, &files).await?;
        let found = tx.project(project).await?.ok_or(Refusal::NotFound)?;
        let rules = found.value.policy.rules;
        let ordered = tx
            .bundles_in_force(project, labels.pairs(), MAX_ORDERED)
            .await?;
        drop(tx);
        let files = Arc::new(files);
        let own = Arc::clone(&files);
        let built = self.heavy(tenant.org, move || build(&own, &known)).await?;
        let Built {
            archive,
            diagnostics,
            warnings,
        } = built.map_err(Error::Files)?;
        let mut preview = Preview {
            digest: archive.as_deref().map(digest),
            diagnostics,
            ..Preview::default()
        };
        if preview.digest.is_some() {
            self.compare_all(&mut preview, &ordered, &files).await?;
            preview.apply_policy(&rules, warnings, call.now);
        }
        Ok(preview)
    }

    async fn compare_all(
        &self,
        preview: &mut Preview,
        ordered: &[OrderedBundle],
        files: &Arc<Files>,
    ) -> Result<(), Error> {
        for OrderedBundle { bundle, nodes } in ordered.iter().copied() {
            let Some(bundle) = bundle else {
                preview.unordered_nodes = nodes;
                continue;
            };
            if usize::from(MAX_BASES) <= preview.comparisons.len() {
                preview.other_nodes += nodes;
                continue;
            }
            let found = self.store.read().await?.bundle(bundle).await?;
            let found = found.ok_or(Refusal::NotFound)?.value;
            let is_same = is_same(&found, preview);
            let comparison = if is_same {
                Some(Comparison::default())
            } else {
                let compared = self.compare_files(&found, files).await;
                compared.ok().flatten()
            };
            preview.comparisons.push(PreviewComparison {
                before: bundle,
                name: found.name.to_string(),
                nodes,
                is_same,
                comparison,
            });
        }
        Ok(())
    }
}

impl Preview {
    /// Evaluates the project's policy as for a rollout to all of these nodes.
    fn apply_policy(&mut self, rules: &PolicyRules, warnings: usize, now: Timestamp) {
        let is_risky = |compared: &PreviewComparison| {
            let risks = compared.comparison.as_ref().map(|found| &found.risks);
            risks.is_none_or(|risks| !risks.is_empty())
        };
        self.needs_approval = match rules.approve {
            ApprovalRule::None => false,
            ApprovalRule::All => true,
            ApprovalRule::Risky => {
                let unknown = self.other_nodes + self.unordered_nodes;
                unknown > 0 || self.comparisons.iter().any(is_risky)
            }
        };
        self.is_refused = rules.refuse_warnings && warnings > 0;
        self.frozen_until = rules.freezes.end(now);
    }
}

fn is_same(bundle: &Bundle, preview: &Preview) -> bool {
    let archive = bundle.archive.as_ref();
    let old = archive.map(|archive| archive.digest.as_str());
    old.is_some() && old == preview.digest.as_deref()
}
