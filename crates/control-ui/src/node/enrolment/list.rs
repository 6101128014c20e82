//! List of a project's enrolment tokens.

use crate::frame::form::Faults;
use crate::frame::{Frame, NavEntry, foot, show};
use crate::request::failure::Failure;
use crate::request::note::Note;
use crate::request::path::Path;
use crate::request::visit::Caller;
use crate::ui::Ui;
use crate::view::component::{NextPage, RelativeTime, Status, Tone, when};
use crate::view::listing;
use crate::view::phrase::{count, number, pick};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use control_app::{ListFilter, PageOrder};
use control_domain::{Access, EnrolmentTokenState};
use control_wire::{EnrolmentTokenId, ProjectId};
use std::sync::Arc;

/// Maximum number of tokens shown.
const PAGE_ROWS: usize = 200;

#[derive(Template)]
#[template(path = "enrolment_tokens.html")]
struct TokensPage {
    frame: Frame,
    project: ProjectId,
    csrf: String,
    heading: String,
    rows: Vec<Row>,
    more: NextPage,
    may_write: bool,
    foot: Option<String>,
}

struct Row {
    id: EnrolmentTokenId,
    name: String,
    status: Status,
    uses: String,
    labels: Vec<String>,
    ends: RelativeTime,
    is_active: bool,
}

/// Shows the tokens, active ones first.
pub(crate) async fn list(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(project): Path<ProjectId>,
) -> Result<Response, Failure> {
    let title = NavEntry::EnrolmentTokens.titled("Enrolment tokens");
    let frame = Frame::project(&ui, &caller, project, title).await?;
    let (app, call, now) = (&ui.app, &caller.call, caller.visit.now);
    let page = listing::page(
        caller.visit.query.get("after"),
        PageOrder::Newest,
        PAGE_ROWS,
    );
    let mut found = app
        .enrolment_tokens(call, project, &ListFilter::default(), page)
        .await?;
    let last = listing::cut(&mut found, PAGE_ROWS, |found| found.value.id.0);
    let rows = found.iter().map(|found| {
        let token = &found.value;
        let state = token.state(now);
        let labels = token.labels.pairs().iter();
        Row {
            id: token.id,
            name: token.name.to_string(),
            status: status(state),
            uses: format!("{} of {}", number(token.uses), number(token.max_uses)),
            labels: labels
                .map(|(name, value)| format!("{name}:{value}"))
                .collect(),
            ends: when(token.expires_at, now),
            is_active: state == EnrolmentTokenState::Active,
        }
    });
    let mut rows: Vec<Row> = rows.collect();
    rows.sort_by_key(|row| !row.is_active);
    let active = found.iter().map(|found| &found.value);
    let active = active.filter(|token| token.state(now) == EnrolmentTokenState::Active);
    let left: Vec<i64> = active.map(|token| token.max_uses - token.uses).collect();
    let tenant = app.project(call, project).await?.value.tenant();
    Ok(show(&TokensPage {
        frame,
        project,
        csrf: caller.visit.csrf.clone(),
        heading: heading(&left),
        rows,
        more: listing::next(last, "Show older tokens"),
        may_write: caller.may(Access::WRITE_NODES, tenant),
        foot: foot(
            &caller,
            Access::WRITE_NODES,
            tenant,
            "create and revoke enrolment tokens",
        ),
    }))
}

fn status(state: EnrolmentTokenState) -> Status {
    let (tone, icon, word) = match state {
        EnrolmentTokenState::Active => (Tone::Ok, "ok", "Admits nodes"),
        EnrolmentTokenState::UsedUp => (Tone::Off, "off", "Used up"),
        EnrolmentTokenState::Expired => (Tone::Off, "off", "Ended"),
        EnrolmentTokenState::Revoked => (Tone::Off, "off", "Revoked"),
    };
    Status::new(tone, icon, word)
}

/// Heading; `left` has the remaining uses of each active token.
fn heading(left: &[i64]) -> String {
    let tokens = i64::try_from(left.len()).unwrap_or(i64::MAX);
    if tokens == 0 {
        return "No token admits nodes now.".to_owned();
    }
    format!(
        "{} {} {} more.",
        count(tokens, "token"),
        pick(tokens, "admits", "admit"),
        count(left.iter().sum(), "node")
    )
}

/// Revokes a token.
pub(crate) async fn revoke(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path((project, id)): Path<(ProjectId, EnrolmentTokenId)>,
) -> Result<Response, Failure> {
    let note = match ui
        .app
        .revoke_enrolment_token(&caller.call, project, id)
        .await
    {
        Ok(revoked) => Note::good(format!(
            "Token {} admits no more nodes. Nodes that it admitted stay.",
            revoked.value.name
        )),
        Err(error) => Faults::from_error(error)?.note(),
    };
    Ok(note.at(&format!("/projects/{project}/enrolment-tokens"), ui.cookie))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heading_says_how_many_nodes_may_come() {
        assert_eq!(heading(&[]), "No token admits nodes now.");
        assert_eq!(heading(&[1]), "1 token admits 1 node more.");
        assert_eq!(heading(&[1, 10]), "2 tokens admit 11 nodes more.");
    }
}
