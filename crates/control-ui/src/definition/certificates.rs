//! List of a project's certificates, with hosts and remaining days.

pub(crate) mod change;
pub(crate) mod detail;

use crate::frame::form::Form;
use crate::frame::{Frame, NavEntry, foot, show as shown};
use crate::request::failure::Failure;
use crate::request::fields::Fields;
use crate::request::path::Path;
use crate::request::visit::Caller;
use crate::ui::Ui;
use crate::view::component::{NextPage, RelativeTime, Status, Tone, when};
use crate::view::listing;
use crate::view::phrase::duration;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use control_app::{CertificateFilter, PageOrder, SortColumn};
use control_domain::{Access, Certificate, CertificateState};
use control_wire::{CertificateId, ProjectId};
use jiff::{SignedDuration, Timestamp};
use std::sync::Arc;

/// Maximum number of certificates shown.
const PAGE_ROWS: usize = 100;
/// Remaining validity below which a certificate should be replaced.
const REPLACEMENT_PERIOD: SignedDuration = SignedDuration::from_hours(21 * 24);

#[derive(Template)]
#[template(path = "certificates.html")]
struct CertificatesPage {
    frame: Frame,
    project: ProjectId,
    heading: String,
    rows: Vec<Row>,
    more: NextPage,
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

/// Shows the certificates, those that expire first on top.
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
    let query = &caller.visit.query;
    let (after, past) = (query.get("after"), query.get("past"));
    let by_end = CertificateFilter {
        sort: Some(listing::sort(SortColumn::ExpiresAt, false, after, past)),
        ..CertificateFilter::default()
    };
    let page = listing::page(after, PageOrder::Oldest, PAGE_ROWS);
    let mut found = app.certificates(call, project, &by_end, page).await?;
    let last = listing::cut(&mut found, PAGE_ROWS, |found| found.value.id.0);
    let certificates: Vec<Certificate> = found.into_iter().map(|found| found.value).collect();
    let end = certificates.last().map(|last| last.facts.not_after);
    let last = last.zip(end.map(|end| end.as_millisecond().to_string()));
    let ids: Vec<CertificateId> = certificates.iter().map(|one| one.id).collect();
    let users = app.certificate_users(call, project, &ids).await?;
    let rows = certificates.iter().map(|certificate| Row {
        id: certificate.id,
        name: certificate.name.to_string(),
        status: status(certificate, now),
        hosts: certificate.facts.hosts.clone(),
        ends: when(certificate.facts.not_after, now),
        labels: labels(certificate),
        services: users
            .get(&certificate.id)
            .map(super::users)
            .unwrap_or_default(),
    });
    let tenant = app.project(call, project).await?.value.tenant();
    Ok(shown(&CertificatesPage {
        frame,
        project,
        heading: if after.is_empty() {
            heading(&certificates, last.is_some(), now)
        } else {
            "Certificates that expire later.".to_owned()
        },
        rows: rows.collect(),
        more: listing::next_sorted(last, "Show certificates that expire later"),
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

/// Labels that a node needs, as text.
fn labels(certificate: &Certificate) -> Vec<String> {
    let pairs = certificate.node_labels.pairs().iter();
    pairs
        .map(|(name, value)| format!("{name}:{value}"))
        .collect()
}

fn status(certificate: &Certificate, now: Timestamp) -> Status {
    match certificate.state(now) {
        CertificateState::Pending => Status::new(Tone::Off, "wait", "Not valid yet"),
        CertificateState::Expired => Status::new(Tone::Bad, "bad", "Expired"),
        CertificateState::Valid if certificate.facts.not_after < now + REPLACEMENT_PERIOD => {
            Status::new(Tone::Warn, "warn", "Expires soon")
        }
        CertificateState::Valid => Status::new(Tone::Ok, "ok", "Valid"),
    }
}

/// Heading for `certificates`, sorted by expiry; `has_more` says whether the list is incomplete.
fn heading(certificates: &[Certificate], has_more: bool, now: Timestamp) -> String {
    match certificates.first() {
        None => "There is no certificate yet.".to_owned(),
        Some(first) if first.facts.not_after <= now => {
            format!("Certificate {} has expired.", first.name)
        }
        Some(first) => {
            let left = duration(first.facts.not_after.as_second() - now.as_second());
            if has_more {
                return format!("Of many certificates, the next one expires in {left}.");
            }
            match certificates.len() {
                1 => format!("The only certificate expires in {left}."),
                number => format!("Of {number} certificates, the next one expires in {left}."),
            }
        }
    }
}
