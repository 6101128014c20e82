//! Overview of a project: nodes, conditions that need attention, recent events.

use crate::frame::show as shown;
use crate::frame::{Frame, NavEntry, foot};
use crate::node::standing::{Share, Standings};
use crate::project::attention::{Attention, find};
use crate::project::traffic_figures::{Figure, figures, heading as traffic_heading};
use crate::request::failure::Failure;
use crate::request::path::Path;
use crate::request::visit::Caller;
use crate::rollout::{bundle_name, words};
use crate::ui::Ui;
use crate::view::component::{AbsoluteTime, Bar, Icon, Status, icon, moment};
use crate::view::phrase::{count, few, number, pick, sentence};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use control_app::{Page, PageOrder, RolloutFilter, Versioned};
use control_domain::{Access, Bundle, BundleState, Project, Rollout, RolloutState, TrafficPeriod};
use control_wire::{BundleId, ProjectId};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Maximum number of rollouts and of bundles read, and of events shown.
const MAX_RECENT: i64 = 8;
/// Maximum number of listed rollouts in progress.
const MAX_UNDER_WAY: i64 = 5;
const MAX_LATELY: usize = 8;

#[derive(Template)]
#[template(path = "overview.html")]
struct OverviewPage {
    frame: Frame,
    project: Project,
    heading: String,
    rest: String,
    attention: Vec<Attention>,
    attention_count: String,
    total: i64,
    total_words: String,
    /// Rollouts in progress.
    under_way: Vec<UnderWay>,
    bar: Bar,
    shares: Vec<Share>,
    label: Option<String>,
    labels: Vec<String>,
    places: Vec<LabelRow>,
    /// Sentence on the last hour's requests.
    traffic: String,
    /// Figures compared with a week before; empty without requests.
    figures: Vec<Figure>,
    lately: Vec<Event>,
    may_enrol: bool,
    may_roll_out: bool,
    /// Whether there is a signed bundle, which a rollout needs.
    has_bundle: bool,
    foot: Option<String>,
}

/// A rollout in progress.
struct UnderWay {
    status: Status,
    href: String,
    heading: String,
}

/// Nodes with one value of a label.
struct LabelRow {
    value: String,
    nodes: String,
    shares: Vec<Share>,
}

/// An event of the list.
struct Event {
    at: AbsoluteTime,
    icon: Icon,
    text: &'static str,
    href: String,
    name: String,
    after: &'static str,
}

/// The overview of a project.
pub(crate) async fn show(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(id): Path<ProjectId>,
) -> Result<Response, Failure> {
    let frame = Frame::project(&ui, &caller, id, NavEntry::Overview.titled("Overview")).await?;
    let (app, call) = (&ui.app, &caller.call);
    let project = app.project(call, id).await?.value;
    let standings = Standings::new(&app.count_standings(call, id).await?);
    let attention = find(&ui, &caller, id, &standings).await?;
    let labels = app.label_names(call, id).await?;
    let asked = caller.visit.query.given("by").map(str::to_owned);
    let label = asked.filter(|name| labels.contains(name));
    let label = label.or_else(|| labels.first().cloned());
    let places = match &label {
        Some(label) => rows(&app.count_standings_by_label(call, id, label).await?),
        None => Vec::new(),
    };
    let hour = TrafficPeriod::Hour;
    let traffic = app.traffic_totals(call, id, hour).await?;
    let has_requests = 0 < traffic.total.counted.requests;
    let tenant = project.tenant();
    let bundle = app.newest_signed_bundles(call, id, 1).await?;
    Ok(shown(&OverviewPage {
        frame: frame.live("/events?pulse"),
        heading: standings.heading(),
        rest: if standings.waits_for_orders() && bundle.is_empty() {
            "The next step is a bundle: write one, and roll it out.".to_owned()
        } else {
            standings.rest()
        },
        attention_count: attention_count(attention.len()),
        attention,
        total: standings.total(),
        total_words: match standings.total() {
            1 => "The node".to_owned(),
            total => format!("All {}", count(total, "node")),
        },
        under_way: under_way(&ui, &caller, id).await?,
        has_bundle: !bundle.is_empty(),
        bar: standings.bar(),
        shares: standings.shares(),
        labels: labels
            .into_iter()
            .filter(|name| Some(name) != label.as_ref())
            .collect(),
        label,
        places,
        traffic: traffic_heading(&traffic.total, hour, caller.visit.now),
        figures: if has_requests {
            figures(&traffic.total, &traffic.steps, hour)
        } else {
            Vec::new()
        },
        lately: lately(&ui, &caller, id).await?,
        may_enrol: caller.may(Access::WRITE_NODES, project.tenant()),
        may_roll_out: caller.may(Access::WRITE_ROLLOUTS, tenant),
        foot: foot(
            &caller,
            Access::WRITE_ROLLOUTS,
            tenant,
            "enrol nodes and start rollouts",
        ),
        project,
    }))
}

