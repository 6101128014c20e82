//! Editor for a new bundle: the text is checked by the proxy's own code.

use crate::bundle::checks::{Finding, findings};
use crate::frame::form::{Faults, Form};
use crate::frame::{Frame, NavEntry, show as shown, unprocessable};
use crate::request::failure::Failure;
use crate::request::fields::Fields;
use crate::request::note::Note;
use crate::request::path::Path;
use crate::request::visit::Caller;
use crate::ui::Ui;
use crate::view::phrase::{count, pick};
use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use control_app::{BundleSource, Diagnostic, Files, NewBundle};
use control_domain::BundleState;
use control_wire::{BundleId, ProjectId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// File name of the editor's text; bundles with several files need `controld ctl`.
const FILE: &str = "proxy.kdl";
/// Maximum size of the editor's form, URL-encoded.
pub(crate) const MAX_FORM_BYTES: usize = 1024 * 1024;
/// Initial text: a configuration without errors.
const EXAMPLE: &str = r#"listeners {
    listener "http" { address "0.0.0.0:8080" }
}
routes {
    route "shop" {
        matches { host "shop.example.com"; path-prefix "/" }
        upstream "shop"
    }
}
upstreams {
    upstream "shop" {
        target "10.0.0.1:3000"
        target "10.0.0.2:3000"
    }
}
tests {
    test "the shop answers at its host" {
        request "GET" "http://shop.example.com/cart"
        expect { route "shop" }
    }
}
"#;

#[derive(Template)]
#[template(path = "bundle_new.html")]
struct EditorPage {
    frame: Frame,
    project: ProjectId,
    heading: String,
    form: Form,
    findings: Vec<Finding>,
}

/// Result of checking a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Checked {
    NotYet,
    Found { errors: i64, warnings: i64 },
}

/// Shows the editor, with the example or the text of an earlier bundle.
pub(crate) async fn show(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(project): Path<ProjectId>,
) -> Result<Response, Failure> {
    let from = caller.visit.query.get("from").parse::<BundleId>().ok();
    let (name, text) = match from {
        Some(from) => earlier(&ui, &caller, project, from).await?,
        None => (String::new(), EXAMPLE.to_owned()),
    };
    let form = Form::new(
        &caller.visit.csrf,
        Fields::filled(&[("name", &name), ("text", &text)]),
    );
    respond(&ui, &caller, project, form, Checked::NotYet, Vec::new()).await
}

async fn earlier(
    ui: &Ui,
    caller: &Caller,
    project: ProjectId,
    id: BundleId,
) -> Result<(String, String), Failure> {
    let bundle = ui.app.bundle(&caller.call, project, id).await?.value;
    let files = ui.app.bundle_files(&caller.call, project, id).await?;
    let text = files.get(FILE).cloned().unwrap_or_default();
    let text = String::from_utf8(text).map_err(|_| Failure::not_found())?;
    Ok((bundle.name.to_string(), text))
}

/// Checks the text, or creates a bundle from it.
pub(crate) async fn send(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(project): Path<ProjectId>,
    fields: Fields,
) -> Result<Response, Failure> {
    let text = fields.get("text").replace("\r\n", "\n");
    let files: Files = [(FILE.to_owned(), text.clone().into_bytes())].into();
    let checked = ui
        .app
        .check_files(&caller.call, project, files.clone())
        .await;
    let diagnostics = match checked {
        Ok(diagnostics) => diagnostics,
        Err(error) => {
            let faults = Faults::from_error(error)?.renamed("files", "text");
            return refuse(&ui, &caller, project, fields, faults, Vec::new()).await;
        }
    };
    let errors = number_of(&diagnostics, "error");
    if 0 < errors || fields.get("do") == "check" {
        let found = in_text(&diagnostics, &text);
        let checked = Checked::Found {
            errors,
            warnings: number_of(&diagnostics, "warning"),
        };
        let form = Form::new(&caller.visit.csrf, fields);
        let mut response = respond(&ui, &caller, project, form, checked, found).await?;
        if 0 < errors {
            *response.status_mut() = StatusCode::UNPROCESSABLE_ENTITY;
        }
        return Ok(response);
    }
    let new = NewBundle {
        name: fields.get("name").trim().to_owned(),
        source: BundleSource::Files(files),
    };
    match ui.app.create_bundle(&caller.call, project, new).await {
        Ok(made) => Ok(
            made_note(&made.value.name.to_string(), made.value.state).at(
                &format!("/projects/{project}/bundles/{}", made.value.id),
                ui.cookie,
            ),
        ),
        Err(error) => {
            let faults = Faults::from_error(error)?.renamed("files", "text");
            let found = in_text(&diagnostics, &text);
            refuse(&ui, &caller, project, fields, faults, found).await
        }
    }
}

/// Note on a new bundle.
pub(crate) fn made_note(name: &str, state: BundleState) -> Note {
    match state {
        BundleState::Rejected => Note::bad(format!("{name} has errors, and was not signed.")),
        BundleState::Draft
        | BundleState::Validated
        | BundleState::Signed
        | BundleState::Revoked => Note::good(format!("{name} is checked and signed.")),
    }
}

fn in_text(diagnostics: &[Diagnostic], text: &str) -> Vec<Finding> {
    let files: BTreeMap<String, String> = [(FILE.to_owned(), text.to_owned())].into();
    findings(diagnostics, &files)
}

fn number_of(diagnostics: &[Diagnostic], severity: &str) -> i64 {
    let found = diagnostics.iter().filter(|one| one.severity == severity);
    i64::try_from(found.count()).unwrap_or(i64::MAX)
}

async fn refuse(
    ui: &Ui,
    caller: &Caller,
    project: ProjectId,
    fields: Fields,
    faults: Faults,
    found: Vec<Finding>,
) -> Result<Response, Failure> {
    let form = Form::refused(&caller.visit.csrf, fields, faults);
    respond(ui, caller, project, form, Checked::NotYet, found)
        .await
        .map(unprocessable)
}

async fn respond(
    ui: &Ui,
    caller: &Caller,
    project: ProjectId,
    form: Form,
    checked: Checked,
    findings: Vec<Finding>,
) -> Result<Response, Failure> {
    let frame = Frame::project(ui, caller, project, NavEntry::Bundles.titled("New bundle")).await?;
    Ok(shown(&EditorPage {
        frame,
        project,
        heading: heading(checked),
        form,
        findings,
    }))
}

fn heading(checked: Checked) -> String {
    match checked {
        Checked::NotYet => "A bundle is checked before it is signed.".to_owned(),
        Checked::Found {
            errors: 0,
            warnings: 0,
        } => "The configuration has no errors, and its tests pass.".to_owned(),
        Checked::Found {
            errors: 0,
            warnings,
        } => format!(
            "The configuration is valid; {} {} review.",
            count(warnings, "warning"),
            pick(warnings, "needs", "need")
        ),
        Checked::Found { errors, .. } => {
            format!(
                "{} {} signing.",
                count(errors, "error"),
                pick(errors, "prevents", "prevent")
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heading_says_what_the_check_found() {
        let found = |errors, warnings| heading(Checked::Found { errors, warnings });
        assert_eq!(
            found(0, 0),
            "The configuration has no errors, and its tests pass."
        );
        assert_eq!(
            found(0, 2),
            "The configuration is valid; 2 warnings need review."
        );
        assert_eq!(found(1, 2), "1 error prevents signing.");
    }
}
