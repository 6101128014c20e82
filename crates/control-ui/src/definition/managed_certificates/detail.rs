//! Page of a managed certificate: state, next attempt, deletion.

use super::{error, page, status};
use crate::frame::confirmation::confirmation;
use crate::frame::form::Faults;
use crate::frame::{Frame, NavEntry, foot, show as shown};
use crate::request::failure::Failure;
use crate::request::note::Note;
use crate::request::path::Path;
use crate::request::visit::Caller;
use crate::ui::Ui;
use crate::view::component::{RelativeTime, Status, when};
use crate::view::confirm::Confirm;
use crate::view::link::Link;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use control_domain::{Access, ManagedCertificate, ManagedCertificateState};
use control_wire::{CertificateId, ManagedCertificateId, ProjectId};
use jiff::Timestamp;
use std::sync::Arc;

#[derive(Template)]
#[template(path = "managed_certificate.html")]
struct ManagedCertificatePage {
    frame: Frame,
    project: ProjectId,
    id: ManagedCertificateId,
    name: String,
    heading: String,
    status: Status,
    hosts: Vec<String>,
    directory: String,
    email: String,
    key_type: &'static str,
    labels: Vec<String>,
    certificate: Option<CertificateId>,
    next: RelativeTime,
    failures: u32,
    error: String,
    csrf: String,
    may_write: bool,
    foot: Option<String>,
}

/// The state of a managed certificate.
pub(crate) async fn show(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path((project, id)): Path<(ProjectId, ManagedCertificateId)>,
) -> Result<Response, Failure> {
    let title = NavEntry::Certificates.titled("Managed certificate");
    let frame = Frame::project(&ui, &caller, project, title).await?;
    let found = ui.app.managed_certificate(&caller.call, project, id);
    let own = found.await?.value;
    let now = caller.visit.now;
    let labels = own.node_labels.pairs().iter();
    Ok(shown(&ManagedCertificatePage {
        frame,
        project,
        id,
        name: own.name.to_string(),
        heading: heading(&own, now),
        status: status(&own, now).pill(),
        hosts: own.hosts.clone(),
        directory: own.directory.clone(),
        email: own.email.as_str().to_owned(),
        key_type: own.key_type.name(),
        labels: labels
            .map(|(name, value)| format!("{name}:{value}"))
            .collect(),
        certificate: own.certificate,
        next: when(own.progress.next_at, now),
        failures: own.progress.failures,
        error: error(&own),
        csrf: caller.visit.csrf.clone(),
        may_write: caller.may(Access::WRITE_SERVICES, own.tenant),
        foot: foot(
            &caller,
            Access::WRITE_SERVICES,
            own.tenant,
            "order and delete managed certificates",
        ),
    }))
}

/// Makes an attempt due at once.
pub(crate) async fn renew(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path((project, id)): Path<(ProjectId, ManagedCertificateId)>,
) -> Result<Response, Failure> {
    let due = ui.app.renew_managed_certificate(&caller.call, project, id);
    let note = match due.await {
        Ok(_) => Note::good("The certificate is ordered now."),
        Err(error) => Faults::from_error(error)?.note(),
    };
    Ok(note.at(&page(project, id), ui.cookie))
}

/// The confirmation page of deleting a managed certificate.
pub(crate) async fn ask_deletion(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path((project, id)): Path<(ProjectId, ManagedCertificateId)>,
) -> Result<Response, Failure> {
    let found = ui.app.managed_certificate(&caller.call, project, id);
    let own = found.await?.value;
    let title = NavEntry::Certificates.titled("Delete a managed certificate");
    let frame = Frame::project(&ui, &caller, project, title).await?;
    Ok(confirmation(
        frame,
        Confirm {
            over: Link {
                text: "Managed certificates".to_owned(),
                path: format!("/projects/{project}/managed-certificates"),
            },
            heading: format!("Stop renewing {}?", own.name),
            effects: vec![
                "The certificate that it obtained is kept, and nodes keep serving it.".to_owned(),
                "It is no longer renewed: replace it by hand before it expires.".to_owned(),
            ],
            action: format!("{}/delete", page(project, id)),
            back: page(project, id),
            csrf: caller.visit.csrf.clone(),
            button: "Stop renewing it".to_owned(),
        },
    ))
}

/// Deletes a managed certificate.
pub(crate) async fn delete(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path((project, id)): Path<(ProjectId, ManagedCertificateId)>,
) -> Result<Response, Failure> {
    let deleted = ui.app.delete_managed_certificate(&caller.call, project, id);
    let (note, path) = match deleted.await {
        Ok(()) => {
            let path = format!("/projects/{project}/managed-certificates");
            (Note::good("The certificate is no longer renewed."), path)
        }
        Err(error) => (Faults::from_error(error)?.note(), page(project, id)),
    };
    Ok(note.at(&path, ui.cookie))
}

fn heading(own: &ManagedCertificate, now: Timestamp) -> String {
    let name = &own.name;
    match own.state(now) {
        ManagedCertificateState::Pending => format!("{name} is being obtained."),
        ManagedCertificateState::Valid => format!("{name} is valid, and renewed before its end."),
        ManagedCertificateState::Renewing => format!("{name} is being renewed."),
        ManagedCertificateState::Failing if own.certificate.is_none() => {
            format!("{name} could not be obtained.")
        }
        ManagedCertificateState::Failing => {
            format!("{name} could not be renewed; the certificate in use stays.")
        }
    }
}
