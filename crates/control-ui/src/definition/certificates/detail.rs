//! Page of a certificate, with the form to replace it.

use super::{labels, status};
use crate::definition::managed_certificates::ALL_MANAGED;
use crate::definition::users;
use crate::frame::form::Form;
use crate::frame::{Frame, NavEntry, foot, show as shown};
use crate::request::failure::Failure;
use crate::request::fields::Fields;
use crate::request::path::Path;
use crate::request::visit::Caller;
use crate::ui::Ui;
use crate::view::component::{RelativeTime, Status, when};
use crate::view::phrase::duration;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use control_app::ListFilter;
use control_domain::{Access, Certificate, CertificateState};
use control_wire::{CertificateId, ManagedCertificateId, ProjectId};
use jiff::Timestamp;
use std::sync::Arc;

const CHAIN: &str = "chain_pem";

#[derive(Template)]
#[template(path = "certificate.html")]
struct CertificatePage {
    frame: Frame,
    project: ProjectId,
    id: CertificateId,
    name: String,
    heading: String,
    status: Status,
    hosts: Vec<String>,
    begins: RelativeTime,
    ends: RelativeTime,
    fingerprint: String,
    labels: Vec<String>,
    services: Vec<String>,
    /// Managed certificate that obtains and renews this one, and alone replaces it.
    manager: Option<ManagedCertificateId>,
    form: Form,
    may_write: bool,
    foot: Option<String>,
}

/// Shows a certificate.
pub(crate) async fn show(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path((project, id)): Path<(ProjectId, CertificateId)>,
) -> Result<Response, Failure> {
    respond(&ui, &caller, project, id, None).await
}

/// Renders the page; `refused` is the form with its faults.
pub(super) async fn respond(
    ui: &Ui,
    caller: &Caller,
    project: ProjectId,
    id: CertificateId,
    refused: Option<Form>,
) -> Result<Response, Failure> {
    let title = NavEntry::Certificates.titled("Certificate");
    let frame = Frame::project(ui, caller, project, title).await?;
    let found = ui.app.certificate(&caller.call, project, id).await?;
    let (certificate, version) = (found.value, found.version.to_string());
    let services = ui
        .app
        .certificate_users(&caller.call, project, &[id])
        .await?;
    let manager = manager(ui, caller, project, id).await?;
    let (now, name) = (caller.visit.now, certificate.name.to_string());
    let labels = labels(&certificate);
    let stored = Fields::filled(&[
        ("version", &version),
        ("name", &name),
        ("labels", &labels.join(" ")),
    ]);
    let form = match refused {
        Some(form) => beside(form, stored, &certificate),
        None => Form::new(&caller.visit.csrf, stored),
    };
    let tenant = certificate.tenant;
    Ok(shown(&CertificatePage {
        frame,
        project,
        id,
        heading: heading(&certificate, now),
        status: status(&certificate, now).pill(),
        form,
        begins: when(certificate.facts.not_before, now),
        ends: when(certificate.facts.not_after, now),
        fingerprint: certificate.facts.fingerprint.clone(),
        hosts: certificate.facts.hosts.clone(),
        services: services.get(&id).map(users).unwrap_or_default(),
        manager,
        may_write: caller.may(Access::WRITE_SERVICES, tenant),
        foot: foot(
            caller,
            Access::WRITE_SERVICES,
            tenant,
            "replace and delete certificates",
        ),
        labels,
        name,
    }))
}

/// After a conflict, shows the stored chain beside that of the form, by fingerprint and validity: the
/// form has no chain until one is entered, so a replaced one would be replaced again unseen.
fn beside(form: Form, stored: Fields, certificate: &Certificate) -> Form {
    let facts = &certificate.facts;
    let own = format!(
        "SHA-256 {}, valid from {} until {}",
        facts.fingerprint, facts.not_before, facts.not_after
    );
    let entered = form.value(CHAIN).to_owned();
    let words = entered.split_whitespace();
    let shown = if words.eq(certificate.chain_pem.split_whitespace()) {
        own.clone()
    } else {
        "another chain".to_owned()
    };
    form.beside(&stored.with(CHAIN, &own), &[(entered, shown)])
}

/// The managed certificate that renews this one.
async fn manager(
    ui: &Ui,
    caller: &Caller,
    project: ProjectId,
    id: CertificateId,
) -> Result<Option<ManagedCertificateId>, Failure> {
    let filter = ListFilter::default();
    let managed = ui
        .app
        .managed_certificates(&caller.call, project, &filter, ALL_MANAGED);
    let managed = managed.await?.into_iter().map(|found| found.value);
    let mut own = managed.filter(|managed| managed.certificate == Some(id));
    Ok(own.next().map(|managed| managed.id))
}

fn heading(certificate: &Certificate, now: Timestamp) -> String {
    let left = duration(certificate.facts.not_after.as_second() - now.as_second());
    let name = &certificate.name;
    match certificate.state(now) {
        CertificateState::Pending => format!("{name} is not valid yet."),
        CertificateState::Expired => format!("{name} expired {left} ago."),
        CertificateState::Valid => format!("{name} is valid for another {left}."),
    }
}
