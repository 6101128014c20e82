//! List of audit entries: actor, action, subject, values before and after.

mod filter;

use crate::frame::{Frame, NavEntry, show};
use crate::organization::members::member_names;
use crate::request::failure::Failure;
use crate::request::path::Path;
use crate::request::visit::Caller;
use crate::ui::Ui;
use crate::view::component::{NextPage, RelativeTime, more, when};
use crate::view::phrase::{ago, count, number, pick, short};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use control_app::{AuditChange, AuditPage as FoundPage, AuditRecord};
use control_wire::OrgId;
use filter::{Choice, Filter};
use jiff::Timestamp;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use uuid::Uuid;

/// Number of entries per page.
const SHOWN_COUNT: i64 = 50;

#[derive(Template)]
#[template(path = "audit.html")]
struct AuditPage {
    frame: Frame,
    org: OrgId,
    heading: String,
    /// Sentence on archived entries; empty if there are none.
    archived: String,
    chosen: Filter,
    is_filtered: bool,
    kinds: Vec<Choice>,
    periods: Vec<Choice>,
    limits: Vec<Choice>,
    /// Query that exports these entries.
    export: String,
    rows: Vec<Row>,
    more: NextPage,
}

struct Row {
    seq: String,
    at: RelativeTime,
    actor: String,
    /// Link to all entries of this actor.
    by_actor: String,
    address: String,
    /// Action in words.
    words: String,
    action: String,
    /// Name of the subject; empty if unknown.
    subject: String,
    subject_short: String,
    /// Link to all entries of this subject.
    of_subject: String,
    changes: Vec<FieldChange>,
}

/// A field changed by a command.
#[derive(Debug, PartialEq, Eq)]
struct FieldChange {
    name: String,
    before: String,
    after: String,
}

/// Shows the entries, newest first. `?action=`, `?actor=`, `?subject=`, `?since=` and `?until=`
/// filter them.
pub(crate) async fn list(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(org): Path<OrgId>,
) -> Result<Response, Failure> {
    let frame = Frame::org(&ui, &caller, org, NavEntry::Audit.titled("Audit log")).await?;
    let (query, now) = (&caller.visit.query, caller.visit.now);
    let filter = Filter::from_query(query);
    let stored = filter.stored();
    let before = query.get("before").parse::<i64>().ok();
    let found = ui
        .app
        .audit_log(&caller.call, org, &stored, before, SHOWN_COUNT);
    let found = found.await?;
    // Entries about members contain only identifiers.
    let names = member_names(&ui, &caller, org).await?;
    let rows: Vec<Row> = found
        .records
        .iter()
        .map(|record| row(record, &filter, &names, now))
        .collect();
    let name_of = |id: Option<Uuid>, found: Option<&String>| {
        let found = found.filter(|name| !name.is_empty()).cloned();
        found.unwrap_or_else(|| id.map_or_else(String::new, |id| format!("…{}", short(id))))
    };
    let actor = name_of(filter.actor, rows.first().map(|row| &row.actor));
    let subject = name_of(filter.subject, rows.first().map(|row| &row.subject));
    let is_filtered = filter != Filter::default();
    let next = found.next.map(|next| filter.link_before(Some(next)));
    Ok(show(&AuditPage {
        frame,
        org,
        heading: heading(&found, before.is_none(), is_filtered, now),
        archived: archived(ui.app.retention.audit),
        is_filtered,
        kinds: filter.kinds(),
        periods: filter.periods(now),
        limits: filter.limits(&actor, &subject),
        export: filter.export(),
        chosen: filter,
        rows,
        more: more(next, "Show older entries"),
    }))
}

/// Sentence on entries older than the retention of `days`; empty for unlimited retention.
fn archived(days: u32) -> String {
    match days {
        0 => String::new(),
        days => format!(
            "Entries older than {} are not listed: the operator of the installation has them in archives.",
            count(i64::from(days), "day")
        ),
    }
}

fn row(
    record: &AuditRecord,
    filter: &Filter,
    names: &BTreeMap<Uuid, String>,
    now: Timestamp,
) -> Row {
    let named = record.actor_name.clone().filter(|name| !name.is_empty());
    let kind = record.actor_kind.replace('_', " ");
    let changes = changes(&record.change);
    let subject = names.get(&record.subject).cloned();
    let by_actor = Filter {
        actor: Some(record.actor),
        ..filter.clone()
    };
    let of_subject = Filter {
        subject: Some(record.subject),
        ..filter.clone()
    };
    Row {
        seq: number(record.seq),
        at: when(record.at, now),
        actor: named.unwrap_or_else(|| match kind.as_str() {
            "system" => "controld".to_owned(),
            _ => format!("{kind} …{}", short(record.actor)),
        }),
        by_actor: by_actor.link(),
        address: record.client_ip.clone().unwrap_or_default(),
        words: words(&record.action),
        action: record.action.clone(),
        subject: subject.unwrap_or_else(|| name(&record.change)),
        subject_short: short(record.subject),
        of_subject: of_subject.link(),
        changes,
    }
}

