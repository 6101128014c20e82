//! Page that explains the decision on a request, under the active bundle or two bundles. No request
//! is sent.

mod comparison;
mod document;

use crate::bundle::choices::Choices;
use crate::frame::form::{Faults, Form};
use crate::frame::{Frame, NavEntry, show as shown};
use crate::request::failure::Failure;
use crate::request::fields::Fields;
use crate::request::path::Path;
use crate::request::visit::Caller;
use crate::ui::Ui;
use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use comparison::{Changed, Compared, Step, changes, compare, steps};
use control_app::RequestQuestion;
use control_domain::Access;
use control_wire::{BundleId, ProjectId};
use document::{Document, Reason, Setting};
use std::net::IpAddr;
use std::sync::Arc;

/// Maximum number of routes, and of effective settings, shown per bundle.
const MAX_ROUTES: usize = 60;
const MAX_SETTINGS: usize = 200;

const METHODS: [&str; 7] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
/// Fields that stay collapsed until one of them is set.
const FURTHER_FIELDS: [&str; 3] = ["headers", "client_ip", "listener"];

#[derive(Template)]
#[template(path = "explain.html")]
struct ExplainPage {
    frame: Frame,
    project: ProjectId,
    heading: String,
    rest: String,
    form: Form,
    methods: Vec<(String, String)>,
    bundles: Vec<(String, String)>,
    others: Vec<(String, String)>,
    has_further: bool,
    may_write: bool,
    answer: Option<Answer>,
}

/// Decision under one or two bundles.
struct Answer {
    name: String,
    /// Name of the other bundle, and link to the comparison.
    other: Option<(String, String)>,
    steps: Vec<Step>,
    routes: Vec<Routes>,
    changes: Vec<Changed>,
    settings: Vec<Setting>,
}

/// Routes of a bundle, each with the reason why it matches or not.
struct Routes {
    id: &'static str,
    title: String,
    rows: Vec<Reason>,
    more: usize,
}

/// Shows the form; with `?url=`, the decision as well.
pub(crate) async fn show(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(project): Path<ProjectId>,
) -> Result<Response, Failure> {
    let fields = caller.visit.query.clone();
    respond(&ui, &caller, project, fields).await
}

/// Shows the decision on the form's request.
pub(crate) async fn send(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(project): Path<ProjectId>,
    fields: Fields,
) -> Result<Response, Failure> {
    respond(&ui, &caller, project, fields).await
}

async fn respond(
    ui: &Ui,
    caller: &Caller,
    project: ProjectId,
    fields: Fields,
) -> Result<Response, Failure> {
    let frame = Frame::project(
        ui,
        caller,
        project,
        NavEntry::Explain.titled("Explain a request"),
    )
    .await?;
    let choices = Choices::read(
        ui,
        caller,
        project,
        [fields.get("bundle"), fields.get("with")],
    )
    .await?;
    let fields = filled(&fields, &choices);
    let asked = match choices.usual {
        Some(_) if fields.given("url").is_some() => {
            answer(ui, caller, project, &choices, &fields).await?
        }
        Some(_) | None => Ok(None),
    };
    let has_further = FURTHER_FIELDS
        .iter()
        .any(|name| fields.given(name).is_some());
    let csrf = &caller.visit.csrf;
    let tenant = ui.app.project(&caller.call, project).await?.value.tenant();
    let is_refused = asked.is_err();
    let (form, answered) = match asked {
        Ok(answered) => (Form::new(csrf, fields), answered),
        Err(faults) => (Form::refused(csrf, fields, faults), None),
    };
    let (heading, rest, answer) = match answered {
        Some((Compared { heading, rest }, answer)) => (heading, rest, Some(answer)),
        None if choices.usual.is_none() => (
            "There is no bundle to explain yet.".to_owned(),
            String::new(),
            None,
        ),
        None => ("Where would a request go?".to_owned(), String::new(), None),
    };
    let bundles = choices.options();
    let none = (String::new(), "No other bundle".to_owned());
    let mut response = shown(&ExplainPage {
        frame,
        project,
        heading,
        rest,
        form,
        methods: METHODS
            .map(|name| (name.to_owned(), name.to_owned()))
            .to_vec(),
        others: [none].into_iter().chain(bundles.iter().cloned()).collect(),
        bundles,
        has_further,
        may_write: caller.may(Access::WRITE_BUNDLES, tenant),
        answer,
    });
    if is_refused {
        *response.status_mut() = StatusCode::UNPROCESSABLE_ENTITY;
    }
    Ok(response)
}

