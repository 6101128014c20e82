//! Replay of recorded requests under two bundles: the kinds with different decisions, and their
//! number of requests.

use crate::bundle::choices::Choices;
use crate::bundle::difference::{ComparedBundles, explaining};
use crate::frame::form::{Faults, Form};
use crate::frame::{Frame, NavEntry, show as shown};
use crate::request::failure::Failure;
use crate::request::fields::Fields;
use crate::request::path::Path;
use crate::request::visit::Caller;
use crate::ui::Ui;
use crate::view::component::{Bar, Tone, bar};
use crate::view::phrase::{count, number, pick};
use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use control_app::{KindMoved, Replayed};
use control_domain::Access;
use control_wire::{BundleId, ProjectId};
use std::sync::Arc;

/// Maximum size of the form: a URL-encoded recording. Larger ones need `controld ctl`.
pub(crate) const MAX_FORM_BYTES: usize = 2 * 1024 * 1024;
/// Maximum number of kinds shown.
const MAX_KINDS: usize = 100;

#[derive(Template)]
#[template(path = "replay.html")]
struct ReplayPage {
    frame: Frame,
    project: ProjectId,
    heading: String,
    rest: String,
    form: Form,
    bundles: Vec<(String, String)>,
    may_write: bool,
    answer: Option<Answer>,
}

/// Decisions of both bundles.
struct Answer {
    before: String,
    after: String,
    kinds: Vec<KindRow>,
    /// Sentence on kinds that are not shown; empty if all are.
    more: String,
    /// Sentences on limits of the result.
    limits: Vec<String>,
}

/// A kind: requests with the same pair of different decisions.
struct KindRow {
    requests: String,
    share: String,
    bar: Bar,
    example: String,
    /// Link to the explanation of the example under both bundles.
    page: String,
    before: String,
    after: String,
}

/// Shows the form; `?before=` and `?after=` preset the bundles.
pub(crate) async fn show(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(project): Path<ProjectId>,
) -> Result<Response, Failure> {
    let fields = caller.visit.query.clone().without("recording");
    respond(&ui, &caller, project, fields, false).await
}

/// Shows the decisions on the form's recording.
pub(crate) async fn send(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(project): Path<ProjectId>,
    fields: Fields,
) -> Result<Response, Failure> {
    respond(&ui, &caller, project, fields, true).await
}

async fn respond(
    ui: &Ui,
    caller: &Caller,
    project: ProjectId,
    fields: Fields,
    is_sent: bool,
) -> Result<Response, Failure> {
    let title = "Replay requests";
    let frame = Frame::project(ui, caller, project, NavEntry::Replay.titled(title)).await?;
    let choices = Choices::read(
        ui,
        caller,
        project,
        [fields.get("before"), fields.get("after")],
    )
    .await?;
    let fields = filled(&fields, &choices);
    let asked = if is_sent && choices.usual.is_some() {
        answer(ui, caller, project, &choices, &fields).await?
    } else {
        Ok(None)
    };
    let tenant = ui.app.project(&caller.call, project).await?.value.tenant();
    let is_refused = asked.is_err();
    let csrf = &caller.visit.csrf;
    let (form, answered) = match asked {
        Ok(answered) => (Form::new(csrf, fields), answered),
        Err(faults) => (Form::refused(csrf, fields, faults), None),
    };
    let (heading, rest, answer) = match answered {
        Some(answered) => (answered.heading, answered.rest, Some(answered.answer)),
        None => (
            opening(choices.usual.is_some()).to_owned(),
            String::new(),
            None,
        ),
    };
    let mut response = shown(&ReplayPage {
        frame,
        project,
        heading,
        rest,
        form,
        bundles: choices.options(),
        may_write: caller.may(Access::WRITE_BUNDLES, tenant),
        answer,
    });
    if is_refused {
        *response.status_mut() = StatusCode::UNPROCESSABLE_ENTITY;
    }
    Ok(response)
}

