//! Page of a bundle: files, check, signature, nodes.

use crate::bundle::checks::{Finding, findings, stored};
use crate::bundle::status;
use crate::frame::{Frame, NavEntry, foot, show as shown};
use crate::request::failure::Failure;
use crate::request::path::Path;
use crate::request::visit::Caller;
use crate::rollout::rolled_back;
use crate::ui::Ui;
use crate::view::component::{RelativeTime, Status, when};
use crate::view::phrase::{count, pick, short};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use control_app::Error;
use control_domain::{Access, Bundle, BundleState};
use control_wire::{BundleId, ProjectId, RolloutId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Maximum size of a file shown on the page, which stays below 100 KB.
const MAX_SHOWN_BYTES: usize = 24 * 1024;
/// Number of bundles offered for comparison.
const MAX_COMPARABLE_BUNDLES: i64 = 10;

#[derive(Template)]
#[template(path = "bundle.html")]
struct BundlePage {
    frame: Frame,
    project: ProjectId,
    id: BundleId,
    name: String,
    heading: String,
    status: Status,
    /// The last rollout, if it was rolled back.
    rolled_back: Option<RolloutId>,
    findings: Vec<Finding>,
    /// `None` if the archive cannot be read.
    files: Option<Vec<FileView>>,
    node_words: String,
    /// Link to the list of nodes with this bundle; `None` if there are none.
    nodes_page: Option<String>,
    made: RelativeTime,
    signed: Option<(RelativeTime, String)>,
    revoked: Option<RelativeTime>,
    digest: String,
    size: String,
    others: Vec<OtherBundle>,
    is_signed: bool,
    may_write: bool,
    may_roll_out: bool,
    foot: Option<String>,
}

/// A bundle offered for comparison.
struct OtherBundle {
    id: BundleId,
    name: String,
    short: String,
}

struct FileView {
    name: String,
    size: String,
    text: Option<String>,
}

/// The page of a bundle.
pub(crate) async fn show(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path((project, id)): Path<(ProjectId, BundleId)>,
) -> Result<Response, Failure> {
    let (app, call, now) = (&ui.app, &caller.call, caller.visit.now);
    let bundle = app.bundle(call, project, id).await?.value;
    let title = format!("Bundle {}", bundle.name);
    let frame = Frame::project(&ui, &caller, project, NavEntry::Bundles.titled(&title)).await?;
    let active = app.count_nodes(call, project).await?.active;
    let nodes = active
        .iter()
        .find(|(own, _)| *own == id)
        .map_or(0, |(_, nodes)| *nodes);
    let stored_files = files(&ui, &caller, project, &bundle).await?;
    let shown_files = stored_files.as_ref().map(views);
    let files = stored_files.unwrap_or_default();
    let texts: BTreeMap<String, String> = files
        .iter()
        .filter_map(|(name, bytes)| Some((name.clone(), String::from_utf8(bytes.clone()).ok()?)))
        .collect();
    let others = app
        .newest_bundles(call, project, None, MAX_COMPARABLE_BUNDLES + 1)
        .await?;
    let others = others.into_iter().map(|other| other.value);
    let others = others.filter(|other| other.id != id && other.archive.is_some());
    let others = others.map(|other| OtherBundle {
        id: other.id,
        name: other.name.to_string(),
        short: short(other.id),
    });
    let tenant = bundle.tenant;
    let archive = bundle.archive.as_ref();
    let rolled_back = if caller.may(Access::READ_ROLLOUTS, tenant) {
        rolled_back(&ui, &caller, project).await?.remove(&id)
    } else {
        None
    };
    Ok(shown(&BundlePage {
        frame,
        project,
        id,
        heading: heading(&bundle, nodes, rolled_back.is_some()),
        rolled_back,
        status: status(bundle.state).pill(),
        findings: findings(&stored(&bundle.diagnostics), &texts),
        files: shown_files,
        node_words: node_words(nodes),
        nodes_page: (0 < nodes).then(|| format!("/projects/{project}/nodes?bundle={id}")),
        made: when(bundle.created_at, now),
        signed: bundle
            .signature
            .as_ref()
            .map(|signature| (when(signature.signed_at, now), signature.kid.to_string())),
        revoked: bundle.revoked_at.map(|at| when(at, now)),
        digest: archive
            .map(|archive| archive.digest.clone())
            .unwrap_or_default(),
        size: archive.map_or_else(String::new, |archive| bytes(archive.size_bytes)),
        others: others.collect(),
        is_signed: bundle.state == BundleState::Signed,
        may_write: caller.may(Access::WRITE_BUNDLES, tenant),
        may_roll_out: caller.may(Access::WRITE_ROLLOUTS, bundle.tenant),
        foot: foot(
            &caller,
            Access::WRITE_BUNDLES,
            tenant,
            "write, roll out and revoke bundles",
        ),
        name: bundle.name.to_string(),
    }))
}

impl BundlePage {
    fn has_files(&self) -> bool {
        self.files.as_ref().is_some_and(|files| !files.is_empty())
    }
}

/// Reads the files. `None` if the archive cannot be read: the bundle can still be revoked.
async fn files(
    ui: &Ui,
    caller: &Caller,
    project: ProjectId,
    bundle: &Bundle,
) -> Result<Option<BTreeMap<String, Vec<u8>>>, Failure> {
    if bundle.archive.is_none() {
        return Ok(Some(BTreeMap::new()));
    }
    let files = ui.app.bundle_files(&caller.call, project, bundle.id);
    match files.await {
        Ok(files) => Ok(Some(files)),
        Err(error @ (Error::Archive(_) | Error::Object(_))) => {
            tracing::error!(bundle = %bundle.id, ?error, "the archive of a bundle cannot be read");
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

fn views(files: &BTreeMap<String, Vec<u8>>) -> Vec<FileView> {
    let mut left = MAX_SHOWN_BYTES;
    let views = files.iter().map(|(name, content)| {
        let text = std::str::from_utf8(content).ok();
        let text = text.filter(|text| text.len() <= left && !text.contains('\0'));
        left -= text.map_or(0, str::len);
        FileView {
            name: name.clone(),
            size: bytes(content.len() as u64),
            text: text.map(str::to_owned),
        }
    });
    views.collect()
}

/// Formats a size, such as `1.2 KiB`.
fn bytes(size: u64) -> String {
    match size {
        0..1024 => format!("{size} bytes"),
        1024..1_048_576 => format!("{}.{} KiB", size / 1024, size % 1024 * 10 / 1024),
        _ => format!(
            "{}.{} MiB",
            size / 1_048_576,
            size % 1_048_576 * 10 / 1_048_576
        ),
    }
}

fn node_words(nodes: i64) -> String {
    match nodes {
        0 => "no node".to_owned(),
        nodes => count(nodes, "node"),
    }
}

fn heading(bundle: &Bundle, nodes: i64, is_rolled_back: bool) -> String {
    let name = &bundle.name;
    match bundle.state {
        BundleState::Draft | BundleState::Validated => format!("“{name}” is not signed yet."),
        BundleState::Rejected => format!("“{name}” was rejected: its configuration has errors."),
        BundleState::Signed if nodes == 0 && is_rolled_back => {
            format!("“{name}” was rolled back, and no node runs it.")
        }
        BundleState::Signed if nodes == 0 => format!("“{name}” is ready, and no node runs it."),
        BundleState::Signed => format!(
            "{} {} “{name}”.",
            count(nodes, "node"),
            pick(nodes, "runs", "run")
        ),
        BundleState::Revoked if nodes == 0 => format!("“{name}” was revoked, and no node runs it."),
        BundleState::Revoked => format!(
            "“{name}” was revoked, and {} still {} it.",
            count(nodes, "node"),
            pick(nodes, "runs", "run")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_one_decimal() {
        assert_eq!(bytes(1_023), "1023 bytes");
        assert_eq!(bytes(1_536), "1.5 KiB");
        assert_eq!(bytes(3 * 1_048_576), "3.0 MiB");
    }

    #[test]
    fn a_page_shows_files_up_to_its_bound_and_no_bytes_that_are_not_text() {
        let files = [
            ("a".to_owned(), vec![b'a'; MAX_SHOWN_BYTES - 1]),
            ("b".to_owned(), vec![b'b'; 2]),
            ("c".to_owned(), vec![0xff]),
            ("d".to_owned(), vec![b'd']),
        ];
        let views = views(&files.into());
        let shown: Vec<bool> = views.iter().map(|view| view.text.is_some()).collect();
        assert_eq!(shown, [true, false, false, true]);
    }
}
