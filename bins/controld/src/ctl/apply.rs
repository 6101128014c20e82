//! `ctl apply`: creates, updates and, with `--prune`, deletes resources until they match a file.
//! Names identify resources.

mod prune;

use crate::ctl::client::Call;
use crate::ctl::error::CtlError;
use crate::ctl::grammar::path_id;
use crate::ctl::lookup::{Lookup, text};
use crate::ctl::operation::Operation;
use crate::ctl::output::escape::inline;
use crate::ctl::output::print;
use crate::ctl::value::{is_within, object};
use clap::ArgMatches;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

type Fields = Map<String, Value>;

/// Field that only the response to the creation of a webhook, API key or enrolment token contains.
const SECRET: &str = "secret";

/// Operations on one kind of resource.
#[derive(Clone, Copy)]
struct NounOperations<'a> {
    list: &'a Operation,
    create: &'a Operation,
    update: &'a Operation,
    /// `None` if resources of this kind cannot be deleted.
    delete: Option<&'a Operation>,
}

/// Parameters of one run.
struct Apply<'a> {
    lookup: &'a Lookup<'a>,
    org: Option<String>,
    project: Option<String>,
    dry_run: bool,
}

/// Creates missing resources, updates those that differ, and prints each change.
pub(crate) async fn run(lookup: &Lookup<'_>, matches: &ArgMatches) -> Result<(), CtlError> {
    let file = matches.get_one::<PathBuf>("file").cloned();
    let wanted = object(&file.unwrap_or_default())?;
    let place = |name| matches.get_one::<String>(&path_id(name)).cloned();
    let apply = Apply {
        lookup,
        org: place("org"),
        project: place("project"),
        dry_run: matches.get_flag("dry-run"),
    };
    let nouns = in_order(lookup.operations, &wanted)?;
    check_names(&nouns)?;
    for (noun, items) in &nouns {
        apply.noun(*noun, items).await?;
    }
    if matches.get_flag("prune") {
        apply.prune(&nouns).await?;
    }
    Ok(())
}

/// Checks that each item has a name, and that it is the only one in its list.
fn check_names(nouns: &[(NounOperations<'_>, &[Value])]) -> Result<(), CtlError> {
    let mut faults = Vec::new();
    for (noun, items) in nouns {
        let mut names = BTreeSet::new();
        for item in *items {
            let (tag, name) = (&noun.list.tag, text(item, "name"));
            if name.is_empty() {
                faults.push(format!("{tag}: an item has no name"));
            } else if !names.insert(name) {
                faults.push(format!(
                    "{tag}: several items have the name {}",
                    inline(name)
                ));
            }
        }
    }
    if faults.is_empty() {
        return Ok(());
    }
    Err(CtlError::usage(faults.join("\n")))
}

/// Sorts the kinds of resources in the file: each after the kinds that its fields refer to.
fn in_order<'a>(
    operations: &'a [Operation],
    wanted: &'a Fields,
) -> Result<Vec<(NounOperations<'a>, &'a [Value])>, CtlError> {
    let mut waiting = BTreeMap::new();
    for (tag, items) in wanted {
        let noun = NounOperations::find(operations, tag)
            .ok_or_else(|| CtlError::usage(format!("{tag}: is nothing that can be applied")))?;
        let items = items.as_array();
        let items = items.ok_or_else(|| CtlError::usage(format!("{tag}: is not a list")))?;
        waiting.insert(noun.list.noun.as_str(), (noun, items.as_slice()));
    }
    let mut ordered = Vec::new();
    while !waiting.is_empty() {
        let is_free = |noun: &NounOperations<'_>| {
            let mut fields = noun.create.fields().iter();
            !fields.any(|field| {
                let referred = field.name.replace('_', "-");
                referred != noun.list.noun && waiting.contains_key(referred.as_str())
            })
        };
        let free = waiting.iter().find(|(_, (noun, _))| is_free(noun));
        let next = free
            .or_else(|| waiting.iter().next())
            .map(|(name, _)| *name);
        ordered.extend(next.and_then(|next| waiting.remove(next)));
    }
    Ok(ordered)
}

impl<'a> NounOperations<'a> {
    /// Finds the operations by the name of the list; `None` unless they can list, create and update
    /// by name.
    fn find(operations: &'a [Operation], tag: &str) -> Option<Self> {
        let of = |verb: &str| {
            let mut all = operations.iter();
            all.find(|one| one.tag == tag && one.verb == verb)
        };
        let (list, create, update) = (of("list")?, of("create")?, of("update")?);
        let is_named = create.fields().iter().any(|field| field.name == "name");
        (is_named && list.is_paged()).then_some(Self {
            list,
            create,
            update,
            delete: of("delete"),
        })
    }
}

