//! Output of responses as tables, JSON or IDs.

pub(crate) mod diagnostics;
pub(crate) mod escape;
pub(crate) mod manual;

use crate::ctl::error::CtlError;
use crate::ctl::output::escape::{escaped, inline, is_hazardous};
use crate::standard_output::write_text;
use comfy_table::Table;
use comfy_table::presets::NOTHING;
use serde_json::Value;
use std::fmt::Write as _;
use std::io::{self, Write as _};

/// Maximum number of columns of lists that are not in [`OWN_COLUMNS`]. `get` and `-o json` show all
/// fields.
const COLUMNS: usize = 8;
/// Fields that come first in a table, in this order.
const FIRST: &[&str] = &["id", "user", "seq", "name", "email", "state", "role"];

/// Columns of frequent lists: heading and path within an item. The same for any items.
const OWN_COLUMNS: &[(&str, &[(&str, &str)])] = &[
    (
        "node",
        &[
            ("ID", "/id"),
            ("NAME", "/name"),
            ("STATE", "/state"),
            ("BUNDLE", "/status/active"),
            ("VERDICT", "/status/verdict"),
            ("LABELS", "/labels"),
            ("LAST SEEN", "/seen_at"),
            ("VERSION", "/version"),
        ],
    ),
    (
        "bundle",
        &[
            ("ID", "/id"),
            ("NAME", "/name"),
            ("STATE", "/state"),
            ("CREATED AT", "/created_at"),
        ],
    ),
    (
        "rollout",
        &[
            ("ID", "/id"),
            ("STATE", "/state"),
            ("BUNDLE", "/bundle"),
            ("NODES", "/nodes"),
            ("BATCH", "/batch"),
            ("OF", "/batch_total"),
            ("CREATED AT", "/created_at"),
            ("REASON", "/reason"),
        ],
    ),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    Table,
    Json,
    Id,
}

impl Output {
    /// Parses the value of `-o`.
    pub(crate) fn named(name: &str) -> Self {
        match name {
            "json" => Self::Json,
            "id" => Self::Id,
            _ => Self::Table,
        }
    }

    pub(crate) fn resource(self, value: &Value) -> String {
        match self {
            Self::Json => pretty(value),
            Self::Id => ids(std::slice::from_ref(value)),
            Self::Table => fields(value),
        }
    }

    /// Formats a list of resources of kind `noun`.
    pub(crate) fn list(self, noun: &str, items: &[Value]) -> String {
        match self {
            Self::Json => pretty(&serde_json::json!({ "items": items })),
            Self::Id => ids(items),
            Self::Table => match OWN_COLUMNS.iter().find(|(own, _)| *own == noun) {
                Some((_, columns)) => table_of(columns, items),
                None => table(items),
            },
        }
    }
}

/// Writes a line to standard error. A closed pipe is not an error: the exit code remains.
pub(crate) fn report(text: &str) {
    writeln!(io::stderr().lock(), "{}", escaped(text)).unwrap_or_default();
}

/// Writes to standard output. A closed pipe, as with `| head`, is not an error.
///
/// # Errors
///
/// [`CtlError::Failed`] if the output cannot be written.
pub(crate) fn print(text: &str) -> Result<(), CtlError> {
    write_text(&escaped(text)).map_err(|error| CtlError::failed("standard output", error))
}

fn pretty(value: &Value) -> String {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    let mut shown = String::with_capacity(text.len() + 1);
    for sign in text.chars() {
        if is_hazardous(sign) {
            // In JSON, these characters occur only in strings, and all of them fit in four digits.
            write!(shown, "\\u{:04x}", u32::from(sign)).unwrap_or_default();
        } else {
            shown.push(sign);
        }
    }
    shown + "\n"
}

/// Formats one ID per line; skips resources without an ID.
fn ids(items: &[Value]) -> String {
    let ids = items.iter().filter_map(|item| {
        let own = ["id", "user", "seq"].iter().find_map(|name| item.get(name));
        own.map(|id| cell(Some(id)) + "\n")
    });
    ids.collect()
}

fn fields(value: &Value) -> String {
    let Some(object) = value.as_object() else {
        return if value.is_null() {
            String::new()
        } else {
            pretty(value)
        };
    };
    let mut table = bare();
    for (name, value) in object {
        table.add_row([format!("{}:", inline(name)), cell(Some(value))]);
    }
    finish(&table)
}

fn table(items: &[Value]) -> String {
    let columns = columns(items);
    let mut table = bare();
    table.set_header(
        columns
            .iter()
            .map(|name| name.to_uppercase().replace('_', " ")),
    );
    for item in items {
        table.add_row(columns.iter().map(|name| cell(item.get(name))));
    }
    finish(&table)
}

fn table_of(columns: &[(&str, &str)], items: &[Value]) -> String {
    let mut table = bare();
    table.set_header(columns.iter().map(|(heading, _)| *heading));
    for item in items {
        table.add_row(columns.iter().map(|(_, place)| cell(item.pointer(place))));
    }
    finish(&table)
}

