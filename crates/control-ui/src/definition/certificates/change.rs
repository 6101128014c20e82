//! Commands on certificates: add, replace, delete. The private key is write-only.

use super::detail;
use crate::frame::confirmation::confirmation;
use crate::frame::form::{self, Faults, Form};
use crate::frame::{Frame, NavEntry, unprocessable};
use crate::request::failure::Failure;
use crate::request::fields::Fields;
use crate::request::note::Note;
use crate::request::path::Path;
use crate::request::visit::Caller;
use crate::ui::Ui;
use crate::view::confirm::Confirm;
use crate::view::link::Link;
use axum::extract::State;
use axum::response::Response;
use control_app::NewCertificate;
use control_wire::{CertificateId, ProjectId};
use std::sync::Arc;
use zeroize::Zeroizing;

/// Maximum size of a form with chain and key, URL-encoded.
pub(crate) const MAX_FORM_BYTES: usize = 256 * 1024;

const KEY: &str = "private_key_pem";

/// Adds a certificate.
pub(crate) async fn create(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(project): Path<ProjectId>,
    fields: Fields,
) -> Result<Response, Failure> {
    let faults = match new(&fields) {
        Err(faults) => faults,
        Ok(new) => match ui.app.create_certificate(&caller.call, project, new).await {
            Ok(made) => {
                let (id, name) = (made.value.id, &made.value.name);
                let note = Note::good(format!(
                    "Certificate {name} is stored; a service may use it."
                ));
                return Ok(note.at(&page(project, id), ui.cookie));
            }
            Err(error) => Faults::from_error(error)?,
        },
    };
    let form = Form::refused(&caller.visit.csrf, fields.without(KEY), faults);
    super::respond(&ui, &caller, project, form)
        .await
        .map(unprocessable)
}

/// Replaces a certificate and its key.
pub(crate) async fn replace(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path((project, id)): Path<(ProjectId, CertificateId)>,
    fields: Fields,
) -> Result<Response, Failure> {
    let faults = match new(&fields) {
        Err(faults) => faults,
        Ok(new) => match ui
            .app
            .update_certificate(&caller.versioned(&fields), project, id, new)
            .await
        {
            Ok(_) => {
                let note = Note::good(
                    "The certificate is replaced. Online nodes fetch it within half a minute; no new bundle is needed.",
                );
                return Ok(note.at(&page(project, id), ui.cookie));
            }
            Err(error) => Faults::from_error(error)?,
        },
    };
    let form = Form::refused(&caller.visit.csrf, fields.without(KEY), faults);
    detail::respond(&ui, &caller, project, id, Some(form))
        .await
        .map(unprocessable)
}

fn new(fields: &Fields) -> Result<NewCertificate, Faults> {
    let labels = form::labels(fields)?;
    Ok(NewCertificate {
        name: fields.get("name").trim().to_owned(),
        chain_pem: fields.get("chain_pem").replace("\r\n", "\n"),
        private_key_pem: Zeroizing::new(fields.get(KEY).replace("\r\n", "\n")),
        node_labels: Some(labels),
    })
}

/// The confirmation page of deleting a certificate.
pub(crate) async fn ask_deletion(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path((project, id)): Path<(ProjectId, CertificateId)>,
) -> Result<Response, Failure> {
    let certificate = ui.app.certificate(&caller.call, project, id).await?.value;
    let title = NavEntry::Certificates.titled("Delete a certificate");
    let frame = Frame::project(&ui, &caller, project, title).await?;
    Ok(confirmation(frame, Confirm {
            over: Link {
                text: "Certificates".to_owned(),
                path: format!("/projects/{project}/certificates"),
            },
            heading: format!("Delete {}?", certificate.name),
            effects: vec![
                "It is deleted with its private key, which cannot be undone.".to_owned(),
                "A certificate that a service, a managed certificate or the bundle of a node uses is not deleted."
                    .to_owned(),
            ],
            action: format!("{}/delete", page(project, id)),
            back: page(project, id),
            csrf: caller.visit.csrf.clone(),
            button: "Delete it".to_owned(),
        }))
}

/// Deletes a certificate and its key.
pub(crate) async fn delete(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path((project, id)): Path<(ProjectId, CertificateId)>,
) -> Result<Response, Failure> {
    let (note, path) = match ui.app.delete_certificate(&caller.call, project, id).await {
        Ok(()) => {
            let path = format!("/projects/{project}/certificates");
            (Note::good("The certificate is deleted."), path)
        }
        Err(error) => (Faults::from_error(error)?.note(), page(project, id)),
    };
    Ok(note.at(&path, ui.cookie))
}

fn page(project: ProjectId, id: CertificateId) -> String {
    format!("/projects/{project}/certificates/{id}")
}
