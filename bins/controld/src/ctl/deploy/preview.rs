//! Text form of a bundle's preview: the sections of `proxyd diff`, for each bundle that nodes run.

use crate::ctl::lookup::text as raw_field;
use crate::ctl::output::escape::inline;
use serde_json::Value;
use std::borrow::Cow;
use std::fmt::Write as _;

/// Maximum number of entries of a section; only the number of further ones is shown.
const MAX_LISTED: usize = 50;
/// Maximum width for the alignment of columns, in characters. Wider cells shift only their own row.
const MAX_CELL_CHARS: usize = 60;

/// Formats a preview.
pub(super) fn text(preview: &Value) -> String {
    let mut page = String::new();
    for compared in items(preview, "comparisons") {
        push_comparison(&mut page, compared);
    }
    let mut note = |count: i64, one: &str, several: &str| {
        let text = if count == 1 { one } else { several };
        if count > 0 {
            writeln!(page, "{count} {text}").unwrap_or_default();
        }
    };
    note(
        number(preview, "other_nodes"),
        "node has another bundle assigned, which was not compared",
        "nodes have other bundles assigned, which were not compared",
    );
    note(
        number(preview, "unordered_nodes"),
        "node has no bundle yet",
        "nodes have no bundle yet",
    );
    if preview.get("needs_approval").and_then(Value::as_bool) == Some(true) {
        page.push_str("the project's policy requires another person's approval\n");
    }
    let until = field(preview, "frozen_until");
    if !until.is_empty() {
        writeln!(page, "the project's policy allows no change until {until}").unwrap_or_default();
    }
    page
}

/// Returns true if these bytes are the target of all nodes.
pub(super) fn is_ordered(preview: &Value) -> bool {
    let mut compared = items(preview, "comparisons").peekable();
    compared.peek().is_some() && other_nodes(preview) == 0 && compared.all(is_same)
}

/// Returns the IDs of the bundles with these bytes that are assigned to nodes.
pub(super) fn same_bundles(preview: &Value) -> Vec<&str> {
    let same = items(preview, "comparisons").filter(|compared| is_same(compared));
    same.map(|compared| raw_field(compared, "before")).collect()
}

/// Returns the number of nodes that would get the bundle.
pub(super) fn nodes(preview: &Value) -> i64 {
    let compared = items(preview, "comparisons").map(|compared| number(compared, "nodes"));
    compared.sum::<i64>() + other_nodes(preview)
}

fn other_nodes(preview: &Value) -> i64 {
    number(preview, "other_nodes") + number(preview, "unordered_nodes")
}

fn field<'a>(value: &'a Value, name: &str) -> Cow<'a, str> {
    inline(raw_field(value, name))
}

fn push_comparison(page: &mut String, compared: &Value) {
    let (name, id) = (field(compared, "name"), field(compared, "before"));
    let nodes = number(compared, "nodes");
    let noun = if nodes == 1 { "node" } else { "nodes" };
    let before = format!("bundle {name} ({id}), assigned to {nodes} {noun}");
    if is_same(compared) {
        writeln!(page, "the same bytes as {before}\n").unwrap_or_default();
        return;
    }
    let Some(diff) = compared.get("diff").filter(|diff| diff.is_object()) else {
        writeln!(
            page,
            "no comparison with {before}: it fails current checks\n"
        )
        .unwrap_or_default();
        return;
    };
    writeln!(page, "compared with {before}\n").unwrap_or_default();
    let row = |names: &[&str], item: &Value| -> Vec<String> {
        names
            .iter()
            .map(|name| field(item, name).into_owned())
            .collect()
    };
    let rows = |list: &str, names: &[&str]| -> Vec<Vec<String>> {
        items(diff, list).map(|item| row(names, item)).collect()
    };
    push_section(
        page,
        "risks",
        &rows("risks", &["class", "subject", "change"]),
        0,
    );
    let omitted = |name: &str| usize::try_from(number(diff, name)).unwrap_or_default();
    let moved: Vec<Vec<String>> = items(diff, "requests").map(request_row).collect();
    let heading = "requests that are answered differently";
    push_section(page, heading, &moved, omitted("omitted_requests"));
    push_section(
        page,
        "routes that take no request",
        &texts(diff, "unreachable_routes"),
        0,
    );
    push_section(
        page,
        "added and removed",
        &rows("parts", &["change", "part"]),
        0,
    );
    let settings: Vec<Vec<String>> = items(diff, "settings").map(setting_row).collect();
    push_section(page, "settings in force", &settings, omitted("omitted"));
    push_section(page, "a reload ends", &texts(diff, "drained"), 0);
    push_section(page, "limits of the comparison", &texts(diff, "limits"), 0);
    push_section(page, "files", &rows("files", &["change", "name"]), 0);
}

