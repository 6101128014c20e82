//! Page of an upstream, with the form to change it.

use super::{Row, balancing_choices, in_form, read, row};
use crate::frame::form::{Faults, Form};
use crate::frame::{Frame, NavEntry, foot, show as shown, unprocessable};
use crate::request::failure::Failure;
use crate::request::fields::Fields;
use crate::request::note::Note;
use crate::request::path::Path;
use crate::request::visit::Caller;
use crate::ui::Ui;
use crate::view::component::{RelativeTime, when};
use crate::view::phrase::count;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use control_domain::{Access, LoadBalancing, Upstream};
use control_wire::{ProjectId, UpstreamId};
use std::sync::Arc;

#[derive(Template)]
#[template(path = "upstream.html")]
struct UpstreamPage {
    frame: Frame,
    project: ProjectId,
    heading: String,
    row: Row,
    /// Server name for TLS; empty for the host of each target.
    server_name: String,
    /// JSON of settings that the form does not change; empty if there are none.
    further: String,
    made: RelativeTime,
    form: Form,
    balancing: Vec<(String, String)>,
    may_write: bool,
    foot: Option<String>,
}

/// Shows an upstream.
pub(crate) async fn show(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path((project, id)): Path<(ProjectId, UpstreamId)>,
) -> Result<Response, Failure> {
    respond(&ui, &caller, project, id, None).await
}

/// Changes the upstream.
pub(crate) async fn send(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path((project, id)): Path<(ProjectId, UpstreamId)>,
    fields: Fields,
) -> Result<Response, Failure> {
    let (app, call) = (&ui.app, caller.versioned(&fields));
    let found = app.upstream(&call, project, id).await?.value;
    let faults = match read(&fields, &found.settings) {
        Ok(settings) => match app.update_upstream(&call, project, id, settings).await {
            Ok(_) => {
                let note = Note::good("The upstream is changed, for the next bundle of services.");
                let path = format!("/projects/{project}/upstreams/{id}");
                return Ok(note.at(&path, ui.cookie));
            }
            Err(error) => in_form(Faults::from_error(error)?),
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
    id: UpstreamId,
    refused: Option<Form>,
) -> Result<Response, Failure> {
    let frame = Frame::project(ui, caller, project, NavEntry::Upstreams.titled("Upstream")).await?;
    let found = ui.app.upstream(&caller.call, project, id).await?;
    let (upstream, version) = (found.value, found.version);
    let users = ui.app.upstream_users(&caller.call, project, &[id]).await?;
    let row = row(&upstream, &users);
    let stored = filled(&upstream).with("version", &version.to_string());
    let form = match refused {
        Some(form) => form.beside(&stored, &balancing_choices()),
        None => Form::new(&caller.visit.csrf, stored),
    };
    let tls = upstream.tls.as_ref();
    let server_name = tls.and_then(|tls| tls.server_name.clone());
    let tenant = upstream.tenant;
    Ok(shown(&UpstreamPage {
        frame,
        project,
        heading: heading(&row),
        row,
        server_name: server_name.unwrap_or_default(),
        further: match upstream.settings.as_str() {
            "{}" => String::new(),
            further => further.to_owned(),
        },
        made: when(upstream.created_at, caller.visit.now),
        form,
        balancing: balancing_choices(),
        may_write: caller.may(Access::WRITE_SERVICES, tenant),
        foot: foot(
            caller,
            Access::WRITE_SERVICES,
            tenant,
            "change and delete upstreams",
        ),
    }))
}

fn filled(upstream: &Upstream) -> Fields {
    let has_weights = upstream.load_balancing == LoadBalancing::Weighted;
    let has_weights = has_weights || upstream.targets.iter().any(|target| target.weight != 1);
    let targets = upstream.targets.iter().map(|target| {
        if has_weights {
            format!("{} {}", target.address, target.weight)
        } else {
            target.address.clone()
        }
    });
    let targets: Vec<String> = targets.collect();
    let tls = upstream.tls.as_ref();
    let server_name = tls.and_then(|tls| tls.server_name.as_deref());
    Fields::filled(&[
        ("name", &upstream.name.to_string()),
        ("targets", &targets.join("\n")),
        ("load_balancing", upstream.load_balancing.name()),
        ("tls", if tls.is_some() { "yes" } else { "" }),
        ("server_name", server_name.unwrap_or_default()),
    ])
}

fn heading(row: &Row) -> String {
    let number = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let targets = count(number(row.targets.len()), "target");
    match row.services.len() {
        0 => format!("{} has {targets}, and no service uses it.", row.name),
        services => format!(
            "{} has {targets}, for {}.",
            row.name,
            count(number(services), "service")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use control_domain::{Name, Target, Tenant, UpstreamTls};
    use control_wire::OrgId;
    use jiff::Timestamp;
    use std::collections::BTreeMap;
    use uuid::Uuid;

    #[test]
    fn an_unedited_form_changes_nothing() {
        let target = |address: &str, weight| Target {
            address: address.to_owned(),
            weight,
        };
        let further = r#"{"health-check":{"type":"tcp"}}"#;
        for (load_balancing, weight, tls) in [
            (LoadBalancing::RoundRobin, 1, None),
            (LoadBalancing::RoundRobin, 3, None),
            (
                LoadBalancing::Weighted,
                1,
                Some(UpstreamTls {
                    server_name: Some("cart.internal".to_owned()),
                }),
            ),
        ] {
            let upstream = Upstream {
                id: UpstreamId(Uuid::nil()),
                tenant: Tenant::project(OrgId(Uuid::nil()), ProjectId(Uuid::nil())),
                name: Name::stored("cart".to_owned()),
                load_balancing,
                targets: vec![target("10.0.0.1:80", weight), target("10.0.0.2:80", 1)],
                tls,
                settings: further.to_owned(),
                created_at: Timestamp::UNIX_EPOCH,
            };
            let read = read(&filled(&upstream), &upstream.settings).unwrap();
            assert_eq!(read.targets, upstream.targets);
            assert_eq!(read.tls, upstream.tls);
            assert_eq!(read.load_balancing, upstream.load_balancing);
            assert_eq!(
                (read.name.as_str(), read.settings.as_str()),
                ("cart", further)
            );
            let row = row(&upstream, &BTreeMap::new());
            assert_eq!(heading(&row), "cart has 2 targets, and no service uses it.");
        }
    }
}