/// Selects the columns of a table: all fields except objects, and lists of anything but texts.
fn columns(items: &[Value]) -> Vec<&str> {
    let mut found: Vec<&str> = Vec::new();
    for (name, value) in items.iter().filter_map(Value::as_object).flatten() {
        let is_list = value
            .as_array()
            .is_some_and(|all| all.iter().all(Value::is_string));
        let fits = !value.is_object() && (!value.is_array() || is_list);
        if fits && !found.contains(&name.as_str()) {
            found.push(name);
        }
    }
    let rank = |name: &str| FIRST.iter().position(|first| *first == name);
    found.sort_by_key(|name| rank(name).unwrap_or(FIRST.len()));
    found.truncate(COLUMNS);
    found
}

fn cell(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "-".to_owned(),
        Some(Value::String(text)) => inline(text).into_owned(),
        Some(Value::Array(all)) if all.iter().all(Value::is_string) => {
            let texts = all.iter().filter_map(Value::as_str).map(inline);
            texts.collect::<Vec<_>>().join(",")
        }
        Some(Value::Object(pairs)) if pairs.values().all(Value::is_string) => {
            let pairs = pairs.iter().map(|(name, value)| {
                let value = value.as_str().unwrap_or_default();
                format!("{}={}", inline(name), inline(value))
            });
            pairs.collect::<Vec<_>>().join(",")
        }
        Some(other) => other.to_string(),
    }
}

fn bare() -> Table {
    let mut table = Table::new();
    table.load_preset(NOTHING);
    table
}

/// Formats a table, without the padding at the start and end of its lines.
fn finish(table: &Table) -> String {
    let lines = table.lines();
    let lines = lines.map(|line| {
        let line = line.strip_prefix(' ').unwrap_or(&line).trim_end();
        format!("{line}\n")
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_list_is_a_table_of_what_fits() {
        let items = [
            json!({"created_at": "now", "id": "1", "name": "edge", "tags": ["a", "b"], "spec": {}}),
            json!({"created_at": "then", "id": "2", "name": "core", "tags": [], "spec": {}}),
        ];
        let text = Output::Table.list("service", &items);
        assert_eq!(
            text,
            "ID  NAME  CREATED AT  TAGS\n1   edge  now         a,b\n2   core  then\n"
        );
        assert_eq!(Output::Id.list("service", &items), "1\n2\n");
        let found: Value = serde_json::from_str(&Output::Json.list("service", &items)).unwrap();
        assert_eq!(found["items"][1]["name"], "core");
    }

    #[test]
    fn escapes_of_terminals_are_shown_and_not_sent() {
        let hostile = "a\u{1b}]0;owned\u{7}\u{9b}2J\u{202e}b\r";
        let value = json!({"message": hostile});
        let shown = "a\\u{1b}]0;owned\\u{7}\\u{9b}2J\\u{202e}b\\u{d}";
        let text = Output::Table.resource(&value);
        assert_eq!(text, format!("message:  {shown}\n"));
        assert_eq!(escaped(hostile), shown);
        let text = Output::Json.resource(&value);
        assert!(!text.contains(is_hazardous), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }

    #[test]
    fn a_value_ends_no_line() {
        let hostile = "a\nID  NAME\r\n1\u{2028}2\u{2029}3\u{61c}";
        let shown = "a\\nID  NAME\\u{d}\\n1\\u{2028}2\\u{2029}3\\u{61c}";
        let item = json!({"id": hostile, "tags": [hostile], "labels": {"tier": hostile}});
        for text in [
            Output::Table.list("node", std::slice::from_ref(&item)),
            Output::Table.list("service", std::slice::from_ref(&item)),
            Output::Id.list("service", std::slice::from_ref(&item)),
        ] {
            assert!(text.contains(shown), "{text}");
            assert!(text.lines().count() <= 2, "{text}");
            assert!(!text.contains(is_hazardous), "{text}");
        }
        let page = Output::Table.resource(&item);
        assert_eq!(page.lines().count(), 3, "{page}");
        let text = Output::Json.resource(&item);
        assert!(!text.contains(is_hazardous), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), item);
    }

    #[test]
    fn a_list_of_nodes_has_the_same_columns_whatever_the_nodes_have() {
        let seen = json!({"id": "1", "name": "a", "state": "online", "labels": {"tier": "edge", "zone": "1"},
            "seen_at": "now", "version": "0.1.0", "status": {"active": "b", "verdict": "accepted"}});
        let new =
            json!({"id": "2", "name": "b", "state": "enrolled", "labels": {}, "status": null});
        assert_eq!(
            Output::Table.list("node", &[new, seen]),
            "ID  NAME  STATE     BUNDLE  VERDICT   LABELS            LAST SEEN  VERSION\n\
             2   b     enrolled  -       -                           -          -\n\
             1   a     online    b       accepted  tier=edge,zone=1  now        0.1.0\n"
        );
    }

    #[test]
    fn a_resource_is_one_field_a_line() {
        let text = Output::Table.resource(&json!({"id": "1", "project": null}));
        assert_eq!(text, "id:       1\nproject:  -\n");
        assert_eq!(Output::Table.resource(&Value::Null), "");
    }
}