/// Words for actions on rollouts, which are named by their commands.
const ROLLOUT_ACTIONS: [(&str, &str); 15] = [
    ("rollout.submit", "Approval of a rollout requested"),
    ("rollout.start", "Rollout started"),
    ("rollout.approve", "Rollout approved"),
    ("rollout.open_batch", "Batch opened"),
    ("rollout.order_nodes", "Nodes of a batch ordered"),
    ("rollout.switch_batch", "Batch runs the bundle"),
    ("rollout.pass_batch", "Batch passed"),
    ("rollout.pause", "Rollout paused"),
    ("rollout.resume", "Rollout resumed"),
    ("rollout.complete", "Rollout completed"),
    ("rollout.fail", "Batch did not pass"),
    ("rollout.roll_back", "Rollback started"),
    ("rollout.revert_nodes", "Nodes ordered to revert"),
    ("rollout.finish_rollback", "Rollback finished"),
    ("rollout.cancel", "Rollout cancelled"),
];

/// Words such as `API key created` for `api_key.created`.
fn words(action: &str) -> String {
    let mut known = ROLLOUT_ACTIONS.iter();
    if let Some((_, words)) = known.find(|(own, _)| *own == action) {
        return (*words).to_owned();
    }
    let words = action.replace(['.', '_'], " ");
    for (begin, noun) in [
        ("api key", "API key"),
        ("sso", "Single sign-on"),
        ("totp", "Second factor"),
    ] {
        if let Some(rest) = words.strip_prefix(begin) {
            return format!("{noun}{rest}");
        }
    }
    let mut chars = words.chars();
    let first = chars.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(chars).collect()
}

/// Name of the subject in the recorded values; empty if there is none.
fn name(change: &AuditChange) -> String {
    let values = [&change.after, &change.before];
    let values = values.into_iter().flatten();
    let mut names = values.filter_map(|text| {
        let value: Value = serde_json::from_str(text).ok()?;
        let name = value.get("name").or_else(|| value.get("email"))?;
        name.as_str().map(str::to_owned)
    });
    names.next().unwrap_or_default()
}

/// Fields with different values; all fields of a created or deleted value.
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

/// Heading; `is_first` says whether this is the first page.
fn heading(found: &FoundPage, is_first: bool, is_filtered: bool, now: Timestamp) -> String {
    let number = i64::try_from(found.records.len()).unwrap_or(i64::MAX);
    let newest = found.records.first().map(|record| ago(record.at, now));
    match (newest, found.next.is_some() || !is_first) {
        (None, true) => "None of these entries matches the filter; older ones may.".to_owned(),
        (None, false) if is_filtered => "No entry matches this filter.".to_owned(),
        (None, false) => "The log has no entry yet.".to_owned(),
        (Some(newest), true) => format!("The newest of these entries was created {newest}."),
        (Some(newest), false) => {
            let entries = count(number, "entry");
            let which = pick(number, "it", "the newest");
            let found = if is_filtered {
                format!("{entries} {} this filter", pick(number, "matches", "match"))
            } else {
                format!("The log has {entries}")
            };
            format!("{found}; {which} was created {newest}.")
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
    fn the_heading_counts_what_is_whole_on_the_page() {
        let now = Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_hours(1);
        let record = AuditRecord {
            seq: 1,
            at: Timestamp::UNIX_EPOCH,
            actor_kind: "user".to_owned(),
            actor: Uuid::nil(),
            actor_name: None,
            client_ip: None,
            project: None,
            action: "member.role_changed".to_owned(),
            subject: Uuid::nil(),
            correlation_id: String::new(),
            change: AuditChange::default(),
            hash: String::new(),
        };
        let found = |number, next| FoundPage {
            records: vec![record.clone(); number],
            next,
        };
        for (page, is_first, is_filtered, expected) in [
            (found(0, None), true, false, "The log has no entry yet."),
            (found(0, None), true, true, "No entry matches this filter."),
            (
                found(0, Some(9)),
                true,
                true,
                "None of these entries matches the filter; older ones may.",
            ),
            (
                found(1, None),
                true,
                true,
                "1 entry matches this filter; it was created 1 hour ago.",
            ),
            (
                found(2, None),
                true,
                false,
                "The log has 2 entries; the newest was created 1 hour ago.",
            ),
            (
                found(2, Some(9)),
                true,
                true,
                "The newest of these entries was created 1 hour ago.",
            ),
        ] {
            assert_eq!(heading(&page, is_first, is_filtered, now), expected);
        }
    }

    #[test]
    fn an_action_has_a_label_and_its_subject_a_name() {
        for (action, expected) in [
            ("member.role_changed", "Member role changed"),
            ("api_key.created", "API key created"),
            ("sso.changed", "Single sign-on changed"),
            ("rollout.open_batch", "Batch opened"),
        ] {
            assert_eq!(words(action), expected);
        }
        let deleted = AuditChange {
            before: Some(r#"{"name":"rack 12"}"#.to_owned()),
            after: None,
        };
        assert_eq!(name(&deleted), "rack 12");
        assert_eq!(name(&AuditChange::default()), "");
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
