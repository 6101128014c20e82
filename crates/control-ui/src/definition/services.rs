//! List of a project's services: which requests go to which upstream.

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
use control_app::{CertificateFilter, ListFilter, PageOrder, ServiceFilter, SortColumn};
use control_domain::{Access, Service, ServiceSettings};
use control_wire::{CertificateId, ProjectId, ServiceId, UpstreamId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Maximum number of services shown.
const PAGE_ROWS: usize = 200;
/// Maximum number of upstreams, and of certificates, that a form offers.
const MAX_OFFERED: usize = 500;

#[derive(Template)]
#[template(path = "services.html")]
struct ServicesPage {
    frame: Frame,
    project: ProjectId,
    heading: String,
    rows: Vec<Row>,
    more: NextPage,
    form: Form,
    upstreams: Vec<(String, String)>,
    certificates: Vec<(String, String)>,
    /// Sentence on upstreams and certificates that the form does not offer; empty if it offers all.
    left_out: &'static str,
    may_write: bool,
    may_bundle: bool,
    foot: Option<String>,
}

/// Upstreams and certificates that a service can refer to.
struct Names {
    upstreams: BTreeMap<UpstreamId, String>,
    certificates: BTreeMap<CertificateId, String>,
    /// Set if the project has more than the form offers.
    is_cut: bool,
}

struct Row {
    id: ServiceId,
    name: String,
    host: String,
    path_prefix: String,
    priority: i32,
    upstream: String,
    certificate: String,
}

/// Shows the services in matching order, and the form for a new one.
pub(crate) async fn list(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(project): Path<ProjectId>,
) -> Result<Response, Failure> {
    let form = Form::new(&caller.visit.csrf, Fields::filled(&[("priority", "0")]));
    respond(&ui, &caller, project, form).await
}

async fn respond(
    ui: &Ui,
    caller: &Caller,
    project: ProjectId,
    form: Form,
) -> Result<Response, Failure> {
    let frame = Frame::project(ui, caller, project, NavEntry::Services.titled("Services")).await?;
    let (app, call) = (&ui.app, &caller.call);
    let query = &caller.visit.query;
    let (after, past) = (query.get("after"), query.get("past"));
    let by_priority = ServiceFilter {
        sort: Some(listing::sort(SortColumn::Priority, true, after, past)),
        ..ServiceFilter::default()
    };
    let page = listing::page(after, PageOrder::Oldest, PAGE_ROWS);
    let mut services = app.services(call, project, &by_priority, page).await?;
    let last = listing::cut(&mut services, PAGE_ROWS, |service| service.value.id.0);
    let last = last.zip(services.last().map(|last| last.value.priority.to_string()));
    let services: Vec<Service> = services.into_iter().map(|service| service.value).collect();
    let names = Names::read(ui, caller, project, &services).await?;
    let rows: Vec<Row> = services
        .iter()
        .map(|service| row(service, &names))
        .collect();
    let tenant = app.project(call, project).await?.value.tenant();
    Ok(shown(&ServicesPage {
        frame,
        project,
        heading: if last.is_some() || !after.is_empty() {
            let number = i64::try_from(rows.len()).unwrap_or(i64::MAX);
            format!("{} of many, by priority.", count(number, "service"))
        } else {
            heading(rows.len(), names.upstreams.len())
        },
        rows,
        more: listing::next_sorted(last, "Show services of lower priority"),
        left_out: names.left_out(),
        form,
        upstreams: names.upstream_choices(),
        certificates: names.certificate_choices(),
        may_write: caller.may(Access::WRITE_SERVICES, tenant),
        may_bundle: caller.may(Access::WRITE_BUNDLES, tenant),
        foot: foot(
            caller,
            Access::WRITE_SERVICES,
            tenant,
            "create, change and delete services",
        ),
    }))
}

impl Names {
    /// Reads the first ones by name, and those that `services` refer to.
    async fn read(
        ui: &Ui,
        caller: &Caller,
        project: ProjectId,
        services: &[Service],
    ) -> Result<Self, Failure> {
        let (app, call) = (&ui.app, &caller.call);
        let by_name = Some(listing::sort(SortColumn::Name, false, "", ""));
        let page = listing::page("", PageOrder::Oldest, MAX_OFFERED);
        let filter = ListFilter {
            sort: by_name.clone(),
            ..ListFilter::default()
        };
        let mut upstreams = app.upstreams(call, project, &filter, page).await?;
        let more_upstreams = listing::cut(&mut upstreams, MAX_OFFERED, |found| found.value.id.0);
        let filter = CertificateFilter {
            sort: by_name,
            ..CertificateFilter::default()
        };
        let mut certificates = app.certificates(call, project, &filter, page).await?;
        let more_certificates =
            listing::cut(&mut certificates, MAX_OFFERED, |found| found.value.id.0);
        let upstreams = upstreams.into_iter().map(|found| found.value);
        let certificates = certificates.into_iter().map(|found| found.value);
        let mut names = Self {
            upstreams: upstreams
                .map(|one| (one.id, one.name.to_string()))
                .collect(),
            certificates: certificates
                .map(|one| (one.id, one.name.to_string()))
                .collect(),
            is_cut: more_upstreams.is_some() || more_certificates.is_some(),
        };
        let unknown = services.iter().map(|service| service.upstream);
        let unknown = unknown
            .filter(|id| !names.upstreams.contains_key(id))
            .collect();
        let further = app.upstream_names(call, project, &unknown).await?;
        names.upstreams.extend(further);
        let unknown = services.iter().filter_map(|service| service.certificate);
        let unknown = unknown
            .filter(|id| !names.certificates.contains_key(id))
            .collect();
        let further = app.certificate_names(call, project, &unknown).await?;
        names.certificates.extend(further);
        Ok(names)
    }

    fn left_out(&self) -> &'static str {
        if self.is_cut {
            "The first 500 upstreams and certificates by name. A service with another one is created by controld ctl service."
        } else {
            ""
        }
    }

    fn upstream_choices(&self) -> Vec<(String, String)> {
        by_name(&self.upstreams)
    }

    fn certificate_choices(&self) -> Vec<(String, String)> {
        let none = [(String::new(), "None: without TLS".to_owned())];
        none.into_iter()
            .chain(by_name(&self.certificates))
            .collect()
    }
}

