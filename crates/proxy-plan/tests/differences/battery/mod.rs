//! Bundles as operators write them on a busy day, each an edit of `edge.kdl`, with the verdict of
//! the comparison.
//!
//! This folder has bundles of kinds that are not in other tests and in
//! `bins/proxyd/tests/control_plane/battery`. Faults of certificates are in `proxy-tls`, which
//! reads their chains.

mod harmful;
mod harmless;

use crate::support::{classes, compiled};
use harmful::HARMFUL;
use harmless::HARMLESS;
use proxy_config::Files;
use proxy_model::Model;
use proxy_plan::diff::{Change, ChangedFile, Risk, RiskClass};
use proxy_plan::{Plan, PlanDiff};
use std::collections::{BTreeMap, HashSet};
use std::path::Path;

const EDGE: &str = include_str!("edge.kdl");

/// The name of the configuration in a bundle.
const MAIN: &str = "proxy.kdl";

/// A text of the configuration, and its replacement at the first place.
type Edit = (&'static str, &'static str);

/// A bundle that differs from the active one.
#[derive(Clone, Copy, Debug)]
struct Bundle {
    name: &'static str,
    edits: &'static [Edit],
    /// Files with other contents, by name.
    files: &'static [(&'static str, &'static str)],
}

impl Bundle {
    const fn new(name: &'static str, edits: &'static [Edit]) -> Self {
        Self {
            name,
            edits,
            files: &[],
        }
    }

    const fn with(self, files: &'static [(&'static str, &'static str)]) -> Self {
        Self { files, ..self }
    }

    /// The bundle's files, with the edits applied.
    fn contents(&self) -> BTreeMap<String, Vec<u8>> {
        let mut text = EDGE.to_owned();
        for (from, to) in self.edits {
            assert!(text.contains(from), "{}: {from}", self.name);
            text = text.replacen(from, to, 1);
        }
        let main = [(MAIN, text.as_str()), ("errors/503.html", "<h1>soon</h1>")];
        let files = main.iter().chain(self.files);
        let files = files.map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec()));
        files.collect()
    }
}

fn plan(files: &BTreeMap<String, Vec<u8>>) -> Result<Plan, String> {
    let loaded = proxy_config::load_from(Files::Memory(files), MAIN);
    let loaded = loaded.map_err(|report| report.to_string())?;
    Ok(compiled(loaded.model))
}

/// The comparison of a bundle with the active one, as a control plane makes it.
fn compared(bundle: &Bundle) -> Result<PlanDiff, String> {
    let [old, new] = [Bundle::new("in force", &[]), *bundle].map(|one| one.contents());
    let (before, after) = (plan(&old)?, plan(&new)?);
    let models: [&Model; 2] = [before.model(), after.model()];
    let mut diff = PlanDiff::compare(&before, &after);
    let changed = new.iter().filter_map(|(name, contents)| {
        let change = match old.get(name) {
            None => Change::Added,
            Some(before) if before != contents => Change::Changed,
            Some(_) => return None,
        };
        let name = name.clone();
        // Parts of the configuration are compared by their settings.
        let is_configuration = Path::new(&name).extension().is_some_and(|end| end == "kdl");
        (!is_configuration).then_some(ChangedFile { name, change })
    });
    let changed: Vec<ChangedFile> = changed.collect();
    diff.judge_files(models, &changed, &|_, _| false);
    Ok(diff)
}

#[test]
fn each_harmful_bundle_has_its_class() {
    let missed = HARMFUL.iter().filter_map(|(bundle, class)| {
        let found = compared(bundle).map(|diff| classes(&diff));
        let is_named = found.as_ref().is_ok_and(|found| found.contains(class));
        (!is_named).then(|| format!("{}: {found:?} without {class}\n", bundle.name))
    });
    let missed: String = missed.collect();
    assert!(missed.is_empty(), "{missed}");
}

#[test]
fn no_harmless_bundle_has_a_class() {
    let is_unlisted = |risk: &Risk| risk.class == RiskClass::Unlisted;
    let stopped = HARMLESS.iter().filter_map(|bundle| {
        let risks = compared(bundle).map(|diff| diff.risks);
        let is_harmless = risks
            .as_ref()
            .is_ok_and(|risks| risks.iter().all(is_unlisted));
        (!is_harmless).then(|| format!("{}: {risks:#?}\n", bundle.name))
    });
    let stopped: String = stopped.collect();
    assert!(stopped.is_empty(), "{stopped}");
}

#[test]
fn the_battery_has_thirty_of_each_kind() {
    let harmful: HashSet<&str> = HARMFUL.iter().map(|(bundle, _)| bundle.name).collect();
    let harmless: HashSet<&str> = HARMLESS.iter().map(|bundle| bundle.name).collect();
    assert_eq!(
        [harmful.len(), harmless.len()],
        [HARMFUL.len(), HARMLESS.len()]
    );
    assert!(30 <= harmful.len() && 30 <= harmless.len());
}
