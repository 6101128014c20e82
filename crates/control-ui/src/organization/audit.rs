//! The audit log: actor, action and subject, with the values before and after.

use crate::frame::{Frame, NavEntry, show};
use crate::request::failure::Failure;
use crate::request::path::Path;
use crate::request::visit::Caller;
use crate::ui::Ui;
use crate::view::component::{NextPage, RelativeTime, more, when};
use crate::view::phrase::{ago, count, number, sentence, short};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use control_app::{AuditChange, AuditFilter, AuditRecord};
use control_wire::OrgId;
use form_urlencoded::byte_serialize;
use jiff::Timestamp;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::sync::Arc;
use uuid::Uuid;

/// Entries of one page.
const SHOWN_COUNT: i64 = 50;

#[derive(Template)]
#[template(path = "audit.html")]
struct AuditPage {
    frame: Frame,
    org: OrgId,
    heading: String,
    /// Whereabouts of older entries; empty if all are kept here.
    archived: String,
    action: String,
    is_filtered: bool,
    rows: Vec<Row>,
    more: NextPage,
}

struct Row {
    seq: String,
    at: RelativeTime,
    actor: String,
    actor_id: Uuid,
    address: String,
    action: String,
    subject: String,
    subject_id: Uuid,
    changes: Vec<FieldChange>,
}

/// One field that a command changed.
#[derive(Debug, PartialEq, Eq)]
struct FieldChange {
    name: String,
    before: String,
    after: String,
}

/// The entries, newest first; `?action=`, `?actor=` and `?subject=` filter.
pub(crate) async fn list(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(org): Path<OrgId>,
) -> Result<Response, Failure> {
    let frame = Frame::org(&ui, &caller, org, NavEntry::Audit.titled("Audit log")).await?;
    let query = &caller.visit.query;
    let filter = AuditFilter {
        actor: query.get("actor").parse().ok(),
        action: query.given("action").map(str::to_owned),
        subject: query.get("subject").parse().ok(),
        ..AuditFilter::default()
    };
    let before = query.get("before").parse::<i64>().ok();
    let is_filtered = filter != AuditFilter::default();
    let found = ui
        .app
        .audit_log(&caller.call, org, &filter, before, SHOWN_COUNT);
    let found = found.await?;
    let now = caller.visit.now;
    let newest = found.records.first();
    let next = found
        .next
        .map(|next| format!("?{}before={next}", query_of(&filter)));
    Ok(show(&AuditPage {
        frame,
        org,
        heading: heading(newest, is_filtered, now),
        archived: archived(ui.app.retention.audit),
        action: filter.action.clone().unwrap_or_default(),
        is_filtered,
        rows: found
            .records
            .iter()
            .map(|record| row(record, now))
            .collect(),
        more: more(next, "Show older entries"),
    }))
}

/// The sentence on entries past the retention of `days`; empty without an end.
fn archived(days: u32) -> String {
    match days {
        0 => String::new(),
        days => format!(
            "Entries older than {} are not listed: the operator of the installation has them in archives.",
            count(i64::from(days), "day")
        ),
    }
}

fn query_of(filter: &AuditFilter) -> String {
    let mut query = String::new();
    if let Some(action) = &filter.action {
        let action: String = byte_serialize(action.as_bytes()).collect();
        query = format!("action={action}&");
    }
    for (name, id) in [("actor", filter.actor), ("subject", filter.subject)] {
        if let Some(id) = id {
            query = format!("{query}{name}={id}&");
        }
    }
    query
}

fn row(record: &AuditRecord, now: Timestamp) -> Row {
    let named = record.actor_name.clone().filter(|name| !name.is_empty());
    let kind = record.actor_kind.replace('_', " ");
    Row {
        seq: number(record.seq),
        at: when(record.at, now),
        actor: named.unwrap_or_else(|| match kind.as_str() {
            "system" => "controld".to_owned(),
            _ => format!("{kind} …{}", short(record.actor)),
        }),
        actor_id: record.actor,
        address: record.client_ip.clone().unwrap_or_default(),
        action: record.action.clone(),
        subject: short(record.subject),
        subject_id: record.subject,
        changes: changes(&record.change),
    }
}

/// The fields that differ; all fields of a new or deleted value.
fn changes(change: &AuditChange) -> Vec<FieldChange> {
    let object = |text: &Option<String>| -> Map<String, Value> {
        let value = text
            .as_deref()
            .and_then(|text| serde_json::from_str(text).ok());
        match value {
            Some(Value::Object(fields)) => fields,
            _ => Map::new(),
        }
    };
    let (before, after) = (object(&change.before), object(&change.after));
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let differing = names
        .into_iter()
        .filter(|name| before.get(*name) != after.get(*name));
    let fields = differing.map(|name| FieldChange {
        name: name.clone(),
        before: text(before.get(name)),
        after: text(after.get(name)),
    });
    fields.collect()
}

fn text(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

fn heading(newest: Option<&AuditRecord>, is_filtered: bool, now: Timestamp) -> String {
    match newest {
        None if is_filtered => "No entry matches this filter.".to_owned(),
        None => "The log has no entry yet.".to_owned(),
        Some(record) => {
            let first = if is_filtered {
                "the newest of these"
            } else {
                "the newest entry"
            };
            sentence(&format!(
                "{first} is {}, {}",
                record.action,
                ago(record.at, now)
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_says_from_which_age_entries_are_in_archives() {
        let expected = "Entries older than 400 days are not listed: \
                        the operator of the installation has them in archives.";
        assert_eq!(archived(400), expected);
        assert_eq!(archived(0), "");
    }

    #[test]
    fn only_fields_that_differ_are_shown() {
        let change = AuditChange {
            before: Some(r#"{"name":"edge","role":"reader"}"#.to_owned()),
            after: Some(r#"{"name":"edge","role":"admin","tags":["a"]}"#.to_owned()),
        };
        let reported: Vec<(String, String, String)> = changes(&change)
            .into_iter()
            .map(|field| (field.name, field.before, field.after))
            .collect();
        let expected = [("role", "reader", "admin"), ("tags", "", "[\"a\"]")];
        let expected = expected.map(|(a, b, c)| (a.to_owned(), b.to_owned(), c.to_owned()));
        assert_eq!(reported, expected);
        assert_eq!(changes(&AuditChange::default()), []);
    }
}