/// Identifier and name of each item, sorted by name.
fn by_name<I: ToString>(names: &BTreeMap<I, String>) -> Vec<(String, String)> {
    let choices = names
        .iter()
        .map(|(id, name)| (id.to_string(), name.clone()));
    let mut choices: Vec<(String, String)> = choices.collect();
    choices.sort_by(|(_, a), (_, b)| a.cmp(b));
    choices
}

fn row(service: &Service, names: &Names) -> Row {
    let upstream = names.upstreams.get(&service.upstream).cloned();
    let certificate = service
        .certificate
        .and_then(|id| names.certificates.get(&id).cloned());
    Row {
        id: service.id,
        name: service.name.to_string(),
        host: service
            .host
            .clone()
            .unwrap_or_else(|| "every host".to_owned()),
        path_prefix: service
            .path_prefix
            .clone()
            .unwrap_or_else(|| "/".to_owned()),
        priority: service.priority,
        upstream: upstream.unwrap_or_default(),
        certificate: certificate.unwrap_or_default(),
    }
}

fn heading(services: usize, upstreams: usize) -> String {
    let number = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    match (number(services), number(upstreams)) {
        (0, 0) => "A service needs an upstream first.".to_owned(),
        (0, _) => "There is no service yet.".to_owned(),
        (services, upstreams) => format!(
            "{} share {}.",
            count(services, "service"),
            count(upstreams, "upstream")
        )
        .replacen("1 service share", "1 service has", 1),
    }
}

/// Creates a service.
pub(crate) async fn create(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(project): Path<ProjectId>,
    fields: Fields,
) -> Result<Response, Failure> {
    let faults = match read(&fields, "{}") {
        Ok(settings) => match ui.app.create_service(&caller.call, project, settings).await {
            Ok(made) => {
                let note = Note::good(format!(
                    "Service {} is created. Nodes get it by the next bundle of services.",
                    made.value.name
                ));
                return Ok(note.at(&format!("/projects/{project}/services"), ui.cookie));
            }
            Err(error) => Faults::from_error(error)?,
        },
        Err(faults) => faults,
    };
    let form = Form::refused(&caller.visit.csrf, fields, faults);
    respond(&ui, &caller, project, form)
        .await
        .map(unprocessable)
}

/// Parses the form; `further` is the JSON of settings that the form does not show.
fn read(fields: &Fields, further: &str) -> Result<ServiceSettings, Faults> {
    let priority = fields.given("priority").unwrap_or("0").parse::<i32>();
    let upstream = fields.get("upstream").parse::<UpstreamId>();
    let certificate = fields.given("certificate").map(str::parse::<CertificateId>);
    let certificate = certificate.transpose();
    Ok(ServiceSettings {
        name: fields.get("name").trim().to_owned(),
        host: fields.given("host").map(str::to_owned),
        path_prefix: fields.given("path_prefix").map(str::to_owned),
        priority: priority.map_err(|_| Faults::from_field("priority", "is not a whole number"))?,
        upstream: upstream.map_err(|_| Faults::from_field("upstream", "is not chosen"))?,
        certificate: certificate
            .map_err(|_| Faults::from_field("certificate", "is not one of the choices"))?,
        settings: further.to_owned(),
    })
}

/// The confirmation page of deleting a service.
pub(crate) async fn ask_deletion(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path((project, id)): Path<(ProjectId, ServiceId)>,
) -> Result<Response, Failure> {
    let service = ui.app.service(&caller.call, project, id).await?.value;
    let title = NavEntry::Services.titled("Delete a service");
    let frame = Frame::project(&ui, &caller, project, title).await?;
    let list = format!("/projects/{project}/services");
    Ok(confirmation(
        frame,
        Confirm {
            over: Link {
                text: "Services".to_owned(),
                path: list.clone(),
            },
            heading: format!("Delete {}?", service.name),
            effects: vec![
                "Bundles created from now on have no route for it. Nodes keep it until they get such a bundle.".to_owned(),
                "Its upstream and its certificate stay.".to_owned(),
            ],
            action: format!("{list}/{id}/delete"),
            back: list,
            csrf: caller.visit.csrf.clone(),
            button: "Delete it".to_owned(),
        },
    ))
}

/// Deletes a service.
pub(crate) async fn delete(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path((project, id)): Path<(ProjectId, ServiceId)>,
) -> Result<Response, Failure> {
    let note = match ui.app.delete_service(&caller.call, project, id).await {
        Ok(()) => {
            Note::good("The service is deleted. Nodes keep it until they get another bundle.")
        }
        Err(error) => Faults::from_error(error)?.note(),
    };
    Ok(note.at(&format!("/projects/{project}/services"), ui.cookie))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heading_says_what_is_missing_first() {
        assert_eq!(heading(0, 0), "A service needs an upstream first.");
        assert_eq!(heading(0, 1), "There is no service yet.");
        assert_eq!(heading(1, 1), "1 service has 1 upstream.");
        assert_eq!(heading(18, 24), "18 services share 24 upstreams.");
    }
}