/// Heading before a replay.
fn opening(has_bundles: bool) -> &'static str {
    if has_bundles {
        "Which recorded requests would another bundle decide differently?"
    } else {
        "There is no bundle to replay requests through yet."
    }
}

/// Fields with default values.
fn filled(fields: &Fields, choices: &Choices) -> Fields {
    let or = |name: &str, usual: Option<BundleId>| match fields.given(name) {
        Some(given) => given.to_owned(),
        None => usual.map(|id| id.to_string()).unwrap_or_default(),
    };
    Fields::filled(&[
        ("before", &or("before", choices.usual)),
        ("after", &or("after", choices.next)),
        ("recording", fields.get("recording")),
    ])
}

/// Decisions, with the heading and the sentence below it.
struct Answered {
    heading: String,
    rest: String,
    answer: Answer,
}

/// Replays the recording; `Err` for invalid fields.
async fn answer(
    ui: &Ui,
    caller: &Caller,
    project: ProjectId,
    choices: &Choices,
    fields: &Fields,
) -> Result<Result<Option<Answered>, Faults>, Failure> {
    let bundle = |name: &str| {
        let id = fields.get(name).parse::<BundleId>();
        id.map_err(|_| Failure::not_found())
    };
    let (before, after) = (bundle("before")?, bundle("after")?);
    if fields.given("recording").is_none() {
        let reason = "is empty: paste the lines of a recording";
        return Ok(Err(Faults::from_field("recording", reason)));
    }
    let recording = fields.get("recording").to_owned();
    let (app, call) = (&ui.app, &caller.call);
    let replayed = app.replay_requests(call, project, after, before, recording);
    let replayed = match replayed.await {
        Ok(replayed) => replayed,
        Err(error) => return Ok(Err(Faults::from_error(error)?)),
    };
    let name_before = choices.name(ui, caller, project, before).await?;
    let name_after = choices.name(ui, caller, project, after).await?;
    let shown = replayed.differences.iter().take(MAX_KINDS);
    let bundles = ComparedBundles {
        project,
        before,
        after,
    };
    let rows = shown.map(|kind| KindRow::new(kind, replayed.requests, bundles));
    let kinds: Vec<KindRow> = rows.collect();
    let left_out = differing(&replayed) - signed(kinds.len());
    let answer = Answer {
        limits: limits(&replayed, &name_before),
        before: name_before,
        after: name_after,
        kinds,
        more: if left_out > 0 {
            number(left_out)
        } else {
            String::new()
        },
    };
    Ok(Ok(Some(Answered {
        heading: heading(&replayed),
        rest: subheading(&replayed),
        answer,
    })))
}

/// Number of kinds with different decisions.
fn differing(replayed: &Replayed) -> i64 {
    signed(replayed.differences.len() + replayed.omitted_differences)
}

fn heading(replayed: &Replayed) -> String {
    let (kinds, differing) = (signed(replayed.kinds), differing(replayed));
    match (kinds, differing) {
        (1, 0) => "The one kind of request is decided as before.".to_owned(),
        (kinds, 0) => format!(
            "All {} kinds of request are decided as before.",
            number(kinds)
        ),
        (1, _) => "The one kind of request is decided differently.".to_owned(),
        (kinds, differing) => format!(
            "Of {} kinds of request, {} {} decided differently.",
            number(kinds),
            number(differing),
            pick(differing, "is", "are")
        ),
    }
}

fn subheading(replayed: &Replayed) -> String {
    let requests = count(signed(replayed.requests), "recorded request");
    match replayed.different {
        0 => format!("Replayed: {requests}."),
        different => format!(
            "These are {} of {requests}, {}.",
            number(signed(different)),
            percent(different, replayed.requests)
        ),
    }
}

fn limits(replayed: &Replayed, before: &str) -> Vec<String> {
    let mut limits = Vec::new();
    let skipped = signed(replayed.skipped_lines);
    if skipped > 0 {
        let is = pick(skipped, "is not a request", "are not requests");
        limits.push(format!("{} of the recording {is}.", count(skipped, "line")));
    }
    let unlike = signed(replayed.unlike_recorded);
    if let Some(example) = replayed.unlike_example.as_ref().filter(|_| unlike > 0) {
        let was = pick(unlike, "was", "were");
        let requests = count(unlike, "request");
        limits.push(format!(
            "{requests} {was} recorded with another route than {before} selects, such as {example}: another bundle was \
             active."
        ));
    }
    limits
}

