//! Page of a rollout: progress, gate figures, reason of a stop, available commands.

use crate::frame::show as shown;
use crate::frame::{Frame, NavEntry, foot};
use crate::request::failure::Failure;
use crate::request::path::Path;
use crate::request::visit::Caller;
use crate::rollout::batch_cards::{BatchCard, track};
use crate::rollout::bundle_name;
use crate::rollout::command::{Action, actions};
use crate::rollout::course::{Step, steps};
use crate::rollout::figures::{GateRow, rows};
use crate::rollout::words::{Moved, full_reason, heading, moved, status};
use crate::ui::Ui;
use crate::view::component::{NextPage, RelativeTime, Status, Tone, more, when};
use crate::view::phrase::{count, duration, list_of, number, pick};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use control_app::{
    Diagnostic, ListFilter, Page, PageOrder, RolloutNode, RolloutProgress, StoredFigures,
};
use control_domain::{Access, BatchSize, OnFailure, Rollout, RolloutState};
use control_wire::{BundleId, NodeId, ProjectId, RolloutId};
use jiff::Timestamp;
use std::sync::Arc;
use uuid::Uuid;

/// Number of nodes per page.
const PAGE_NODES: usize = 50;

#[derive(Template)]
#[template(path = "rollout.html")]
struct RolloutPage {
    frame: Frame,
    project: ProjectId,
    id: RolloutId,
    bundle: BundleId,
    bundle_name: String,
    csrf: String,
    status: Status,
    heading: String,
    rest: String,
    /// Warnings of the bundle's check, before the start.
    warnings: String,
    reason: Option<String>,
    actions: Vec<Action>,
    /// Link to the comparison with the bundle that nodes ran before; `None` if no node ran another
    /// one.
    changes: Option<String>,
    /// Link to the form for another rollout of the bundle, after one that did not complete.
    again: Option<String>,
    plan: String,
    track: Vec<BatchCard>,
    hidden: String,
    gate: Option<GateTable>,
    nodes: Vec<NodeRow>,
    more: NextPage,
    steps: Vec<Step>,
    facts: Vec<(&'static str, String)>,
    not_before: Option<RelativeTime>,
    held_until: Option<RelativeTime>,
    /// Reason that the current batch has not passed yet, as a noun.
    waits_for: Option<String>,
    foot: Option<String>,
}

struct GateTable {
    /// Verdict in one sentence; `None` if the rollout's reason contains it, or if an earlier
    /// release stored the batch.
    verdict: Option<String>,
    batch: i64,
    is_now: bool,
    note: String,
    rows: Vec<GateRow>,
}

/// A page of nodes.
struct NodesPage {
    rows: Vec<NodeRow>,
    /// Last node of the page, if there are more.
    next: Option<NodeId>,
    /// Previous bundle of the first node that runs, or ran, another one.
    before: Option<BundleId>,
}

struct NodeRow {
    id: NodeId,
    name: String,
    batch: i64,
    status: Status,
    seen: Option<RelativeTime>,
}

/// The page of a rollout.
pub(crate) async fn show(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path((project, id)): Path<(ProjectId, RolloutId)>,
) -> Result<Response, Failure> {
    let (app, call, now) = (&ui.app, &caller.call, caller.visit.now);
    let progress = app.rollout(call, project, id).await?.value;
    let rollout = &progress.rollout;
    let bundle_name = bundle_name(&ui, &caller, rollout).await?;
    let moved = moved(&progress, app.rollout_reach(call, project, id).await?);
    let heading = heading(rollout, &bundle_name, moved);
    let title = format!("Rollout of {bundle_name}");
    let frame = Frame::project(&ui, &caller, project, NavEntry::Rollouts.titled(&title)).await?;
    let after = caller.visit.query.get("after").parse::<Uuid>().ok();
    let is_over = rollout.state.is_final();
    let nodes = nodes(&ui, &caller, project, id, after, is_over).await?;
    let tenant = rollout.tenant;
    let may_write = caller.may(Access::WRITE_ROLLOUTS, tenant);
    let (track, hidden) = track(&progress, now);
    Ok(shown(&RolloutPage {
        frame: frame.live("/events?pulse"),
        project,
        id,
        bundle: rollout.bundle,
        csrf: caller.visit.csrf.clone(),
        status: status(rollout).pill(),
        rest: subheading(rollout, moved),
        warnings: warnings(&ui, &caller, project, rollout).await?,
        reason: full_reason(rollout),
        actions: if may_write {
            actions(rollout, &caller.call.actor, moved)
        } else {
            Vec::new()
        },
        changes: nodes.before.map(|before| {
            let bundle = rollout.bundle;
            format!("/projects/{project}/bundles/{bundle}/diff?before={before}")
        }),
        again: again(rollout, project).filter(|_| may_write),
        plan: plan(rollout),
        track,
        hidden,
        gate: gate(&progress),
        nodes: nodes.rows,
        more: more(
            nodes.next.map(|next| format!("?after={next}")),
            "Show the next nodes",
        ),
        steps: steps(&progress, now),
        facts: facts(rollout),
        not_before: rollout
            .not_before
            .filter(|at| now < *at && !rollout.state.is_final())
            .map(|at| when(at, now)),
        held_until: progress.held_until.map(|at| when(at, now)),
        waits_for: progress.waits_for.clone(),
        foot: foot(
            &caller,
            Access::WRITE_ROLLOUTS,
            tenant,
            "start, stop and roll back rollouts",
        ),
        heading,
        bundle_name,
    }))
}

/// Sentence below the heading.
fn subheading(rollout: &Rollout, moved: Moved) -> String {
    match rollout.state {
        RolloutState::Planned => "Nothing is sent to a node before it is started.".to_owned(),
        RolloutState::AwaitingApproval => {
            "The person that requested approval cannot give it, with any credential.".to_owned()
        }
        RolloutState::Paused => format!(
            "{} No further node gets the bundle until a person decides.",
            reach(rollout, moved)
        ),
        RolloutState::Running
        | RolloutState::Completed
        | RolloutState::Failed
        | RolloutState::RollingBack
        | RolloutState::RolledBack
        | RolloutState::Cancelled => String::new(),
    }
}

/// Sentence on the nodes that were ordered to run the bundle, and on the rest.
fn reach(rollout: &Rollout, moved: Moved) -> String {
    let Moved {
        ordered,
        ready,
        silent,
    } = moved;
    if ordered == 0 {
        return "No node has the bundle. Traffic is served as before.".to_owned();
    }
    let (unreported, left) = (moved.unreported(), moved.unordered(rollout));
    let parts = [
        (ready, pick(ready, "runs the bundle", "run the bundle")),
        (
            silent,
            pick(
                silent,
                "ran it by its last report and is offline",
                "ran it by their last reports and are offline",
            ),
        ),
        (
            unreported,
            pick(
                unreported,
                "was sent it, and has rejected it or not reported yet",
                "were sent it, and have rejected it or not reported yet",
            ),
        ),
        (left, pick(left, "was not reached", "were not reached")),
    ];
    let parts = parts.into_iter().filter(|(nodes, _)| 0 < *nodes);
    let parts = parts.map(|(nodes, words)| format!("{} {words}", count(nodes, "node")));
    format!("{}.", parts.collect::<Vec<_>>().join("; "))
}

/// Number of warnings of the bundle's check in words, for a rollout that has not started; empty without one.
async fn warnings(
    ui: &Ui,
    caller: &Caller,
    project: ProjectId,
    rollout: &Rollout,
) -> Result<String, Failure> {
    if rollout.started_at.is_some() || !caller.may(Access::READ_BUNDLES, rollout.tenant) {
        return Ok(String::new());
    }
    let bundle = ui.app.bundle(&caller.call, project, rollout.bundle).await?;
    let found = serde_json::from_str::<Vec<Diagnostic>>(&bundle.value.diagnostics);
    let found = found.unwrap_or_default();
    let found = found.iter().filter(|one| one.severity == "warning").count();
    Ok(match i64::try_from(found).unwrap_or(i64::MAX) {
        0 => String::new(),
        found => count(found, "warning"),
    })
}

fn again(rollout: &Rollout, project: ProjectId) -> Option<String> {
    use RolloutState::{Cancelled, RolledBack};
    let is_over = matches!(rollout.state, RolledBack | Cancelled);
    let strategy = &rollout.strategy;
    let batch = match strategy.batch {
        BatchSize::Percent(percent) => format!("&batch_percent={percent}"),
        BatchSize::Count(_) => String::new(),
    };
    let form = format!(
        "/projects/{project}/rollouts/new?bundle={}{batch}&max_unavailable={}&soak_seconds={}&on_failure={}",
        rollout.bundle,
        strategy.max_unavailable,
        strategy.soak_secs,
        strategy.on_failure.name()
    );
    is_over.then_some(form)
}

fn plan(rollout: &Rollout) -> String {
    let strategy = &rollout.strategy;
    let size = rollout.batch_size;
    let one = match rollout.batches() {
        1 => format!("{}; the batch", count(rollout.nodes, "node")),
        _ => format!(
            "{} each, one batch after the other; each",
            count(size, "node")
        ),
    };
    format!(
        "{one} runs {} before it may pass, and has {} for that",
        duration(strategy.soak_secs),
        duration(strategy.deadline_secs)
    )
}

/// Gate figures of the current batch, or of the last one.
fn gate(progress: &RolloutProgress) -> Option<GateTable> {
    let gate = progress.rollout.strategy.gate?;
    let stored = progress.batches.last()?;
    let kept = stored.figures.as_deref();
    let kept = kept.and_then(|text| serde_json::from_str::<StoredFigures>(text).ok());
    let figures = progress.figures.clone().or(kept)?;
    // The verdict that stopped the rollout is shown at the top of the page already.
    let reason = progress.rollout.reason.as_deref().unwrap_or_default();
    Some(GateTable {
        batch: stored.batch.number,
        is_now: progress.figures.is_some(),
        note: caption(&figures),
        verdict: figures
            .verdict
            .clone()
            .filter(|verdict| !reason.contains(verdict.as_str())),
        rows: rows(&figures, &gate),
    })
}

/// Both sides of the comparison, in a phrase. Nodes of the batch before it stand in for the rest if few
/// of those are left.
fn caption(figures: &StoredFigures) -> String {
    let (own, others) = (figures.batch.nodes, figures.rest.nodes);
    let batch = format!("{} of the batch compared with", count(own, "node"));
    let not_moved = |nodes: i64| {
        let were = pick(nodes, "was", "were");
        format!("{} that {were} not moved", count(nodes, "node"))
    };
    match figures.earlier {
        None => format!("{batch} {}, others or its own before it", number(others)),
        Some(0) => format!("{batch} {}", not_moved(others)),
        Some(earlier) if others <= earlier => {
            format!("{batch} {} of its own before it", number(earlier))
        }
        Some(earlier) => format!(
            "{batch} {}, and with {} of its own before it",
            not_moved(others - earlier),
            number(earlier)
        ),
    }
}

async fn nodes(
    ui: &Ui,
    caller: &Caller,
    project: ProjectId,
    id: RolloutId,
    after: Option<Uuid>,
    is_over: bool,
) -> Result<NodesPage, Failure> {
    let page = Page {
        after,
        limit: i64::try_from(PAGE_NODES).unwrap_or(i64::MAX) + 1,
        order: PageOrder::Oldest,
    };
    let (bundle, mut found) = ui
        .app
        .rollout_nodes(&caller.call, project, id, &ListFilter::default(), page)
        .await?;
    let has_more = PAGE_NODES < found.len();
    found.truncate(PAGE_NODES);
    let next = found.last().filter(|_| has_more).map(|node| node.node);
    let mut others = found
        .iter()
        .filter_map(|node| node.previous.or(node.active));
    let before = others.find(|other| *other != bundle);
    let now = caller.visit.now;
    let rows = found.into_iter().map(|node| NodeRow {
        status: node_status(&node, bundle, is_over),
        id: node.node,
        batch: node.batch,
        seen: Some(node.seen_at)
            .filter(|at| *at != Timestamp::UNIX_EPOCH)
            .map(|at| when(at, now)),
        name: node.name,
    });
    Ok(NodesPage {
        rows: rows.collect(),
        next,
        before,
    })
}

/// Progress of a node, by its reports; `is_over` of a rollout that has ended.
fn node_status(node: &RolloutNode, bundle: BundleId, is_over: bool) -> Status {
    let accepted = |order: i64| {
        let newest = node.verdict_order.filter(|answered| order <= *answered);
        newest.and(node.accepted)
    };
    let (tone, icon, word) = match (node.order, node.back_order) {
        (_, Some(0)) if node.active == Some(bundle) => {
            (Tone::Warn, "warn", "Still runs it: no former bundle")
        }
        (Some(order), Some(0)) if accepted(order) == Some(false) => {
            (Tone::Bad, "bad", "Rejected it: no former bundle")
        }
        (_, Some(0)) => (Tone::Warn, "warn", "No former bundle"),
        (_, Some(back)) if accepted(back) == Some(true) => (Tone::Warn, "back", "Reverted"),
        (_, Some(back)) if accepted(back) == Some(false) => {
            (Tone::Bad, "bad", "Rejected its former bundle")
        }
        (_, Some(_)) => (Tone::Busy, "back", "Reverting"),
        (None, None) if is_over => (Tone::Off, "off", "Not reached"),
        (None, None) => (Tone::Off, "wait", "Waits"),
        (Some(order), None) => match accepted(order) {
            Some(true) if node.active == Some(bundle) => (Tone::Ok, "ok", "Runs it"),
            Some(false) => (Tone::Bad, "bad", "Rejected it"),
            Some(true) | None => (Tone::Busy, "busy", "Was sent it"),
        },
    };
    Status::new(tone, icon, word)
}

fn facts(rollout: &Rollout) -> Vec<(&'static str, String)> {
    let strategy = &rollout.strategy;
    let labels: Vec<String> = rollout
        .labels
        .iter()
        .map(|(name, value)| format!("{name}:{value}"))
        .collect();
    let chosen = match labels.as_slice() {
        [] => "chosen without labels".to_owned(),
        labels => format!("with {}", list_of(labels)),
    };
    let mut facts = vec![
        (
            "Nodes",
            format!("{}, {chosen}", count(rollout.nodes, "node")),
        ),
        (
            "May be offline or late",
            format!("{} of a batch", count(strategy.max_unavailable, "node")),
        ),
        (
            "If a batch does not pass",
            match strategy.on_failure {
                OnFailure::Pause => "it waits for a person".to_owned(),
                OnFailure::RollBack => "the rollout is rolled back automatically".to_owned(),
            },
        ),
    ];
    let gate = strategy.gate.map_or_else(
        || "none: the nodes’ own verdicts alone count".to_owned(),
        |gate| {
            format!(
                "at least {} requests on each side; 5xx may grow by {} per 1000 requests, the 99th percentile of latency to {} % of the other nodes’",
                number(gate.min_requests),
                gate.max_error_increase_permille,
                gate.max_p99_percent
            )
        },
    );
    facts.push(("Gate", gate));
    if let Some(condition) = &rollout.condition {
        let text = format!(
            "{} at {}; {}",
            condition.query,
            condition.url,
            condition.limits()
        );
        facts.push(("Condition in Prometheus", text));
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rollout::words::tests::rollout;
    use control_app::StoredSide;

    #[test]
    fn a_stopped_rollout_says_what_its_ordered_nodes_report() {
        let stopped = rollout(RolloutState::Paused, Some("paused by hand"));
        let decides = "No further node gets the bundle until a person decides.";
        for (ordered, ready, silent, expected) in [
            (
                0,
                0,
                0,
                "No node has the bundle. Traffic is served as before.",
            ),
            (
                1,
                0,
                0,
                "1 node was sent it, and has rejected it or not reported yet; 63 nodes were not reached.",
            ),
            (
                1,
                0,
                1,
                "1 node ran it by its last report and is offline; 63 nodes were not reached.",
            ),
            (
                33,
                22,
                0,
                "22 nodes run the bundle; 11 nodes were sent it, and have rejected it or not reported yet; \
                 31 nodes were not reached.",
            ),
            (64, 64, 0, "64 nodes run the bundle."),
        ] {
            let moved = Moved {
                ordered,
                ready,
                silent,
            };
            assert_eq!(subheading(&stopped, moved), format!("{expected} {decides}"));
        }
    }

    #[test]
    fn the_caption_of_the_gate_tells_other_nodes_from_the_batch_before() {
        let side = |nodes| StoredSide {
            nodes,
            requests: 1_000,
            error_permille: 0,
            p99_ms: None,
            cpu_percent: None,
        };
        for (rest, earlier, expected) in [
            (
                9,
                Some(0),
                "3 nodes of the batch compared with 9 nodes that were not moved",
            ),
            (
                4,
                Some(3),
                "3 nodes of the batch compared with 1 node that was not moved, and with 3 of its own before it",
            ),
            (
                3,
                Some(3),
                "3 nodes of the batch compared with 3 of its own before it",
            ),
            (
                4,
                None,
                "3 nodes of the batch compared with 4, others or its own before it",
            ),
        ] {
            let figures = StoredFigures {
                batch: side(3),
                rest: side(rest),
                earlier,
                verdict: None,
            };
            assert_eq!(caption(&figures), expected);
        }
    }
}
