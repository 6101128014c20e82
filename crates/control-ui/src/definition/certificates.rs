//! The certificates of a project: days left, and the hosts that they cover.

use crate::frame::{Frame, Place, show as shown};
use crate::request::failure::Failure;
use crate::request::path::Path;
use crate::request::visit::Caller;
use crate::ui::Ui;
use crate::view::component::{Status, Tone, When, when};
use crate::view::phrase::{count, duration, pick};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use control_app::{CertificateFilter, Page, PageOrder, ServiceFilter};
use control_domain::{Certificate, CertificateState};
use control_wire::ProjectId;
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
    heading: String,
    rows: Vec<Row>,
}

struct Row {
    name: String,
    status: Status,
    hosts: Vec<String>,
    ends: When,
    labels: Vec<String>,
    services: Vec<String>,
}

/// The certificates, the first to end first.
pub(crate) async fn list(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(project): Path<ProjectId>,
) -> Result<Response, Failure> {
    let title = (Place::Certificates, "Certificates");
    let frame = Frame::project(&ui, &caller, project, title).await?;
    let (app, call, now) = (&ui.app, &caller.call, caller.visit.now);
    let page = Page {
        after: None,
        limit: MAX_SHOWN,
        order: PageOrder::Oldest,
    };
    let mut users: BTreeMap<_, Vec<String>> = BTreeMap::new();
    for service in app
        .services(call, project, &ServiceFilter::default(), page)
        .await?
    {
        let service = service.value;
        if let Some(certificate) = service.certificate {
            users
                .entry(certificate)
                .or_default()
                .push(service.name.to_string());
        }
    }
    let found = app
        .certificates(call, project, &CertificateFilter::default(), page)
        .await?;
    let mut certificates: Vec<Certificate> = found.into_iter().map(|found| found.value).collect();
    certificates.sort_by_key(|certificate| certificate.facts.not_after);
    let rows = certificates.iter().map(|certificate| {
        let labels = certificate.node_labels.pairs().iter();
        Row {
            name: certificate.name.to_string(),
            status: status(certificate, now),
            hosts: certificate.facts.hosts.clone(),
            ends: when(certificate.facts.not_after, now),
            labels: labels
                .map(|(name, value)| format!("{name}:{value}"))
                .collect(),
            services: users.get(&certificate.id).cloned().unwrap_or_default(),
        }
    });
    Ok(shown(&CertificatesPage {
        frame,
        heading: heading(&certificates, now),
        rows: rows.collect(),
    }))
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
