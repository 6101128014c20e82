//! The services of a project: which requests go to which upstream.

use crate::frame::form::{Faults, Form};
use crate::frame::{Frame, Place, foot, show as shown};
use crate::request::failure::Failure;
use crate::request::fields::Fields;
use crate::request::note::Note;
use crate::request::path::Path;
use crate::request::visit::Caller;
use crate::ui::Ui;
use crate::view::phrase::count;
use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use control_app::{CertificateFilter, ListFilter, Page, PageOrder, ServiceFilter, Versioned};
use control_domain::{Access, Certificate, Service, ServiceSettings, Upstream};
use control_wire::{CertificateId, ProjectId, ServiceId, UpstreamId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Services, upstreams and certificates that the page reads, each.
const MAX_SHOWN: i64 = 500;

#[derive(Template)]
#[template(path = "services.html")]
struct ServicesPage {
    frame: Frame,
    project: ProjectId,
    csrf: String,
    heading: String,
    rows: Vec<Row>,
    form: Form,
    upstreams: Vec<(String, String)>,
    certificates: Vec<(String, String)>,
    may_write: bool,
    foot: Option<String>,
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

/// The services in the order of matching, and the form of a new one.
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
    let frame = Frame::project(ui, caller, project, (Place::Services, "Services")).await?;
    let (app, call) = (&ui.app, &caller.call);
    let page = Page {
        after: None,
        limit: MAX_SHOWN,
        order: PageOrder::Oldest,
    };
    let services = app
        .services(call, project, &ServiceFilter::default(), page)
        .await?;
    let upstreams = app
        .upstreams(call, project, &ListFilter::default(), page)
        .await?;
    let certificates = app
        .certificates(call, project, &CertificateFilter::default(), page)
        .await?;
    let upstream_names = names(&upstreams, |one: &Upstream| (one.id, one.name.to_string()));
    let certificate_names = names(&certificates, |one: &Certificate| {
        (one.id, one.name.to_string())
    });
    let mut rows: Vec<Row> = services
        .iter()
        .map(|service| row(&service.value, (&upstream_names, &certificate_names)))
        .collect();
    rows.sort_by(|a, b| {
        b.priority
            .cmp(&a.priority)
            .then_with(|| a.name.cmp(&b.name))
    });
    let tenant = app.project(call, project).await?.value.tenant();
    let write = (Access::WRITE_SERVICES, tenant);
    let none = [(String::new(), "None: in clear".to_owned())];
    let certificates = certificate_names.iter();
    let certificates = certificates.map(|(id, name)| (id.to_string(), name.clone()));
    let upstreams = upstream_names.iter();
    Ok(shown(&ServicesPage {
        frame,
        project,
        csrf: caller.visit.csrf.clone(),
        heading: heading(rows.len(), upstream_names.len()),
        rows,
        form,
        upstreams: upstreams
            .map(|(id, name)| (id.to_string(), name.clone()))
            .collect(),
        certificates: none.into_iter().chain(certificates).collect(),
        may_write: caller.may(write.0, write.1),
        foot: foot(caller, write, "make and delete services"),
    }))
}

fn names<T, K: Ord>(found: &[Versioned<T>], pair: fn(&T) -> (K, String)) -> BTreeMap<K, String> {
    found.iter().map(|found| pair(&found.value)).collect()
}

fn row(
    service: &Service,
    (upstreams, certificates): (
        &BTreeMap<UpstreamId, String>,
        &BTreeMap<CertificateId, String>,
    ),
) -> Row {
    let upstream = upstreams.get(&service.upstream).cloned();
    let certificate = service
        .certificate
        .and_then(|id| certificates.get(&id).cloned());
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
    let faults = match read(&fields) {
        Ok(settings) => match ui.app.create_service(&caller.call, project, settings).await {
            Ok(made) => {
                let note = Note::good(format!(
                    "Service {} is created. The next bundle of services has it.",
                    made.value.name
                ));
                return Ok(note.at(&format!("/projects/{project}/services"), ui.cookie));
            }
            Err(error) => Faults::from_error(error)?,
        },
        Err(faults) => faults,
    };
    let form = Form::refused(&caller.visit.csrf, fields, faults);
    let mut response = respond(&ui, &caller, project, form).await?;
    *response.status_mut() = StatusCode::UNPROCESSABLE_ENTITY;
    Ok(response)
}

fn read(fields: &Fields) -> Result<ServiceSettings, Faults> {
    let priority = fields.given("priority").unwrap_or("0").parse::<i32>();
    let upstream = fields.get("upstream").parse::<UpstreamId>();
    Ok(ServiceSettings {
        name: fields.get("name").trim().to_owned(),
        host: fields.given("host").map(str::to_owned),
        path_prefix: fields.given("path_prefix").map(str::to_owned),
        priority: priority.map_err(|_| Faults::from_field("priority", "is not a whole number"))?,
        upstream: upstream.map_err(|_| Faults::from_field("upstream", "is not chosen"))?,
        certificate: fields.get("certificate").parse::<CertificateId>().ok(),
        settings: "{}".to_owned(),
    })
}

/// Deletes a service.
pub(crate) async fn delete(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(place): Path<(ProjectId, ServiceId)>,
) -> Result<Response, Failure> {
    let note = match ui.app.delete_service(&caller.call, place).await {
        Ok(()) => {
            Note::good("The service is deleted. Nodes keep it until they get another bundle.")
        }
        Err(error) => Faults::from_error(error)?.note(),
    };
    Ok(note.at(&format!("/projects/{}/services", place.0), ui.cookie))
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
