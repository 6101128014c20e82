//! Resolves names to IDs. Without a name, an organization or project is used if it is the only one.

use crate::ctl::client::{Call, Client};
use crate::ctl::error::CtlError;
use crate::ctl::operation::Operation;
use crate::ctl::output::escape::inline;
use http::Method;
use serde_json::{Map, Value};
use std::borrow::Cow;
use uuid::Uuid;

/// Maximum page size of the interface.
const PAGE: usize = 200;
/// Maximum number of names that an error message suggests.
const MAX_NAMES: usize = 20;

/// Resolves names to IDs with requests to the control plane.
pub(crate) struct Lookup<'a> {
    pub(crate) client: &'a Client,
    pub(crate) operations: &'a [Operation],
}

impl Lookup<'_> {
    /// Fills the path of an operation with IDs. `given` returns the command line's value of a
    /// parameter.
    pub(crate) async fn path(
        &self,
        operation: &Operation,
        given: impl Fn(&str) -> Option<String>,
    ) -> Result<String, CtlError> {
        let mut path = String::new();
        for part in operation.path.split_inclusive('/') {
            let bare = part.trim_end_matches('/');
            let name = bare
                .strip_prefix('{')
                .and_then(|rest| rest.strip_suffix('}'));
            let Some(name) = name else {
                path.push_str(part);
                continue;
            };
            let id = self.id(operation, name, given(name), &path).await?;
            path.push_str(&id);
            if part.ends_with('/') {
                path.push('/');
            }
        }
        Ok(path)
    }

    /// Replaces names by IDs in those fields of a body that refer to resources.
    pub(crate) async fn fields(
        &self,
        operation: &Operation,
        body: &mut Map<String, Value>,
        path: &str,
    ) -> Result<(), CtlError> {
        for field in operation.fields().iter().filter(|field| field.is_id) {
            let Some(value) = body.get_mut(&field.name) else {
                continue;
            };
            let Value::Array(items) = value else {
                self.replace(&field.name, value, path).await?;
                continue;
            };
            let noun = field.name.trim_end_matches('s');
            for item in items {
                self.replace(noun, item, path).await?;
            }
        }
        Ok(())
    }

    async fn replace(&self, name: &str, value: &mut Value, path: &str) -> Result<(), CtlError> {
        let given = value.as_str().map(str::to_owned);
        if let Some(id) = self.field(name, given.as_deref(), path).await? {
            *value = Value::String(id);
        }
        Ok(())
    }

    /// Resolves the name in a field of a body or query; `None` if it already is an ID, or no
    /// reference.
    pub(crate) async fn field(
        &self,
        name: &str,
        value: Option<&str>,
        path: &str,
    ) -> Result<Option<String>, CtlError> {
        let Some(value) = value.filter(|value| value.parse::<Uuid>().is_err()) else {
            return Ok(None);
        };
        if matches!(name, "org" | "project") {
            return self.scope_id(name, Some(value)).await.map(Some);
        }
        let noun = name.replace('_', "-");
        let list = self.operations.iter().find(|list| {
            let same = list.noun == noun && list.verb == "list" && list.is_paged();
            same && list.method == Method::GET
        });
        let Some(list) = list else { return Ok(None) };
        let Some((around, collection)) = list.path.rsplit_once('/') else {
            return Ok(None);
        };
        // The referenced resource is in the same project as the written one.
        let scope: String = path
            .split_inclusive('/')
            .take(around.split('/').count())
            .collect();
        let list = format!("{scope}{collection}");
        self.named(&list, value, &noun).await.map(Some)
    }

    /// Resolves an organization or a project; `None` selects the only one.
    pub(crate) async fn scope_id(
        &self,
        noun: &str,
        given: Option<&str>,
    ) -> Result<String, CtlError> {
        if let Some(id) = given.filter(|text| text.parse::<Uuid>().is_ok()) {
            return Ok(id.to_owned());
        }
        let orgs = self.all("/api/v1/orgs", None).await?;
        let mut items = Vec::new();
        if noun == "org" {
            items = orgs;
        } else {
            for org in orgs {
                let path = format!("/api/v1/orgs/{}/projects", text(&org, "id"));
                items.extend(self.all(&path, None).await?);
            }
        }
        unique_id(noun, given, &items)
    }

    /// Reads a list page by page, up to `limit` items.
    pub(crate) async fn all(
        &self,
        path: &str,
        limit: Option<usize>,
    ) -> Result<Vec<Value>, CtlError> {
        let joint = if path.contains('?') { '&' } else { '?' };
        let mut items = Vec::new();
        let mut cursor = String::new();
        loop {
            let wanted = limit.map_or(PAGE, |limit| limit.saturating_sub(items.len()).min(PAGE));
            let page = Call::get(format!("{path}{joint}limit={wanted}{cursor}"));
            let page = self.client.json(&page).await?;
            let new = page.get("items").and_then(Value::as_array);
            items.extend(new.into_iter().flatten().cloned());
            let next = match page.get("next_cursor") {
                Some(Value::String(next)) => next.clone(),
                Some(Value::Number(next)) => next.to_string(),
                _ => return Ok(items),
            };
            if limit.is_some_and(|limit| limit <= items.len()) {
                return Ok(items);
            }
            cursor = format!("&cursor={next}");
        }
    }

    async fn id(
        &self,
        operation: &Operation,
        name: &str,
        given: Option<String>,
        before: &str,
    ) -> Result<String, CtlError> {
        if matches!(name, "org" | "project") {
            return self.scope_id(name, given.as_deref()).await;
        }
        let given = given.unwrap_or_default();
        if given.parse::<Uuid>().is_ok() {
            return Ok(given);
        }
        let own = format!("/{{{name}}}");
        let list = operation.path.split(&own).next().unwrap_or_default();
        let mut listed = self.operations.iter();
        if !listed.any(|one| one.method == Method::GET && one.path == list && one.is_paged()) {
            return Err(CtlError::usage(format!("{name} {given}: is not an id")));
        }
        self.named(before.trim_end_matches('/'), &given, name).await
    }

    async fn named(&self, list: &str, given: &str, noun: &str) -> Result<String, CtlError> {
        let items = self.all(list, None).await?;
        unique_id(noun, Some(given), &items)
    }
}

/// Finds the only item with this name, or the only item if no name is given.
fn unique_id(noun: &str, given: Option<&str>, items: &[Value]) -> Result<String, CtlError> {
    let is_it = |item: &&Value| match given {
        None => true,
        Some(given) => ["name", "email"]
            .iter()
            .any(|field| text(item, field) == given),
    };
    let found: Vec<&Value> = items.iter().filter(is_it).collect();
    match (found.as_slice(), given) {
        ([one], _) => {
            let own = text(one, "id");
            let id = if own.is_empty() { text(one, noun) } else { own };
            Ok(id.to_owned())
        }
        ([], Some(given)) => Err(CtlError::failed(
            format!("{noun} {given}"),
            "there is none of this name",
        )),
        ([], None) => Err(CtlError::usage(format!(
            "--{noun} is needed: there is none yet"
        ))),
        (_, Some(given)) => Err(CtlError::usage(format!(
            "{noun} {given}: several have this name; give the id"
        ))),
        (_, None) => {
            let names = found.iter().map(|item| inline(text(item, "name")));
            let mut names: Vec<Cow<'_, str>> = names.take(MAX_NAMES).collect();
            names.extend((MAX_NAMES < found.len()).then_some(Cow::Borrowed("…")));
            let names = names.join(", ");
            Err(CtlError::usage(format!(
                "--{noun} is needed: one of {names}"
            )))
        }
    }
}

pub(crate) fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}
