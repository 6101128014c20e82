//! List of a project's bundles.

use crate::bundle::status;
use crate::frame::{Frame, NavEntry, foot, show};
use crate::request::failure::Failure;
use crate::request::path::Path;
use crate::request::visit::Caller;
use crate::ui::Ui;
use crate::view::component::{NextPage, RelativeTime, Status, more, when};
use crate::view::phrase::{count, list_of, number, short};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use control_domain::{Access, Bundle};
use control_wire::{BundleId, ProjectId};
use std::sync::Arc;

/// Number of bundles per page.
const SHOWN_COUNT: usize = 50;

#[derive(Template)]
#[template(path = "bundles.html")]
struct BundlesPage {
    frame: Frame,
    project: ProjectId,
    heading: String,
    rows: Vec<Row>,
    more: NextPage,
    may_write: bool,
    foot: Option<String>,
}

struct Row {
    id: BundleId,
    name: String,
    short: String,
    status: Status,
    nodes: String,
    made: RelativeTime,
}

/// The bundles, newest first.
pub(crate) async fn list(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(project): Path<ProjectId>,
) -> Result<Response, Failure> {
    let frame = Frame::project(&ui, &caller, project, NavEntry::Bundles.titled("Bundles")).await?;
    let (app, call, now) = (&ui.app, &caller.call, caller.visit.now);
    let before = caller.visit.query.get("before").parse::<BundleId>().ok();
    let limit = i64::try_from(SHOWN_COUNT).unwrap_or(i64::MAX) + 1;
    let mut found = app.newest_bundles(call, project, before, limit).await?;
    let has_more = SHOWN_COUNT < found.len();
    found.truncate(SHOWN_COUNT);
    let last = found.last().filter(|_| has_more).map(|last| last.value.id);
    let active = app.count_nodes(call, project).await?.active;
    let rows = found.iter().map(|found| {
        let bundle = &found.value;
        let nodes = active.iter().find(|(id, _)| *id == bundle.id);
        Row {
            id: bundle.id,
            name: bundle.name.to_string(),
            short: short(bundle.id),
            status: status(bundle.state),
            nodes: nodes.map_or_else(String::new, |(_, nodes)| number(*nodes)),
            made: when(bundle.created_at, now),
        }
    });
    let rows = rows.collect();
    let tenant = app.project(call, project).await?.value.tenant();
    let bundles: Vec<&Bundle> = found.iter().map(|found| &found.value).collect();
    Ok(show(&BundlesPage {
        frame,
        project,
        heading: heading(&bundles, &active),
        rows,
        more: more(
            last.map(|last| format!("?before={last}")),
            "Show older bundles",
        ),
        may_write: caller.may(Access::WRITE_BUNDLES, tenant),
        foot: foot(
            &caller,
            Access::WRITE_BUNDLES,
            tenant,
            "write and revoke bundles",
        ),
    }))
}

/// Heading about active bundles, by the nodes' reports; `active` is sorted, most nodes first.
fn heading(bundles: &[&Bundle], active: &[(BundleId, i64)]) -> String {
    if bundles.is_empty() {
        return "There is no bundle yet.".to_owned();
    }
    let name = |id: &BundleId| {
        let found = bundles.iter().find(|bundle| bundle.id == *id);
        found.map_or_else(
            || "an older bundle".to_owned(),
            |bundle| format!("“{}”", bundle.name),
        )
    };
    match active {
        [] => "No node runs a bundle yet.".to_owned(),
        [(id, nodes)] => format!(
            "{} {} {}.",
            count(*nodes, "node"),
            if *nodes == 1 { "runs" } else { "run" },
            name(id)
        ),
        [first, second] => {
            let parts =
                [first, second].map(|(id, nodes)| format!("{} {}", number(*nodes), name(id)));
            format!("Nodes run two bundles: {}.", list_of(&parts))
        }
        many => {
            let many = i64::try_from(many.len()).unwrap_or(i64::MAX);
            format!("Nodes run {} different bundles.", number(many))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use control_domain::{BundleState, Name, Tenant};
    use control_wire::OrgId;
    use jiff::Timestamp;
    use uuid::Uuid;

    fn bundle(id: u128, name: &str) -> Bundle {
        Bundle {
            id: BundleId(Uuid::from_u128(id)),
            tenant: Tenant::project(OrgId(Uuid::nil()), ProjectId(Uuid::nil())),
            name: Name::stored(name.to_owned()),
            state: BundleState::Signed,
            archive: None,
            signature: None,
            diagnostics: String::new(),
            warnings: Some(0),
            created_at: Timestamp::UNIX_EPOCH,
            revoked_at: None,
        }
    }

    #[test]
    fn the_heading_says_what_nodes_run() {
        let (spring, cart) = (bundle(1, "spring"), bundle(2, "cart"));
        let all = [&spring, &cart];
        assert_eq!(heading(&[], &[]), "There is no bundle yet.");
        assert_eq!(heading(&all, &[]), "No node runs a bundle yet.");
        assert_eq!(heading(&all, &[(spring.id, 3)]), "3 nodes run “spring”.");
        assert_eq!(
            heading(&all, &[(spring.id, 32), (cart.id, 10)]),
            "Nodes run two bundles: 32 “spring” and 10 “cart”."
        );
    }
}
