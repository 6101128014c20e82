//! List of a project's upstreams.

pub(crate) mod change;

use crate::frame::confirmation::confirmation;
use crate::frame::form::{Faults, Form};
use crate::frame::{Frame, NavEntry, foot, show as shown, unprocessable};
use crate::request::failure::Failure;
use crate::request::fields::Fields;
use crate::request::note::Note;
use crate::request::path::Path;
use crate::request::visit::Caller;
use crate::ui::Ui;
use crate::view::component::NextPage;
use crate::view::confirm::Confirm;
use crate::view::link::Link;
use crate::view::listing;
use crate::view::phrase::count;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use control_app::{ListFilter, PageOrder, ServiceUse, SortColumn};
use control_domain::{Access, LoadBalancing, Target, Upstream, UpstreamSettings, UpstreamTls};
use control_wire::{ProjectId, UpstreamId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Maximum number of upstreams shown.
const PAGE_ROWS: usize = 100;

#[derive(Template)]
#[template(path = "upstreams.html")]
struct UpstreamsPage {
    frame: Frame,
    project: ProjectId,
    heading: String,
    rows: Vec<Row>,
    more: NextPage,
    form: Form,
    balancing: Vec<(String, String)>,
    may_write: bool,
    foot: Option<String>,
}

struct Row {
    id: UpstreamId,
    name: String,
    balancing: &'static str,
    targets: Vec<String>,
    is_secure: bool,
    services: Vec<String>,
}

/// Shows the upstreams with the services that use them, and the form for a new one.
pub(crate) async fn list(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(project): Path<ProjectId>,
) -> Result<Response, Failure> {
    let form = Form::new(&caller.visit.csrf, Fields::default());
    respond(&ui, &caller, project, form).await
}

async fn respond(
    ui: &Ui,
    caller: &Caller,
    project: ProjectId,
    form: Form,
) -> Result<Response, Failure> {
    let frame =
        Frame::project(ui, caller, project, NavEntry::Upstreams.titled("Upstreams")).await?;
    let (app, call) = (&ui.app, &caller.call);
    let query = &caller.visit.query;
    let (after, past) = (query.get("after"), query.get("past"));
    let by_name = ListFilter {
        sort: Some(listing::sort(SortColumn::Name, false, after, past)),
        ..ListFilter::default()
    };
    let page = listing::page(after, PageOrder::Oldest, PAGE_ROWS);
    let mut found = app.upstreams(call, project, &by_name, page).await?;
    let last = listing::cut(&mut found, PAGE_ROWS, |found| found.value.id.0);
    let last = last.zip(found.last().map(|found| found.value.name.to_string()));
    let shown_ids: Vec<UpstreamId> = found.iter().map(|found| found.value.id).collect();
    let users = app.upstream_users(call, project, &shown_ids).await?;
    let rows = found.iter().map(|found| row(&found.value, &users));
    let rows: Vec<Row> = rows.collect();
    let tenant = app.project(call, project).await?.value.tenant();
    let targets = rows.iter().map(|row| row.targets.len()).sum();
    Ok(shown(&UpstreamsPage {
        frame,
        project,
        heading: if last.is_some() || !after.is_empty() {
            format!(
                "{} of many, by name.",
                count(signed(rows.len()), "upstream")
            )
        } else {
            heading(rows.len(), targets)
        },
        rows,
        more: listing::next_sorted(last, "Show further upstreams"),
        form,
        balancing: balancing_choices(),
        may_write: caller.may(Access::WRITE_SERVICES, tenant),
        foot: foot(
            caller,
            Access::WRITE_SERVICES,
            tenant,
            "create, change and delete upstreams",
        ),
    }))
}

fn balancing_choices() -> Vec<(String, String)> {
    let all = LoadBalancing::ALL.iter();
    all.map(|one| (one.name().to_owned(), words(*one).to_owned()))
        .collect()
}

fn row(upstream: &Upstream, users: &BTreeMap<UpstreamId, ServiceUse>) -> Row {
    let is_weighted = upstream.load_balancing == LoadBalancing::Weighted;
    let targets = upstream.targets.iter();
    Row {
        id: upstream.id,
        name: upstream.name.to_string(),
        balancing: words(upstream.load_balancing),
        targets: targets
            .map(|target| {
                if is_weighted {
                    format!("{} weight {}", target.address, target.weight)
                } else {
                    target.address.clone()
                }
            })
            .collect(),
        is_secure: upstream.tls.is_some(),
        services: users
            .get(&upstream.id)
            .map(super::users)
            .unwrap_or_default(),
    }
}

fn words(balancing: LoadBalancing) -> &'static str {
    match balancing {
        LoadBalancing::RoundRobin => "One after the other",
        LoadBalancing::LeastConnections => "The one with the fewest requests",
        LoadBalancing::Weighted => "By weight",
        LoadBalancing::IpHash => "By the client’s address",
    }
}

