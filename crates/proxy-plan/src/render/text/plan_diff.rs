//! The text form of a difference, for a terminal.

use super::table::Table;
use super::value::Shapes;
use crate::diff::{Drained, PlanDiff, Region, Risk, SettingChange, shown_header};
use proxy_model::{EffectiveSetting, Origin};
use serde_json::Value;
use std::fmt::Display;

/// Maximum number of regions, and of settings, that are listed; the rest is counted.
const MAX_LISTED: usize = 50;
/// Maximum number of hosts, paths or listeners of one region that are listed.
const MAX_LISTED_CELLS: usize = 6;

/// The difference as a page: risks, requests, parts, settings, connections, and the limits of the
/// comparison. Control characters are escaped.
#[must_use]
pub fn diff_text(diff: &PlanDiff) -> String {
    let PlanDiff {
        regions,
        successors: _, // For the gate of a rollout.
        unreachable,
        parts,
        settings,
        drained,
        risks,
        sampled_regexes,
        limits,
    } = diff;
    let mut page = String::new();
    section(&mut page, "risks", &self::risks(risks));
    section(
        &mut page,
        "requests that are answered differently",
        &requests(regions),
    );
    section(
        &mut page,
        "routes that take no request",
        &lines(unreachable.iter()),
    );
    let parts = parts
        .iter()
        .map(|one| format!("{:9}{}", one.change.name(), one.part));
    section(&mut page, "added and removed", &lines(parts));
    section(&mut page, "settings in force", &self::settings(settings));
    section(&mut page, "a reload ends", &connections(drained));
    let samples = sampled_regexes.iter();
    let samples = samples.map(|regex| format!("path-regex {regex:?}: a sample of its paths"));
    let limits = limits.iter().map(ToString::to_string);
    section(
        &mut page,
        "limits of the comparison",
        &lines(samples.chain(limits)),
    );
    if diff.is_same() {
        page.push_str(&Table::line(
            "the same requests are answered the same, by the same settings",
        ));
    }
    page
}

fn section(page: &mut String, heading: &str, body: &str) {
    if body.is_empty() {
        return;
    }
    page.push_str(&Table::line(heading));
    page.push_str(body);
    page.push('\n');
}

fn lines(items: impl Iterator<Item = impl Display>) -> String {
    let mut table = Table::default();
    items.for_each(|item| table.row([&item.to_string()]));
    table.indented()
}

fn risks(risks: &[Risk]) -> String {
    let mut table = Table::default();
    for Risk {
        class,
        subject,
        change,
    } in risks
    {
        table.row([class.name(), subject, change]);
    }
    table.indented()
}

fn requests(regions: &[Region]) -> String {
    let mut table = Table::default();
    for region in regions.iter().take(MAX_LISTED) {
        let Region { before, after, .. } = region;
        table.row(["", &format!("{before} -> {after}")]);
        if !region.listeners.is_empty() {
            table.row(["  listener", &few(&region.listeners)]);
        }
        let hosts = if region.is_every_host {
            "every host".to_owned()
        } else {
            few(&region.hosts)
        };
        let paths = if region.is_every_path {
            "every path".to_owned()
        } else {
            few(&region.paths)
        };
        table.row(["  host", &hosts]);
        table.row(["  path", &paths]);
        for field in &region.fields {
            table.row(["  and", &field.to_string()]);
        }
        table.row(["  example", &example(region)]);
    }
    let mut page = table.indented();
    let more = regions.len().saturating_sub(MAX_LISTED);
    if more > 0 {
        page.push_str(&Table::line(&format!("  and {more} more, all in --json")));
    }
    page
}

fn few(items: &[impl Display]) -> String {
    let listed = items.iter().take(MAX_LISTED_CELLS).map(ToString::to_string);
    let listed: Vec<String> = listed.collect();
    match items.len().saturating_sub(MAX_LISTED_CELLS) {
        0 => listed.join(", "),
        more => format!("{} and {more} more", listed.join(", ")),
    }
}

/// The arguments of `proxyd explain` for a request of the region.
fn example(region: &Region) -> String {
    let request = &region.example;
    let headers = request.headers.iter();
    let headers = headers.map(|(name, value)| format!("-H {:?}", shown_header(name, value)));
    let listener = request
        .listener
        .iter()
        .map(|name| format!("--listener {name}"));
    let own = [request.method.clone(), region.example_url()];
    let words: Vec<String> = listener.chain(headers).chain(own).collect();
    words.join(" ")
}

fn settings(changes: &[SettingChange]) -> String {
    let shapes = Shapes::from_registry();
    let mut table = Table::default();
    for change in changes.iter().take(MAX_LISTED) {
        let shown = |values: &[Value]| {
            let values = values.iter().map(|value| shown(&shapes, change, value));
            let values: Vec<String> = values.collect();
            if values.is_empty() {
                "none".to_owned()
            } else {
                values.join(", ")
            }
        };
        let values = format!("{} -> {}", shown(&change.before), shown(&change.after));
        table.row([&change.path, &values]);
    }
    let mut page = table.indented();
    let more = changes.len().saturating_sub(MAX_LISTED);
    if more > 0 {
        page.push_str(&Table::line(&format!("  and {more} more, all in --json")));
    }
    page
}

fn shown(shapes: &Shapes, change: &SettingChange, value: &Value) -> String {
    shapes.shown(&EffectiveSetting {
        path: change.path.clone(),
        row: change.row,
        value: value.clone(),
        origin: Origin::Default,
    })
}

fn connections(drained: &[Drained]) -> String {
    let mut table = Table::default();
    for Drained {
        connections,
        settings,
    } in drained
    {
        let reason = match settings.as_slice() {
            [] => "removed".to_owned(),
            settings => few(settings),
        };
        table.row([&connections.to_string(), &reason]);
    }
    table.indented()
}
