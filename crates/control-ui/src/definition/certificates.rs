//! The certificates of a project: days left, and the hosts that they cover.

pub(crate) mod change;
pub(crate) mod detail;

use crate::frame::form::Form;
use crate::frame::{Frame, NavEntry, foot, show as shown};
use crate::request::failure::Failure;
use crate::request::fields::Fields;
use crate::request::path::Path;
use crate::request::visit::Caller;
use crate::ui::Ui;
use crate::view::component::{RelativeTime, Status, Tone, when};
use crate::view::phrase::{count, duration, pick};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use control_app::{CertificateFilter, Page, PageOrder, ServiceFilter};
use control_domain::{Access, Certificate, CertificateState};
use control_wire::{CertificateId, ProjectId};
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Certificates and services that the page reads, each.
const MAX_SHOWN: i64 = 500;
/// A certificate is to be replaced this long before its end.
const NOTICE: SignedDuration = SignedDuration::from_hours(21 * 24);

#[derive(Template)]
#[template(path = "certificates.html")]
struct CertificatesPage {
    frame: Frame,
    project: ProjectId,
    heading: String,
    rows: Vec<Row>,
    form: Form,
    may_write: bool,
    foot: Option<String>,
}

struct Row {
    id: CertificateId,
    name: String,
    status: Status,
    hosts: Vec<String>,
    ends: RelativeTime,
    labels: Vec<String>,
    services: Vec<String>,
}

/// The certificates, the first to end first.
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
    let title = NavEntry::Certificates.titled("Certificates");
    let frame = Frame::project(ui, caller, project, title).await?;
    let (app, call, now) = (&ui.app, &caller.call, caller.visit.now);
    let users = users(ui, caller, project).await?;
    let page = Page {
        after: None,
        limit: MAX_SHOWN,
        order: PageOrder::Oldest,
    };
    let found = app
        .certificates(call, project, &CertificateFilter::default(), page)
        .await?;
    let mut certificates: Vec<Certificate> = found.into_iter().map(|found| found.value).collect();
    certificates.sort_by_key(|certificate| certificate.facts.not_after);
    let rows = certificates.iter().map(|certificate| Row {
        id: certificate.id,
        name: certificate.name.to_string(),
        status: status(certificate, now),
        hosts: certificate.facts.hosts.clone(),
        ends: when(certificate.facts.not_after, now),
        labels: labels(certificate),
        services: users.get(&certificate.id).cloned().unwrap_or_default(),
    });
    let tenant = app.project(call, project).await?.value.tenant();
    Ok(shown(&CertificatesPage {
        frame,
        project,
        heading: heading(&certificates, now),
        rows: rows.collect(),
        form,
        may_write: caller.may(Access::WRITE_SERVICES, tenant),
        foot: foot(
            caller,
            Access::WRITE_SERVICES,
            tenant,
            "add, replace and delete certificates",
        ),
    }))
}

/// The names of the services that use each certificate.
async fn users(
    ui: &Ui,
    caller: &Caller,
    project: ProjectId,
) -> Result<BTreeMap<CertificateId, Vec<String>>, Failure> {
    let page = Page {
        after: None,
        limit: MAX_SHOWN,
        order: PageOrder::Oldest,
    };
    let mut users: BTreeMap<CertificateId, Vec<String>> = BTreeMap::new();
    let all = ServiceFilter::default();
    let services = ui.app.services(&caller.call, project, &all, page);
    for service in services.await? {
        let service = service.value;
        if let Some(certificate) = service.certificate {
            let names = users.entry(certificate).or_default();
            names.push(service.name.to_string());
        }
    }
    Ok(users)
}

/// Labels that a node needs, as people write them.
fn labels(certificate: &Certificate) -> Vec<String> {
    let pairs = certificate.node_labels.pairs().iter();
    pairs
        .map(|(name, value)| format!("{name}:{value}"))
        .collect()
}

fn status(certificate: &Certificate, now: Timestamp) -> Status {
    match certificate.state(now) {
        CertificateState::Pending => Status::new(Tone::Off, "wait", "Not valid yet"),
        CertificateState::Expired => Status::new(Tone::Bad, "bad", "Has ended"),
        CertificateState::Valid if certificate.facts.not_after < now + NOTICE => {
            Status::new(Tone::Warn, "warn", "Ends soon")
        }
        CertificateState::Valid => Status::new(Tone::Ok, "ok", "Valid"),
    }
}

/// `certificates` are in the order of their ends.
fn heading(certificates: &[Certificate], now: Timestamp) -> String {
    let number = i64::try_from(certificates.len()).unwrap_or(i64::MAX);
    match certificates.first() {
        None => "There is no certificate yet.".to_owned(),
        Some(first) if first.facts.not_after <= now => {
            format!("Certificate {} has ended.", first.name)
        }
        Some(first) => {
            let left = duration(first.facts.not_after.as_second() - now.as_second());
            format!(
                "{} {}; the next one ends in {left}.",
                count(number, "certificate"),
                pick(number, "is here", "are here")
            )
        }
    }
}