fn rows(counted: &BTreeMap<String, control_app::StandingCounts>) -> Vec<LabelRow> {
    let rows = counted.iter().map(|(value, counts)| {
        let standings = Standings::new(counts);
        LabelRow {
            value: value.clone(),
            nodes: number(standings.total()),
            shares: standings.shares(),
        }
    });
    rows.collect()
}

fn attention_count(things: usize) -> String {
    let things = i64::try_from(things).unwrap_or(i64::MAX);
    match things {
        0 => "Nothing does".to_owned(),
        1 => "One thing".to_owned(),
        _ => format!("{}, the most urgent first", {
            let text = format!("{} {}", few(things), pick(things, "thing", "things"));
            sentence(&text).trim_end_matches('.').to_owned()
        }),
    }
}

async fn under_way(ui: &Ui, caller: &Caller, id: ProjectId) -> Result<Vec<UnderWay>, Failure> {
    let (app, call) = (&ui.app, &caller.call);
    let filter = RolloutFilter {
        state: Some(RolloutState::Running),
        bundle: None,
    };
    let page = Page {
        after: None,
        limit: MAX_UNDER_WAY,
        order: PageOrder::Oldest,
    };
    let mut rows = Vec::new();
    for found in app.rollouts(call, id, &filter, page).await? {
        let rollout = found.value.id;
        let progress = app.rollout(call, id, rollout).await?.value;
        let reach = app.rollout_reach(call, id, rollout).await?;
        let bundle = bundle_name(ui, caller, &progress.rollout).await?;
        rows.push(UnderWay {
            status: words::status(&progress.rollout),
            href: format!("/projects/{id}/rollouts/{rollout}"),
            heading: words::heading(&progress.rollout, &bundle, words::moved(&progress, reach)),
        });
    }
    Ok(rows)
}

async fn lately(ui: &Ui, caller: &Caller, id: ProjectId) -> Result<Vec<Event>, Failure> {
    let (app, call, now) = (&ui.app, &caller.call, caller.visit.now);
    let rollouts = app.newest_rollouts(call, id, None, MAX_RECENT).await?;
    let bundles = app.newest_bundles(call, id, None, MAX_RECENT).await?;
    let wanted: BTreeSet<BundleId> = rollouts.iter().map(|found| found.value.bundle).collect();
    let names = app.bundle_names(call, id, &wanted).await?;
    let mut events: Vec<(Timestamp, Event)> = Vec::new();
    for Versioned { value, .. } in &rollouts {
        events.extend(rollout_event(value, id, &names, now));
    }
    events.extend(
        bundles
            .iter()
            .map(|found| bundle_event(&found.value, id, now)),
    );
    events.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    let events = events.into_iter().map(|(_, event)| event);
    Ok(events.take(MAX_LATELY).collect())
}

fn rollout_event(
    rollout: &Rollout,
    project: ProjectId,
    names: &BTreeMap<BundleId, String>,
    now: Timestamp,
) -> Vec<(Timestamp, Event)> {
    let name = names.get(&rollout.bundle).cloned().unwrap_or_default();
    let event = |at: Timestamp, sign: &'static str, after: &'static str| {
        let event = Event {
            at: moment(at, now),
            icon: icon(sign),
            text: "The rollout of",
            href: format!("/projects/{project}/rollouts/{}", rollout.id),
            name: name.clone(),
            after,
        };
        (at, event)
    };
    let mut events = vec![event(rollout.created_at, "rollout", "was planned")];
    events.extend(rollout.started_at.map(|at| event(at, "rollout", "started")));
    if let Some(at) = rollout.ended_at {
        events.push(match rollout.state {
            RolloutState::Completed => event(at, "ok", "completed"),
            RolloutState::RolledBack => event(at, "back", "was rolled back"),
            RolloutState::Planned
            | RolloutState::AwaitingApproval
            | RolloutState::Running
            | RolloutState::Paused
            | RolloutState::Failed
            | RolloutState::RollingBack
            | RolloutState::Cancelled => event(at, "off", "was cancelled"),
        });
    }
    events
}

fn bundle_event(bundle: &Bundle, project: ProjectId, now: Timestamp) -> (Timestamp, Event) {
    let (sign, after) = match bundle.state {
        BundleState::Rejected => ("bad", "was rejected by the check"),
        BundleState::Revoked => ("bundle", "was created, and is revoked by now"),
        BundleState::Draft | BundleState::Validated | BundleState::Signed => {
            ("bundle", "was checked and signed")
        }
    };
    let event = Event {
        at: moment(bundle.created_at, now),
        icon: icon(sign),
        text: "Bundle",
        href: format!("/projects/{project}/bundles/{}", bundle.id),
        name: bundle.name.to_string(),
        after,
    };
    (bundle.created_at, event)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_items_that_need_attention_is_spelled_out() {
        assert_eq!(attention_count(1), "One thing");
        assert_eq!(attention_count(3), "Three things, the most urgent first");
        assert_eq!(attention_count(20), "20 things, the most urgent first");
    }
}
