//! Creation of a rollout: bundle, nodes, batches, gate.

use crate::frame::form::{self, Faults, Form};
use crate::frame::{Frame, NavEntry, show as shown, unprocessable};
use crate::request::failure::Failure;
use crate::request::fields::Fields;
use crate::request::note::Note;
use crate::request::path::Path;
use crate::request::visit::Caller;
use crate::rollout::rolled_back;
use crate::ui::Ui;
use crate::view::phrase::{count, short};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use control_app::NodeSelection;
use control_domain::{
    BatchSize, Gate, MetricCondition, NewRollout, OnFailure, Strategy, TrafficPeriod,
};
use control_wire::{BundleId, ProjectId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Maximum number of bundles that the form offers.
const MAX_OFFERED_BUNDLES: i64 = 50;
/// Hint on the gate if nodes serve requests.
const GATE_HINT: &str =
    "Without it, only the nodes’ own verdicts count: for nodes that serve nothing yet.";
/// Hint on the gate if no node serves requests.
const NO_GATE_HINT: &str =
    "No node runs a bundle yet, so there are no requests to compare with: a gate could not pass.";
/// Hint on the gate if nodes serve few requests.
const FEW_REQUESTS_HINT: &str = "The nodes reported fewer requests in the last hour than a gate needs on either side: it could not pass.";
/// Initial values of the form.
const DEFAULTS: &[(&str, &str)] = &[
    ("batch_percent", "10"),
    ("max_unavailable", "0"),
    ("deadline_minutes", "10"),
    ("soak_seconds", "60"),
    ("on_failure", "roll_back"),
    ("gate", "on"),
    ("min_requests", "100"),
    ("max_error_increase_permille", "10"),
    ("max_p99_percent", "150"),
];

#[derive(Template)]
#[template(path = "rollout_new.html")]
struct PlanPage {
    frame: Frame,
    project: ProjectId,
    heading: String,
    form: Form,
    bundles: Vec<(String, String)>,
    on_failure: Vec<(String, String)>,
    labels: String,
    gate_hint: &'static str,
}

/// Shows the form. The gate is off while nodes serve too few requests, because a rollout would then
/// fail for lack of data.
pub(crate) async fn show(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(project): Path<ProjectId>,
) -> Result<Response, Failure> {
    let query = &caller.visit.query;
    let asked = DEFAULTS.iter().map(|(name, value)| match query.get(name) {
        "" => (*name, *value),
        asked => (*name, asked),
    });
    let mut pairs: Vec<(&str, &str)> = asked.collect();
    if gate_hint(&ui, &caller, project).await? != GATE_HINT {
        pairs.retain(|(name, _)| *name != "gate");
    }
    pairs.push(("bundle", query.get("bundle")));
    let prometheus = ui.app.prometheus_url(&caller.call, project).await?;
    pairs.push(("prometheus_url", prometheus.as_deref().unwrap_or_default()));
    let form = Form::new(&caller.visit.csrf, Fields::filled(&pairs));
    respond(&ui, &caller, project, form).await
}

/// Plans the rollout; no order is sent before its start.
pub(crate) async fn send(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(project): Path<ProjectId>,
    fields: Fields,
) -> Result<Response, Failure> {
    let faults = match read(&fields) {
        Ok((new, selection)) => {
            let made = ui
                .app
                .create_rollout(&caller.call, project, new, selection)
                .await;
            match made {
                Ok(made) => {
                    let note =
                        Note::good("The rollout is planned. Check its batches, then start it.");
                    let path = format!("/projects/{project}/rollouts/{}", made.value.id);
                    return Ok(note.at(&path, ui.cookie));
                }
                Err(error) => in_form(Faults::from_error(error)?),
            }
        }
        Err(faults) => faults,
    };
    let form = Form::refused(&caller.visit.csrf, fields, faults);
    respond(&ui, &caller, project, form)
        .await
        .map(unprocessable)
}

/// Maps fields of the API to the form's names.
fn in_form(faults: Faults) -> Faults {
    let names = [
        ("nodes", "labels"),
        ("batch_count", "batch_percent"),
        ("deadline_secs", "deadline_minutes"),
        ("soak_secs", "soak_seconds"),
        ("gate.min_requests", "min_requests"),
        (
            "gate.max_error_increase_permille",
            "max_error_increase_permille",
        ),
        ("gate.max_p99_percent", "max_p99_percent"),
        ("prometheus.url", "prometheus_url"),
        ("prometheus.query", "prometheus_query"),
        ("prometheus.max", "prometheus_max"),
    ];
    let renamed = names.into_iter();
    renamed.fold(faults, |faults, (own, name)| faults.renamed(own, name))
}

fn read(fields: &Fields) -> Result<(NewRollout, NodeSelection), Faults> {
    let number = |name: &'static str| {
        let text = fields.given(name).unwrap_or_default();
        text.parse::<i64>()
            .map_err(|_| Faults::from_field(name, "is not a whole number"))
    };
    let bundle = fields.get("bundle").parse::<BundleId>();
    let bundle = bundle.map_err(|_| Faults::from_field("bundle", "is not chosen"))?;
    let gate = match fields.get("gate") {
        "" => None,
        _ => Some(Gate {
            min_requests: number("min_requests")?,
            max_error_increase_permille: number("max_error_increase_permille")?,
            max_p99_percent: number("max_p99_percent")?,
            ..Gate::DEFAULT
        }),
    };
    let strategy = Strategy {
        batch: BatchSize::Percent(number("batch_percent")?),
        max_unavailable: number("max_unavailable")?,
        deadline_secs: number("deadline_minutes")?.saturating_mul(60),
        soak_secs: number("soak_seconds")?,
        gate,
        needs_approval: !fields.get("needs_approval").is_empty(),
        on_failure: OnFailure::from_name(fields.get("on_failure")).unwrap_or(OnFailure::RollBack),
    };
    let new = NewRollout {
        bundle,
        strategy,
        condition: condition(fields)?,
        labels: BTreeMap::new(),
        not_before: None,
    };
    Ok((new, NodeSelection::Labelled(form::labels(fields)?)))
}

