//! List of a project's managed certificates, with their states.

pub(crate) mod detail;

use crate::frame::form::{self, Faults, Form};
use crate::frame::{Frame, NavEntry, foot, show as shown, unprocessable};
use crate::request::failure::Failure;
use crate::request::fields::Fields;
use crate::request::note::Note;
use crate::request::path::Path;
use crate::request::visit::Caller;
use crate::ui::Ui;
use crate::view::component::{RelativeTime, Status, Tone, when};
use crate::view::phrase::{count, pick};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use control_app::{ListFilter, Page, PageOrder};
use control_domain::{
    Access, CertificateKeyType, ManagedCertificate, ManagedCertificateSettings,
    ManagedCertificateState,
};
use control_wire::{ManagedCertificateId, ProjectId};
use jiff::Timestamp;
use std::sync::Arc;

/// All managed certificates of a project, which cannot have more.
pub(crate) const ALL_MANAGED: Page = Page {
    after: None,
    limit: 100,
    order: PageOrder::Oldest,
};

#[derive(Template)]
#[template(path = "managed_certificates.html")]
struct ManagedCertificatesPage {
    frame: Frame,
    project: ProjectId,
    heading: String,
    rows: Vec<Row>,
    form: Form,
    directories: Vec<(String, String)>,
    key_types: Vec<(String, String)>,
    may_write: bool,
    foot: Option<String>,
}

struct Row {
    id: ManagedCertificateId,
    name: String,
    status: Status,
    hosts: Vec<String>,
    next: RelativeTime,
    error: String,
}

/// The managed certificates, and the form for a new one.
pub(crate) async fn list(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(project): Path<ProjectId>,
) -> Result<Response, Failure> {
    let form = Form::new(&caller.visit.csrf, Fields::default());
    respond(&ui, &caller, project, form).await
}

/// Creates a managed certificate.
pub(crate) async fn create(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(project): Path<ProjectId>,
    fields: Fields,
) -> Result<Response, Failure> {
    let faults = match read(&fields) {
        Err(faults) => faults,
        Ok(settings) => {
            let made = ui
                .app
                .create_managed_certificate(&caller.call, project, settings);
            match made.await {
                Ok(made) => {
                    let name = &made.value.name;
                    let note = Note::good(format!(
                        "The certificate {name} is ordered; its state is here."
                    ));
                    return Ok(note.at(&page(project, made.value.id), ui.cookie));
                }
                Err(error) => Faults::from_error(error)?,
            }
        }
    };
    let form = Form::refused(&caller.visit.csrf, fields, faults);
    respond(&ui, &caller, project, form)
        .await
        .map(unprocessable)
}

async fn respond(
    ui: &Ui,
    caller: &Caller,
    project: ProjectId,
    form: Form,
) -> Result<Response, Failure> {
    let title = NavEntry::Certificates.titled("Managed certificates");
    let frame = Frame::project(ui, caller, project, title).await?;
    let (app, call, now) = (&ui.app, &caller.call, caller.visit.now);
    let filter = ListFilter::default();
    let found = app.managed_certificates(call, project, &filter, ALL_MANAGED);
    let found: Vec<ManagedCertificate> =
        found.await?.into_iter().map(|found| found.value).collect();
    let rows = found.iter().map(|own| Row {
        id: own.id,
        name: own.name.to_string(),
        status: status(own, now),
        hosts: own.hosts.clone(),
        next: when(own.progress.next_at, now),
        error: error(own),
    });
    let tenant = app.project(call, project).await?.value.tenant();
    Ok(shown(&ManagedCertificatesPage {
        frame,
        project,
        heading: heading(&found, now),
        rows: rows.collect(),
        form,
        directories: app
            .acme
            .directories
            .iter()
            .map(|url| (url.clone(), url.clone()))
            .collect(),
        key_types: CertificateKeyType::ALL
            .iter()
            .map(|own| (own.name().to_owned(), own.name().to_owned()))
            .collect(),
        may_write: caller.may(Access::WRITE_SERVICES, tenant),
        foot: foot(
            caller,
            Access::WRITE_SERVICES,
            tenant,
            "create and delete managed certificates",
        ),
    }))
}

fn read(fields: &Fields) -> Result<ManagedCertificateSettings, Faults> {
    let key_type = CertificateKeyType::from_name(fields.get("key_type"));
    let key_type = key_type.ok_or_else(|| Faults::from_field("key_type", "is none of these"))?;
    let hosts = fields.get("hosts").split([' ', ',', '\r', '\n']);
    Ok(ManagedCertificateSettings {
        name: fields.get("name").trim().to_owned(),
        hosts: hosts
            .filter(|host| !host.is_empty())
            .map(str::to_owned)
            .collect(),
        directory: fields.get("directory").to_owned(),
        email: fields.get("email").trim().to_owned(),
        terms_agreed: fields.get("terms_agreed") == "yes",
        key_type,
        node_labels: form::labels(fields)?,
    })
}

fn status(own: &ManagedCertificate, now: Timestamp) -> Status {
    match own.state(now) {
        ManagedCertificateState::Pending => Status::new(Tone::Off, "wait", "Is obtained"),
        ManagedCertificateState::Valid => Status::new(Tone::Ok, "ok", "Valid"),
        ManagedCertificateState::Renewing => Status::new(Tone::Off, "wait", "Is renewed"),
        ManagedCertificateState::Failing => Status::new(Tone::Bad, "bad", "Fails"),
    }
}

/// Message of the last failure; empty without one.
fn error(own: &ManagedCertificate) -> String {
    let error = own.progress.error.as_ref();
    error.map_or_else(String::new, |error| error.message.clone())
}

fn heading(found: &[ManagedCertificate], now: Timestamp) -> String {
    let in_state = |state| {
        let own = found.iter().filter(|own| own.state(now) == state);
        i64::try_from(own.count()).unwrap_or(i64::MAX)
    };
    let failures = in_state(ManagedCertificateState::Failing);
    let pending = in_state(ManagedCertificateState::Pending);
    let all = i64::try_from(found.len()).unwrap_or(i64::MAX);
    let sentence = |certificates: i64, what: &str| {
        let is = pick(certificates, "is", "are");
        format!("{} {is} {what}", count(certificates, "certificate"))
    };
    match (all, failures, pending) {
        (0, ..) => "No certificate is managed yet.".to_owned(),
        (_, 0, 0) => format!("{}.", sentence(all, "renewed here")),
        (_, 0, pending) if pending == all => {
            format!("{}.", sentence(pending, "being obtained"))
        }
        (_, 0, pending) => format!(
            "{}, and {} being obtained.",
            sentence(all - pending, "renewed here"),
            count(pending, "is")
        ),
        (_, failures, _) => format!(
            "{} cannot be obtained or renewed.",
            count(failures, "certificate")
        ),
    }
}

fn page(project: ProjectId, id: ManagedCertificateId) -> String {
    format!("/projects/{project}/managed-certificates/{id}")
}