/// Row of requests with another response: both responses, and a sample request.
fn request_row(region: &Value) -> Vec<String> {
    let answers = format!("{} -> {}", field(region, "before"), field(region, "after"));
    vec![answers, format!("such as {}", field(region, "example"))]
}

/// Row of a changed setting: its path, and its values before and after.
fn setting_row(change: &Value) -> Vec<String> {
    let values = |name: &str| {
        let values: Vec<String> = items(change, name).map(ToString::to_string).collect();
        if values.is_empty() {
            "none".to_owned()
        } else {
            values.join(", ")
        }
    };
    let values = format!("{} -> {}", values("before"), values("after"));
    vec![field(change, "path").into_owned(), values]
}

fn push_section(page: &mut String, heading: &str, rows: &[Vec<String>], omitted: usize) {
    if rows.is_empty() {
        return;
    }
    writeln!(page, "{heading}").unwrap_or_default();
    let listed = rows.get(..MAX_LISTED).unwrap_or(rows);
    let columns = listed.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        let cells = listed.iter().filter_map(|row| row.get(column));
        let widths = cells.map(|cell| cell.chars().count());
        let widths = widths.filter(|width| *width <= MAX_CELL_CHARS);
        widths.max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for row in listed {
        let cells = row.iter().zip(&widths);
        let cells: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:width$}", width = *width))
            .collect();
        writeln!(page, "  {}", cells.join("  ").trim_end()).unwrap_or_default();
    }
    let more = rows.len() - listed.len() + omitted;
    if more > 0 {
        writeln!(page, "  and {more} more, all with -o json").unwrap_or_default();
    }
    page.push('\n');
}

fn is_same(compared: &Value) -> bool {
    compared.get("same").and_then(Value::as_bool) == Some(true)
}

fn items<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    value
        .get(name)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn texts(value: &Value, name: &str) -> Vec<Vec<String>> {
    let texts = items(value, name).filter_map(Value::as_str);
    texts.map(|text| vec![inline(text).into_owned()]).collect()
}

fn number(value: &Value, name: &str) -> i64 {
    value.get(name).and_then(Value::as_i64).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_preview_names_bundles_risks_and_the_policy() {
        let preview = json!({
            "comparisons": [
                {"before": "1", "name": "v1", "nodes": 3, "same": false, "diff": {
                    "risks": [{"class": "agent-removed", "subject": "route a", "change": "no sso"}],
                    "requests": [{"before": "a (u)", "after": "b (u)", "example": "GET /a"}],
                    "omitted_requests": 2, "unreachable_routes": ["a"], "omitted": 0,
                    "settings": [{"path": "x", "before": [1], "after": []}],
                }},
                {"before": "2", "name": "v2", "nodes": 1, "same": true, "diff": {}},
            ],
            "other_nodes": 0, "unordered_nodes": 2, "needs_approval": true,
            "frozen_until": "2026-11-30T08:00:00Z",
        });
        assert_eq!(
            text(&preview),
            "compared with bundle v1 (1), assigned to 3 nodes\n\n\
             risks\n  agent-removed  route a  no sso\n\n\
             requests that are answered differently\n  a (u) -> b (u)  such as GET /a\n  \
             and 2 more, all with -o json\n\n\
             routes that take no request\n  a\n\n\
             settings in force\n  x  1 -> none\n\n\
             the same bytes as bundle v2 (2), assigned to 1 node\n\n\
             2 nodes have no bundle yet\n\
             the project's policy requires another person's approval\n\
             the project's policy allows no change until 2026-11-30T08:00:00Z\n"
        );
        assert!(!is_ordered(&preview));
        assert_eq!(nodes(&preview), 6);
        assert_eq!(same_bundles(&preview), ["2"]);
    }

    #[test]
    fn a_name_imitates_no_further_line() {
        let hostile = "a\nthe same bytes as bundle b";
        let preview = json!({"comparisons": [
            {"before": hostile, "name": hostile, "nodes": 1, "same": false, "diff": {
                "unreachable_routes": [hostile],
                "requests": [{"before": hostile, "after": hostile, "example": hostile}],
                "settings": [{"path": hostile, "before": [hostile], "after": []}],
            }},
        ], "frozen_until": hostile});
        let shown = text(&preview);
        assert!(!shown.contains("\nthe same"), "{shown}");
    }

    #[test]
    fn bytes_are_ordered_if_they_are_the_target_of_every_node() {
        let one = |same: bool, others: i64| json!({"comparisons": [{"same": same, "nodes": 1}], "other_nodes": others, "unordered_nodes": 0});
        assert!(is_ordered(&one(true, 0)));
        assert!(!is_ordered(&one(false, 0)));
        assert!(!is_ordered(&one(true, 1)));
        let none = json!({"comparisons": [], "other_nodes": 0, "unordered_nodes": 0});
        assert!(!is_ordered(&none));
        assert_eq!(nodes(&none), 0);
    }
}
