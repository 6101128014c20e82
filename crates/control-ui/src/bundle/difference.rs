//! Page that compares two bundles: risks, requests, effective settings, files.

use crate::frame::{Frame, NavEntry, show as shown};
use crate::request::failure::Failure;
use crate::request::path::Path;
use crate::request::visit::Caller;
use crate::ui::Ui;
use crate::view::component::{Status, Tone};
use crate::view::phrase::{count, number, pick};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use control_app::{Change, Comparison, FileChange, RequestsMoved, RiskView, SettingChange};
use control_domain::{Access, BundleState};
use control_wire::{BundleId, ProjectId};
use serde_json::Value;
use std::sync::Arc;

/// Maximum number of request regions shown.
const MAX_REQUESTS: usize = 100;
/// Maximum number of settings shown.
const MAX_SETTINGS: usize = 300;

#[derive(Template)]
#[template(path = "bundle_diff.html")]
struct DiffPage {
    frame: Frame,
    project: ProjectId,
    id: BundleId,
    name: String,
    before: BundleId,
    before_name: String,
    heading: String,
    risks: Vec<RiskView>,
    requests: Vec<RequestRow>,
    more_requests: usize,
    unreachable: Vec<String>,
    drained: Vec<String>,
    limits: Vec<String>,
    settings: Vec<SettingRow>,
    omitted: usize,
    omitted_words: String,
    files: Vec<(String, Status)>,
    may_roll_out: bool,
}

/// A region of requests with another route or service.
struct RequestRow {
    example: String,
    /// Link to the explanation of the example under both bundles.
    page: String,
    before: String,
    after: String,
    concerns: String,
}

/// A changed setting, with its values.
pub(crate) struct SettingRow {
    pub(crate) path: String,
    pub(crate) status: Status,
    pub(crate) before: String,
    pub(crate) after: String,
}

/// The two bundles to compare.
#[derive(Clone, Copy)]
pub(super) struct ComparedBundles {
    pub(super) project: ProjectId,
    pub(super) before: BundleId,
    pub(super) after: BundleId,
}

/// Shows the comparison; `?before=` names the older bundle.
pub(crate) async fn show(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path((project, id)): Path<(ProjectId, BundleId)>,
) -> Result<Response, Failure> {
    let (app, call) = (&ui.app, &caller.call);
    let before = caller.visit.query.get("before").parse::<BundleId>();
    let before = before.map_err(|_| Failure::not_found())?;
    let own = app.bundle(call, project, id).await?.value;
    let other = app.bundle(call, project, before).await?.value;
    let compared = app.compare_bundles(call, project, id, before).await?;
    let bundles = ComparedBundles {
        project,
        before,
        after: id,
    };
    let title = format!("{} compared with {}", own.name, other.name);
    let frame = Frame::project(&ui, &caller, project, NavEntry::Bundles.titled(&title)).await?;
    let Comparison {
        risks,
        requests,
        omitted_requests,
        unreachable_routes,
        parts: _, // Their settings are listed.
        drained,
        limits,
        settings,
        omitted,
        files,
    } = compared;
    let total = settings.len() + omitted;
    let left_out = total - settings.len().min(MAX_SETTINGS);
    let is_signed = own.state == BundleState::Signed;
    Ok(shown(&DiffPage {
        frame,
        project,
        id,
        before,
        heading: heading(total, files.len()),
        risks,
        more_requests: omitted_requests + requests.len().saturating_sub(MAX_REQUESTS),
        requests: requests
            .iter()
            .take(MAX_REQUESTS)
            .map(|moved| request(moved, bundles))
            .collect(),
        unreachable: unreachable_routes,
        drained,
        limits,
        settings: setting_rows(&settings, MAX_SETTINGS),
        omitted: left_out,
        omitted_words: number(signed(left_out)),
        files: files.iter().map(file).collect(),
        may_roll_out: is_signed && caller.may(Access::WRITE_ROLLOUTS, own.tenant),
        name: own.name.to_string(),
        before_name: other.name.to_string(),
    }))
}

fn request(moved: &RequestsMoved, bundles: ComparedBundles) -> RequestRow {
    let RequestsMoved {
        listeners,
        hosts,
        paths,
        conditions,
        before,
        after,
        example,
    } = moved;
    let every = |values: &[String], noun: &str| match values {
        [one] if one == "*" => format!("every {noun}"),
        values => values.join(", "),
    };
    let mut concerns = vec![every(hosts, "host"), every(paths, "path")];
    concerns.extend(conditions.iter().cloned());
    concerns.push(format!("listener {}", listeners.join(", ")));
    RequestRow {
        example: example.clone(),
        page: explaining(example, bundles),
        before: before.clone(),
        after: after.clone(),
        concerns: concerns.join("; "),
    }
}

/// Link to the explanation of `example`, a method and a URL, under both bundles.
pub(super) fn explaining(example: &str, bundles: ComparedBundles) -> String {
    let ComparedBundles {
        project,
        before,
        after,
    } = bundles;
    let (method, url) = example.split_once(' ').unwrap_or(("GET", example));
    let mut query = form_urlencoded::Serializer::new(String::new());
    query
        .append_pair("method", method)
        .append_pair("url", url)
        .append_pair("bundle", &before.to_string())
        .append_pair("with", &after.to_string());
    format!("/projects/{project}/explain?{}", query.finish())
}

/// At most `limit` changed settings.
pub(crate) fn setting_rows(settings: &[SettingChange], limit: usize) -> Vec<SettingRow> {
    settings.iter().take(limit).map(setting).collect()
}

fn setting(change: &SettingChange) -> SettingRow {
    SettingRow {
        path: change.path.clone(),
        status: status(change.change),
        before: values(&change.before),
        after: values(&change.after),
    }
}

fn file(change: &FileChange) -> (String, Status) {
    (change.name.clone(), status(change.change))
}

fn status(change: Change) -> Status {
    match change {
        Change::Added => Status::new(Tone::Ok, "ok", "Added"),
        Change::Removed => Status::new(Tone::Bad, "bad", "Removed"),
        Change::Changed => Status::new(Tone::Warn, "drift", "Changed"),
    }
}

fn values(values: &[Value]) -> String {
    let texts = values.iter().map(|value| {
        let text = value.as_str().map(str::to_owned);
        text.unwrap_or_else(|| value.to_string())
    });
    texts.collect::<Vec<_>>().join(", ")
}

fn heading(settings: usize, files: usize) -> String {
    match (signed(settings), signed(files)) {
        (0, 0) => "Nothing changes.".to_owned(),
        (0, _) => "Files differ, and all settings are equal.".to_owned(),
        (settings, _) => format!(
            "{} {}.",
            count(settings, "setting"),
            pick(settings, "changes", "change")
        ),
    }
}

fn signed(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_count_and_files_alone_change_no_effective_setting() {
        assert_eq!(heading(0, 0), "Nothing changes.");
        assert_eq!(heading(0, 1), "Files differ, and all settings are equal.");
        assert_eq!(heading(1, 1), "1 setting changes.");
        assert_eq!(heading(12, 1), "12 settings change.");
    }
}
