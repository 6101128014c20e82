//! `ctl apply --prune`: deletes resources that are missing in the file.

use crate::ctl::apply::{Apply, NounOperations, subject};
use crate::ctl::client::Call;
use crate::ctl::error::CtlError;
use crate::ctl::lookup::text;
use crate::ctl::output::escape::inline;
use crate::ctl::output::{print, report};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Kind of the resources that managed certificates obtain. The server deletes none that is managed,
/// or that the bundle of a node names.
const CERTIFICATE: &str = "certificate";
/// Kind of the resources that obtain certificates.
const MANAGED: &str = "managed-certificate";

impl Apply<'_> {
    /// Deletes resources in reverse order: those that refer to further ones first. A refusal
    /// because a resource is in use does not end the run.
    ///
    /// # Errors
    ///
    /// [`CtlError`] with all these refusals, or for the first other failure.
    pub(super) async fn prune(
        &self,
        nouns: &[(NounOperations<'_>, &[Value])],
    ) -> Result<(), CtlError> {
        let mut refusals = Vec::new();
        for (noun, items) in nouns.iter().rev() {
            let done = self.prune_noun(*noun, items, nouns, &mut refusals).await;
            if done.is_err() {
                if let Err(refused) = all_deleted(&refusals) {
                    report(&format!("error: {refused}"));
                }
                return done;
            }
        }
        all_deleted(&refusals)
    }

    async fn prune_noun(
        &self,
        noun: NounOperations<'_>,
        items: &[Value],
        nouns: &[(NounOperations<'_>, &[Value])],
        refusals: &mut Vec<String>,
    ) -> Result<(), CtlError> {
        let managers = if noun.list.noun == CERTIFICATE {
            managers(self, nouns).await?
        } else {
            BTreeMap::new()
        };
        let prune = Prune {
            apply: self,
            noun,
            managers,
        };
        prune.run(items, refusals).await
    }
}

/// Returns an error with the refused deletions, if there are any.
fn all_deleted(refusals: &[String]) -> Result<(), CtlError> {
    if refusals.is_empty() {
        return Ok(());
    }
    let mut text = format!("{} not deleted", refusals.len());
    for refusal in refusals {
        write!(text, "\n  {refusal}").unwrap_or_default();
    }
    Err(CtlError::failed("prune", text))
}

/// Deletion of resources of one kind.
struct Prune<'a> {
    apply: &'a Apply<'a>,
    noun: NounOperations<'a>,
    /// Names of managed certificates by the IDs of their certificates.
    managers: BTreeMap<String, String>,
}

impl Prune<'_> {
    async fn run(&self, items: &[Value], refusals: &mut Vec<String>) -> Result<(), CtlError> {
        let list = self.apply.list(self.noun).await?;
        for found in self.apply.lookup.all(&list, None).await? {
            let name = text(&found, "name");
            if items.iter().any(|item| text(item, "name") == name) {
                continue;
            }
            let subject = subject(self.noun, name);
            if let Some(manager) = self.managers.get(text(&found, "id")) {
                let manager = inline(manager);
                print(&format!(
                    "{subject} stays: managed certificate {manager} renews it\n"
                ))?;
                continue;
            }
            match self.delete(&found).await {
                Ok(done) => print(&format!("{subject} {done}\n"))?,
                Err(error) if error.status() == Some(409) => {
                    refusals.push(format!("{subject}: {error}"));
                }
                Err(error) => return Err(CtlError::failed(subject, error)),
            }
        }
        Ok(())
    }

    async fn delete(&self, found: &Value) -> Result<&'static str, CtlError> {
        let Some(delete) = self.noun.delete else {
            return Err(CtlError::failed(&self.noun.list.tag, "cannot be deleted"));
        };
        if self.apply.dry_run && self.noun.list.noun == CERTIFICATE {
            return Ok("would be deleted, unless a node's bundle names it");
        }
        if self.apply.dry_run {
            return Ok("would be deleted");
        }
        let path = self.apply.own(self.noun, delete, found).await?;
        let call = Call::new(delete.method.clone(), path);
        match self.apply.lookup.client.json(&call).await {
            // Another client was faster.
            Err(error) if error.status() == Some(404) => Ok("is deleted already"),
            done => done.map(|_| "deleted"),
        }
    }
}

/// Returns names of managed certificates by the IDs of their certificates. A dry run leaves out
/// those that would be deleted with it.
async fn managers(
    apply: &Apply<'_>,
    nouns: &[(NounOperations<'_>, &[Value])],
) -> Result<BTreeMap<String, String>, CtlError> {
    let mut operations = apply.lookup.operations.iter();
    let list = operations.find(|one| one.noun == MANAGED && one.verb == "list");
    let Some(list) = list else {
        return Ok(BTreeMap::new());
    };
    let mut pruned = nouns.iter().filter(|(noun, _)| noun.list.noun == MANAGED);
    let wanted = pruned.next().map(|(_, items)| *items);
    let stays = |name: &str| {
        let is_wanted = |items: &[Value]| items.iter().any(|item| text(item, "name") == name);
        !apply.dry_run || wanted.is_none_or(is_wanted)
    };
    let path = apply.path_of(list).await?;
    let found = apply.lookup.all(&path, None).await?;
    let found = found.iter().filter(|one| stays(text(one, "name")));
    let pairs = found.filter_map(|one| {
        let certificate = one.get("certificate")?.as_str()?;
        Some((certificate.to_owned(), text(one, "name").to_owned()))
    });
    Ok(pairs.collect())
}