/// The metrics condition, if a query was entered.
fn condition(fields: &Fields) -> Result<Option<MetricCondition>, Faults> {
    let Some(query) = fields.given("prometheus_query") else {
        return Ok(None);
    };
    let limit = |name: &'static str| {
        let text = fields.given(name).map(str::parse::<f64>);
        text.transpose()
            .map_err(|_| Faults::from_field(name, "is not a number"))
    };
    Ok(Some(MetricCondition {
        url: fields.get("prometheus_url").trim().to_owned(),
        query: query.to_owned(),
        min: limit("prometheus_min")?,
        max: limit("prometheus_max")?,
    }))
}

async fn respond(
    ui: &Ui,
    caller: &Caller,
    project: ProjectId,
    form: Form,
) -> Result<Response, Failure> {
    let frame = Frame::project(
        ui,
        caller,
        project,
        NavEntry::Rollouts.titled("New rollout"),
    )
    .await?;
    let (app, call) = (&ui.app, &caller.call);
    let bundles = offered(ui, caller, project, &form).await?;
    let nodes = app.count_nodes(call, project).await?.total;
    let on_failure = [
        ("roll_back", "Roll back the rollout"),
        ("pause", "Wait for a person"),
    ];
    Ok(shown(&PlanPage {
        frame,
        project,
        heading: heading(bundles.len(), nodes),
        form,
        bundles,
        on_failure: on_failure
            .map(|(name, text)| (name.to_owned(), text.to_owned()))
            .to_vec(),
        labels: app.label_names(call, project).await?.join(", "),
        gate_hint: gate_hint(ui, caller, project).await?,
    }))
}

/// The newest signed bundles, those that were rolled back last behind the rest, and the one selected in the form.
async fn offered(
    ui: &Ui,
    caller: &Caller,
    project: ProjectId,
    form: &Form,
) -> Result<Vec<(String, String)>, Failure> {
    let (app, call) = (&ui.app, &caller.call);
    let newest = app
        .newest_signed_bundles(call, project, MAX_OFFERED_BUNDLES)
        .await?;
    let newest = newest.into_iter().map(|found| found.value);
    let mut bundles: Vec<(BundleId, String)> = newest
        .map(|bundle| (bundle.id, bundle.name.to_string()))
        .collect();
    let named = form.value("bundle").parse::<BundleId>().ok();
    let named = named.filter(|named| bundles.iter().all(|(id, _)| id != named));
    let named: BTreeSet<BundleId> = named.into_iter().collect();
    bundles.extend(app.bundle_names(call, project, &named).await?);
    let rolled_back = rolled_back(ui, caller, project).await?;
    bundles.sort_by_key(|(id, _)| rolled_back.contains_key(id));
    let bundles = bundles.into_iter().map(|(id, name)| {
        let mark = if rolled_back.contains_key(&id) {
            ", rolled back"
        } else {
            ""
        };
        (id.to_string(), format!("{name} (…{}){mark}", short(id)))
    });
    Ok(bundles.collect())
}

/// Hint on the gate; [`GATE_HINT`] if nodes serve enough requests for a gate.
async fn gate_hint(ui: &Ui, caller: &Caller, project: ProjectId) -> Result<&'static str, Failure> {
    let (app, call) = (&ui.app, &caller.call);
    if app.count_nodes(call, project).await?.active.is_empty() {
        return Ok(NO_GATE_HINT);
    }
    let traffic = app
        .traffic_totals(call, project, TrafficPeriod::Hour)
        .await?;
    let requests = i64::try_from(traffic.total.counted.requests).unwrap_or(i64::MAX);
    Ok(if requests < Gate::DEFAULT.min_requests {
        FEW_REQUESTS_HINT
    } else {
        GATE_HINT
    })
}

fn heading(bundles: usize, nodes: i64) -> String {
    match (bundles, nodes) {
        (0, _) => "There is no signed bundle to roll out.".to_owned(),
        (_, 0) => "There is no node to roll out to.".to_owned(),
        (_, nodes) => format!(
            "{} can get a new bundle, batch by batch.",
            count(nodes, "node")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_become_a_strategy_and_wrong_ones_are_named() {
        let bundle = "01890a5d-ac96-774b-bcce-b302099a8057";
        let mut pairs = DEFAULTS.to_vec();
        pairs.push(("bundle", bundle));
        let (new, selection) = read(&Fields::filled(&pairs)).unwrap();
        assert_eq!(new.strategy.deadline_secs, 600);
        assert_eq!(new.strategy.gate, Some(Gate::DEFAULT));
        assert_eq!(selection, NodeSelection::Labelled(BTreeMap::new()));
        let wrong: Vec<(&str, &str)> = pairs
            .into_iter()
            .map(|(name, value)| (name, if name == "soak_seconds" { "x" } else { value }))
            .collect();
        let faults = read(&Fields::filled(&wrong)).unwrap_err();
        assert_eq!(faults.iter().next().unwrap().0, "soak_seconds");
    }
}