fn signed(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn heading(upstreams: usize, targets: usize) -> String {
    match signed(upstreams) {
        0 => "There is no upstream yet.".to_owned(),
        upstreams => format!(
            "{} with {} in all.",
            count(upstreams, "upstream"),
            count(signed(targets), "target")
        ),
    }
}

/// Creates an upstream.
pub(crate) async fn create(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(project): Path<ProjectId>,
    fields: Fields,
) -> Result<Response, Failure> {
    let faults = match read(&fields, "{}") {
        Ok(settings) => match ui
            .app
            .create_upstream(&caller.call, project, settings)
            .await
        {
            Ok(made) => {
                let note = Note::good(format!("Upstream {} is created.", made.value.name));
                return Ok(note.at(&format!("/projects/{project}/upstreams"), ui.cookie));
            }
            Err(error) => in_form(Faults::from_error(error)?),
        },
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
        ("targets.address", "targets"),
        ("targets.weight", "targets"),
        ("tls.server_name", "server_name"),
    ];
    let names = names.into_iter();
    names.fold(faults, |faults, (own, name)| faults.renamed(own, name))
}

/// Parses the form; `further` is the JSON of settings that the form does not show.
fn read(fields: &Fields, further: &str) -> Result<UpstreamSettings, Faults> {
    let balancing = LoadBalancing::from_name(fields.get("load_balancing"));
    let server_name = fields.given("server_name").map(str::to_owned);
    let has_tls = !fields.get("tls").is_empty();
    let lines = fields.get("targets").lines().map(str::trim);
    let targets = lines.filter(|line| !line.is_empty()).map(target);
    Ok(UpstreamSettings {
        name: fields.get("name").trim().to_owned(),
        load_balancing: balancing.unwrap_or(LoadBalancing::RoundRobin),
        targets: targets.collect::<Result<_, Faults>>()?,
        tls: has_tls.then_some(UpstreamTls { server_name }),
        settings: further.to_owned(),
    })
}

/// Parses a target such as `10.0.0.1:3000`, optionally followed by a weight.
fn target(line: &str) -> Result<Target, Faults> {
    let (address, weight) = line.split_once(char::is_whitespace).unwrap_or((line, "1"));
    let weight = weight.trim().trim_start_matches("weight").trim();
    let weight = weight.parse::<u32>();
    Ok(Target {
        address: address.to_owned(),
        weight: weight
            .map_err(|_| Faults::from_field("targets", "have a weight that is not a number"))?,
    })
}

/// The confirmation page of deleting an upstream.
pub(crate) async fn ask_deletion(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path((project, id)): Path<(ProjectId, UpstreamId)>,
) -> Result<Response, Failure> {
    let upstream = ui.app.upstream(&caller.call, project, id).await?.value;
    let title = NavEntry::Upstreams.titled("Delete an upstream");
    let frame = Frame::project(&ui, &caller, project, title).await?;
    let list = format!("/projects/{project}/upstreams");
    let targets = count(signed(upstream.targets.len()), "target");
    Ok(confirmation(
        frame,
        Confirm {
            over: Link {
                text: "Upstreams".to_owned(),
                path: list.clone(),
            },
            heading: format!("Delete {}?", upstream.name),
            effects: vec![
                format!(
                    "Its {targets} and settings are deleted. Bundles that have it already do not change."
                ),
                "An upstream that a service uses is not deleted.".to_owned(),
            ],
            action: format!("{list}/{id}/delete"),
            back: list,
            csrf: caller.visit.csrf.clone(),
            button: "Delete it".to_owned(),
        },
    ))
}

/// Deletes an upstream.
pub(crate) async fn delete(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path((project, id)): Path<(ProjectId, UpstreamId)>,
) -> Result<Response, Failure> {
    let note = match ui.app.delete_upstream(&caller.call, project, id).await {
        Ok(()) => Note::good("The upstream is deleted."),
        Err(error) => Faults::from_error(error)?.note(),
    };
    Ok(note.at(&format!("/projects/{project}/upstreams"), ui.cookie))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_lines_with_an_optional_weight() {
        let read = |line| {
            target(line)
                .map(|target| (target.address, target.weight))
                .ok()
        };
        assert_eq!(read("10.0.0.1:80"), Some(("10.0.0.1:80".to_owned(), 1)));
        assert_eq!(
            read("10.0.0.1:80 weight 3"),
            Some(("10.0.0.1:80".to_owned(), 3))
        );
        assert_eq!(read("10.0.0.1:80 much"), None);
    }
}