/// Fields with default values.
fn filled(fields: &Fields, choices: &Choices) -> Fields {
    let usual = choices.usual.map(|id| id.to_string()).unwrap_or_default();
    let or = |name: &str, usual: &str| fields.given(name).unwrap_or(usual).to_owned();
    let (method, bundle) = (or("method", "GET"), or("bundle", &usual));
    let kept =
        ["url", "with", "headers", "client_ip", "listener"].map(|name| (name, fields.get(name)));
    let own = [("method", method.as_str()), ("bundle", bundle.as_str())];
    let all: Vec<(&str, &str)> = own.into_iter().chain(kept).collect();
    Fields::filled(&all)
}

/// The decision with its heading; `Err` for invalid fields.
async fn answer(
    ui: &Ui,
    caller: &Caller,
    project: ProjectId,
    choices: &Choices,
    fields: &Fields,
) -> Result<Result<Option<(Compared, Answer)>, Faults>, Failure> {
    let question = match question(fields) {
        Ok(question) => question,
        Err(faults) => return Ok(Err(faults)),
    };
    let Ok(id) = fields.get("bundle").parse::<BundleId>() else {
        return Err(Failure::not_found());
    };
    let own = match explained(ui, caller, project, id, question.clone()).await? {
        Ok(own) => own,
        Err(faults) => return Ok(Err(faults)),
    };
    let with = fields.get("with").parse::<BundleId>().ok();
    let other = match with.filter(|with| *with != id) {
        None => None,
        Some(with) => match explained(ui, caller, project, with, question).await? {
            Ok(document) => Some((with, document)),
            Err(faults) => return Ok(Err(faults.renamed("bundle", "with"))),
        },
    };
    let name = choices.name(ui, caller, project, id).await?;
    let mut routes = vec![Routes::new(
        "why",
        format!("Why this route, in {name}"),
        &own,
    )];
    let (mut changed, mut named) = (Vec::new(), None);
    let compared = match &other {
        None => Compared::alone(&own),
        Some((with, document)) => {
            let other_name = choices.name(ui, caller, project, *with).await?;
            if document.reasons() != own.reasons() {
                let title = format!("Why this route, in {other_name}");
                routes.push(Routes::new("why-other", title, document));
            }
            changed = changes(&own, document);
            let compared = compare(&own, &other_name, document, &changed);
            let page = format!("/projects/{project}/bundles/{with}/diff?before={id}");
            named = Some((other_name, page));
            compared
        }
    };
    let answer = Answer {
        name,
        other: named,
        steps: steps(&own, other.as_ref().map(|(_, document)| document), &changed),
        routes,
        changes: changed,
        settings: own.settings.into_iter().take(MAX_SETTINGS).collect(),
    };
    Ok(Ok(Some((compared, answer))))
}

async fn explained(
    ui: &Ui,
    caller: &Caller,
    project: ProjectId,
    id: BundleId,
    question: RequestQuestion,
) -> Result<Result<Document, Faults>, Failure> {
    match ui
        .app
        .explain_request(&caller.call, project, id, question)
        .await
    {
        Ok(value) => Document::read(value).map(Ok),
        Err(error) => Ok(Err(Faults::from_error(error)?)),
    }
}

fn question(fields: &Fields) -> Result<RequestQuestion, Faults> {
    let lines = fields.get("headers").lines().map(str::trim);
    let headers: Result<Vec<(String, String)>, Faults> = lines
        .filter(|line| !line.is_empty())
        .map(|line| {
            let (name, value) = line.split_once(':').ok_or_else(|| {
                let reason = format!("has the line {line:?}, which is not Name: value");
                Faults::from_field("headers", reason)
            })?;
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        })
        .collect();
    let client_ip = fields.given("client_ip").map(str::parse::<IpAddr>);
    let client_ip = client_ip.transpose();
    Ok(RequestQuestion {
        method: fields.get("method").to_owned(),
        url: fields.get("url").trim().to_owned(),
        headers: headers?,
        client_ip: client_ip
            .map_err(|_| Faults::from_field("client_ip", "is not an IP address"))?,
        listener: fields.given("listener").map(str::to_owned),
    })
}

impl Routes {
    fn new(id: &'static str, title: String, document: &Document) -> Self {
        let mut rows = document.reasons();
        let more = rows.len().saturating_sub(MAX_ROUTES);
        rows.truncate(MAX_ROUTES);
        Self {
            id,
            title,
            rows,
            more,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_line_by_line_and_a_wrong_one_is_named() {
        let fields = Fields::filled(&[
            ("url", " /a "),
            ("headers", "X-Env: beta\r\n\r\nHost: a:80"),
            ("client_ip", "10.0.0.1"),
        ]);
        let read = question(&fields).unwrap();
        assert_eq!(read.url, "/a");
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            read.headers,
            [header("X-Env", "beta"), header("Host", "a:80")]
        );
        for (name, value) in [("headers", "beta"), ("client_ip", "here")] {
            let faults = question(&Fields::filled(&[(name, value)])).unwrap_err();
            let first = faults.iter().next().unwrap();
            assert_eq!(first.0, name);
        }
    }
}
