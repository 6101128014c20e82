//! Page of a service, with the form to change it.

use super::{Names, Row, read, row};
use crate::frame::form::{Faults, Form};
use crate::frame::{Frame, NavEntry, foot, show as shown, unprocessable};
use crate::request::failure::Failure;
use crate::request::fields::Fields;
use crate::request::note::Note;
use crate::request::path::Path;
use crate::request::visit::Caller;
use crate::ui::Ui;
use crate::view::component::{RelativeTime, when};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use control_domain::{Access, Service};
use control_wire::{CertificateId, ProjectId, ServiceId, UpstreamId};
use std::sync::Arc;

#[derive(Template)]
#[template(path = "service.html")]
struct ServicePage {
    frame: Frame,
    project: ProjectId,
    heading: String,
    row: Row,
    upstream: UpstreamId,
    certificate: Option<CertificateId>,
    /// JSON of settings that the form does not change; empty if there are none.
    further: String,
    made: RelativeTime,
    form: Form,
    upstreams: Vec<(String, String)>,
    certificates: Vec<(String, String)>,
    left_out: &'static str,
    may_write: bool,
    foot: Option<String>,
}

/// Shows a service.
pub(crate) async fn show(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path((project, id)): Path<(ProjectId, ServiceId)>,
) -> Result<Response, Failure> {
    respond(&ui, &caller, project, id, None).await
}

/// Changes the service.
pub(crate) async fn send(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path((project, id)): Path<(ProjectId, ServiceId)>,
    fields: Fields,
) -> Result<Response, Failure> {
    let (app, call) = (&ui.app, caller.versioned(&fields));
    let found = app.service(&call, project, id).await?.value;
    let faults = match read(&fields, &found.settings) {
        Ok(settings) => match app.update_service(&call, project, id, settings).await {
            Ok(_) => {
                let note = Note::good(
                    "The service is changed. Nodes get it by the next bundle of services.",
                );
                let path = format!("/projects/{project}/services/{id}");
                return Ok(note.at(&path, ui.cookie));
            }
            Err(error) => Faults::from_error(error)?,
        },
        Err(faults) => faults,
    };
    let form = Form::refused(&caller.visit.csrf, fields, faults);
    respond(&ui, &caller, project, id, Some(form))
        .await
        .map(unprocessable)
}

/// Renders the page; `refused` is the form with its faults. The facts above it are the stored ones.
async fn respond(
    ui: &Ui,
    caller: &Caller,
    project: ProjectId,
    id: ServiceId,
    refused: Option<Form>,
) -> Result<Response, Failure> {
    let frame = Frame::project(ui, caller, project, NavEntry::Services.titled("Service")).await?;
    let found = ui.app.service(&caller.call, project, id).await?;
    let (service, version) = (found.value, found.version);
    let services = [service];
    let names = Names::read(ui, caller, project, &services).await?;
    let [service] = services;
    let row = row(&service, &names);
    let (upstreams, certificates) = (names.upstream_choices(), names.certificate_choices());
    let stored = filled(&service).with("version", &version.to_string());
    let named = [&upstreams[..], &certificates[..]].concat();
    let form = match refused {
        Some(form) => form.beside(&stored, &named),
        None => Form::new(&caller.visit.csrf, stored),
    };
    let tenant = service.tenant;
    Ok(shown(&ServicePage {
        frame,
        project,
        heading: heading(&service, &row.upstream),
        row,
        upstream: service.upstream,
        certificate: service.certificate,
        further: match service.settings.as_str() {
            "{}" => String::new(),
            further => further.to_owned(),
        },
        made: when(service.created_at, caller.visit.now),
        form,
        upstreams,
        certificates,
        left_out: names.left_out(),
        may_write: caller.may(Access::WRITE_SERVICES, tenant),
        foot: foot(
            caller,
            Access::WRITE_SERVICES,
            tenant,
            "change and delete services",
        ),
    }))
}

fn filled(service: &Service) -> Fields {
    let (upstream, priority) = (service.upstream.to_string(), service.priority.to_string());
    let certificate = service.certificate.map(|id| id.to_string());
    Fields::filled(&[
        ("name", &service.name.to_string()),
        ("host", service.host.as_deref().unwrap_or_default()),
        (
            "path_prefix",
            service.path_prefix.as_deref().unwrap_or_default(),
        ),
        ("upstream", &upstream),
        ("certificate", certificate.as_deref().unwrap_or_default()),
        ("priority", &priority),
    ])
}

fn heading(service: &Service, upstream: &str) -> String {
    let name = &service.name;
    let requests = match (&service.host, &service.path_prefix) {
        (None, None) => "every request".to_owned(),
        (None, Some(path)) => format!("requests below {path}"),
        (Some(host), None) => format!("requests to {host}"),
        (Some(host), Some(path)) => format!("requests to {host}{path}"),
    };
    format!("{name} sends {requests} to {upstream}.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use control_domain::{Name, Tenant};
    use control_wire::OrgId;
    use jiff::Timestamp;
    use uuid::Uuid;

    #[test]
    fn the_heading_says_which_requests_it_takes() {
        for (host, path, expected) in [
            (None, None, "shop sends every request to cart."),
            (
                None,
                Some("/api"),
                "shop sends requests below /api to cart.",
            ),
            (
                Some("a.test"),
                None,
                "shop sends requests to a.test to cart.",
            ),
            (
                Some("a.test"),
                Some("/api"),
                "shop sends requests to a.test/api to cart.",
            ),
        ] {
            let service = Service {
                id: ServiceId(Uuid::nil()),
                tenant: Tenant::project(OrgId(Uuid::nil()), ProjectId(Uuid::nil())),
                name: Name::stored("shop".to_owned()),
                host: host.map(str::to_owned),
                path_prefix: path.map(str::to_owned),
                priority: 0,
                upstream: UpstreamId(Uuid::nil()),
                certificate: None,
                settings: "{}".to_owned(),
                created_at: Timestamp::UNIX_EPOCH,
            };
            assert_eq!(heading(&service, "cart"), expected);
        }
    }
}