impl Apply<'_> {
    /// Returns the path of the list.
    async fn list(&self, noun: NounOperations<'_>) -> Result<String, CtlError> {
        self.path_of(noun.list).await
    }

    /// Returns the path of an operation that is on no single resource.
    async fn path_of(&self, operation: &Operation) -> Result<String, CtlError> {
        let place = |name: &str| match name {
            "org" => self.org.clone(),
            _ => self.project.clone(),
        };
        self.lookup.path(operation, place).await
    }

    /// Returns the path of `operation` on one resource.
    async fn own(
        &self,
        noun: NounOperations<'_>,
        operation: &Operation,
        item: &Value,
    ) -> Result<String, CtlError> {
        let parameter = noun.list.noun.replace('-', "_");
        let given = |name: &str| match name {
            _ if name == parameter => Some(text(item, "id").to_owned()),
            "org" => self.org.clone(),
            _ => self.project.clone(),
        };
        self.lookup.path(operation, given).await
    }

    async fn noun(&self, noun: NounOperations<'_>, items: &[Value]) -> Result<(), CtlError> {
        let list = self.list(noun).await?;
        let existing = self.lookup.all(&list, None).await?;
        for item in items {
            let name = text(item, "name");
            let subject = subject(noun, name);
            let fields = item.as_object();
            let fields = fields.ok_or_else(|| CtlError::usage("an item is not an object"))?;
            let found = existing.iter().find(|one| text(one, "name") == name);
            let done = match found {
                None => self.create(noun, &list, fields).await,
                Some(found) => self.update(noun, &list, found, fields).await,
            };
            let done = done.map_err(|error| {
                if let CtlError::Usage(text) = &error {
                    return CtlError::usage(format!("{subject}: {text}"));
                }
                CtlError::failed(&subject, error)
            })?;
            print(&format!("{subject} {done}\n"))?;
        }
        Ok(())
    }

    async fn create(
        &self,
        noun: NounOperations<'_>,
        list: &str,
        fields: &Fields,
    ) -> Result<String, CtlError> {
        if self.dry_run {
            return Ok("would be created".to_owned());
        }
        let body = self.resolved(noun, list, fields).await?;
        let call = Call::new(noun.create.method.clone(), list);
        let made = self.lookup.client.json(&call.json(&body.into())).await?;
        Ok(match text(&made, SECRET) {
            "" => "created".to_owned(),
            secret => format!("created; secret, shown this once: {}", inline(secret)),
        })
    }

    /// Updates a resource if fields differ. A field that responses never contain, such as a
    /// password, is sent with the update, but its presence alone causes none.
    async fn update(
        &self,
        noun: NounOperations<'_>,
        list: &str,
        found: &Value,
        fields: &Fields,
    ) -> Result<String, CtlError> {
        let resolved = match self.resolved(noun, list, fields).await {
            // In a dry run, the referenced resource may not exist yet.
            Err(_) if self.dry_run => return Ok("would be updated".to_owned()),
            resolved => resolved?,
        };
        let differs = |name: &String, value: &Value| {
            let own = found.get(name);
            own.is_some_and(|own| !is_within(value, own))
        };
        let different = resolved.iter().filter(|(name, value)| differs(name, value));
        let different: Vec<&str> = different.map(|(name, _)| name.as_str()).collect();
        if different.is_empty() {
            return Ok("unchanged".to_owned());
        }
        let fields = inline(&different.join(", ")).into_owned();
        if self.dry_run {
            return Ok(format!("would be updated: {fields}"));
        }
        let known = |name: &str| noun.update.fields().iter().any(|field| field.name == name);
        if let Some(fixed) = different.iter().find(|name| !known(name)) {
            return Err(CtlError::failed(inline(fixed), "cannot be changed"));
        }
        let body: Fields = resolved
            .into_iter()
            .filter(|(name, _)| known(name))
            .collect();
        let path = format!("{list}/{}", text(found, "id"));
        let current = self.lookup.client.send(&Call::get(path.clone())).await?;
        let tag = current.headers().get("etag");
        let mut call = Call::new(noun.update.method.clone(), path).json(&body.into());
        call.if_match = tag.and_then(|tag| Some(tag.to_str().ok()?.to_owned()));
        self.lookup.client.json(&call).await?;
        Ok(format!("updated: {fields}"))
    }

    /// Replaces names in reference fields by IDs.
    async fn resolved(
        &self,
        noun: NounOperations<'_>,
        list: &str,
        fields: &Fields,
    ) -> Result<Fields, CtlError> {
        let mut resolved = fields.clone();
        self.lookup.fields(noun.create, &mut resolved, list).await?;
        Ok(resolved)
    }
}

/// Formats kind and name of a resource, such as `service/shop`.
fn subject(noun: NounOperations<'_>, name: &str) -> String {
    format!("{}/{}", noun.list.noun, inline(name))
}