impl KindRow {
    fn new(kind: &KindMoved, all: u64, bundles: ComparedBundles) -> Self {
        let KindMoved {
            before,
            after,
            requests,
            example,
        } = kind;
        let share = percent(*requests, all);
        let others = signed(all.saturating_sub(*requests));
        Self {
            requests: number(signed(*requests)),
            bar: bar(
                format!("{share} of all recorded requests"),
                &[(Tone::Warn, signed(*requests)), (Tone::Off, others)],
            ),
            share,
            page: explained(example, bundles),
            example: example.clone(),
            before: before.clone(),
            after: after.clone(),
        }
    }
}

/// Link to the explanation of `example`: method, space, host and path.
fn explained(example: &str, bundles: ComparedBundles) -> String {
    let (method, rest) = example.split_once(' ').unwrap_or(("GET", example));
    let scheme = if rest.starts_with('/') { "" } else { "http://" };
    explaining(&format!("{method} {scheme}{rest}"), bundles)
}

/// Percentage such as `12 %`, or `less than 1 %`.
fn percent(part: u64, whole: u64) -> String {
    let share = u128::from(part) * 100 / u128::from(whole.max(1));
    if share == 0 {
        "less than 1 %".to_owned()
    } else {
        format!("{share} %")
    }
}

fn signed<T: TryInto<i64>>(number: T) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn replayed(kinds: usize, differing: usize) -> Replayed {
        let kind = KindMoved {
            before: "a (upstream a)".to_owned(),
            after: "b (upstream b)".to_owned(),
            requests: 3,
            example: "GET shop.test/x".to_owned(),
        };
        Replayed {
            requests: 40_000,
            different: 3 * differing as u64,
            kinds,
            differences: vec![kind; differing],
            ..Replayed::default()
        }
    }

    #[test]
    fn the_heading_says_how_many_kinds_are_decided_otherwise() {
        for (kinds, differing, expected) in [
            (1, 0, "The one kind of request is decided as before."),
            (7, 0, "All 7 kinds of request are decided as before."),
            (1, 1, "The one kind of request is decided differently."),
            (7, 1, "Of 7 kinds of request, 1 is decided differently."),
            (
                40,
                12,
                "Of 40 kinds of request, 12 are decided differently.",
            ),
        ] {
            assert_eq!(heading(&replayed(kinds, differing)), expected);
        }
        let all = replayed(40, 12);
        let below = "These are 36 of 40\u{a0}000 recorded requests, less than 1 %.";
        assert_eq!(subheading(&all), below);
        assert_eq!(percent(1, 3), "33 %");
    }

    #[test]
    fn lines_without_a_request_and_another_active_bundle_are_named() {
        let found = Replayed {
            skipped_lines: 2,
            unlike_recorded: 1,
            unlike_example: Some("GET a/x, now rest (upstream u)".to_owned()),
            ..replayed(1, 0)
        };
        let limits = limits(&found, "spring");
        assert_eq!(limits[0], "2 lines of the recording are not requests.");
        assert!(
            limits[1].starts_with("1 request was recorded with another route"),
            "{}",
            limits[1]
        );
    }

    #[test]
    fn an_example_leads_to_its_explanation() {
        let bundles = ComparedBundles {
            project: ProjectId(Uuid::nil()),
            before: BundleId(Uuid::nil()),
            after: BundleId(Uuid::max()),
        };
        let page = explained("POST shop.test/a b", bundles);
        assert!(
            page.contains("explain?method=POST&url=http%3A%2F%2Fshop.test%2Fa+b&bundle=0000"),
            "{page}"
        );
        assert!(explained("GET /x", bundles).contains("url=%2Fx&"));
    }
}
