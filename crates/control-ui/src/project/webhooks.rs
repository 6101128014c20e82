//! List of a project's webhooks: events, URLs, results of recent deliveries.

use crate::frame::confirmation::confirmation;
use crate::frame::form::{Faults, Form};
use crate::frame::{Frame, NavEntry, show as shown, unprocessable};
use crate::request::failure::Failure;
use crate::request::fields::Fields;
use crate::request::note::Note;
use crate::request::path::Path;
use crate::request::visit::Caller;
use crate::ui::Ui;
use crate::view::component::{NextPage, RelativeTime, Status, Tone, when};
use crate::view::confirm::Confirm;
use crate::view::link::Link;
use crate::view::listing;
use crate::view::phrase::count;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use control_app::{ListFilter, PageOrder};
use control_domain::{
    Webhook, WebhookDelivery, WebhookDeliveryState, WebhookEvent, WebhookSettings,
};
use control_wire::{ProjectId, WebhookId};
use jiff::Timestamp;
use std::sync::Arc;

/// Maximum number of webhooks, and of deliveries, per page.
const PAGE_ROWS: usize = 50;

#[derive(Template)]
#[template(path = "webhooks.html")]
struct WebhooksPage {
    frame: Frame,
    project: ProjectId,
    heading: String,
    rows: Vec<Row>,
    more: NextPage,
    form: Form,
    events: Vec<(&'static str, &'static str)>,
}

#[derive(Template)]
#[template(path = "webhook.html")]
struct WebhookPage {
    frame: Frame,
    project: ProjectId,
    id: WebhookId,
    csrf: String,
    version: i64,
    name: String,
    heading: String,
    url: String,
    events: Vec<&'static str>,
    enabled: bool,
    deliveries: Vec<DeliveryRow>,
}

#[derive(Template)]
#[template(path = "webhook_secret.html")]
struct SecretPage {
    frame: Frame,
    project: ProjectId,
    id: WebhookId,
    name: String,
    heading: String,
    secret: String,
}

struct Row {
    id: WebhookId,
    name: String,
    url: String,
    status: Status,
    events: Vec<&'static str>,
}

struct DeliveryRow {
    event: String,
    status: Status,
    attempts: i64,
    answer: String,
    at: RelativeTime,
    next: Option<RelativeTime>,
}

/// Texts of a confirmation page.
struct Question {
    /// Last segment of the path that the confirmation is posted to.
    command: &'static str,
    /// Start of the heading, followed by the webhook's name.
    verb: &'static str,
    effect: &'static str,
    button: &'static str,
}

/// Shows the webhooks, and the form for a new one.
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
    let frame = Frame::project(ui, caller, project, NavEntry::Webhooks.titled("Webhooks")).await?;
    let after = caller.visit.query.get("after");
    let page = listing::page(after, PageOrder::Newest, PAGE_ROWS);
    let mut found = ui
        .app
        .webhooks(&caller.call, project, &ListFilter::default(), page)
        .await?;
    let last = listing::cut(&mut found, PAGE_ROWS, |found| found.value.id.0);
    let rows: Vec<Row> = found.into_iter().map(|found| row(found.value)).collect();
    Ok(shown(&WebhooksPage {
        frame,
        project,
        heading: heading(&rows),
        rows,
        more: listing::next(last, "Show older webhooks"),
        form,
        events: WebhookEvent::ALL
            .iter()
            .map(|event| (event.name(), words(*event)))
            .collect(),
    }))
}

fn row(webhook: Webhook) -> Row {
    Row {
        id: webhook.id,
        name: webhook.name.to_string(),
        status: state(webhook.enabled),
        url: webhook.url,
        events: webhook.events.iter().map(|event| event.name()).collect(),
    }
}

fn state(enabled: bool) -> Status {
    if enabled {
        Status::new(Tone::Ok, "ok", "Sends")
    } else {
        Status::new(Tone::Off, "off", "Switched off")
    }
}

fn heading(rows: &[Row]) -> String {
    match i64::try_from(rows.len()).unwrap_or(i64::MAX) {
        0 => "No event is sent anywhere.".to_owned(),
        number => format!("Events are sent to {}.", count(number, "receiver")),
    }
}

fn words(event: WebhookEvent) -> &'static str {
    match event {
        WebhookEvent::RolloutAwaitingApproval => "A rollout waits for approval",
        WebhookEvent::RolloutStopped => "A rollout has stopped",
        WebhookEvent::RolloutRolledBack => "A rollout has rolled back",
        WebhookEvent::RolloutCompleted => "A rollout is complete",
        WebhookEvent::DriftOpened => "A node differs from its assigned bundle",
        WebhookEvent::NodeSilent => "Nodes have gone offline (node.silent)",
    }
}

/// Creates a webhook, and shows its secret once.
pub(crate) async fn create(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(project): Path<ProjectId>,
    fields: Fields,
) -> Result<Response, Failure> {
    let faults = match read(&fields) {
        Err(faults) => faults,
        Ok(settings) => match ui.app.create_webhook(&caller.call, project, settings).await {
            Ok((webhook, secret)) => {
                let title = NavEntry::Webhooks.titled("New webhook");
                let name = webhook.value.name.to_string();
                return Ok(shown(&SecretPage {
                    frame: Frame::project(&ui, &caller, project, title).await?,
                    project,
                    id: webhook.value.id,
                    heading: format!("Webhook {name} is created."),
                    name,
                    secret: secret.to_string(),
                }));
            }
            Err(error) => Faults::from_error(error)?,
        },
    };
    let form = Form::refused(&caller.visit.csrf, fields, faults);
    respond(&ui, &caller, project, form)
        .await
        .map(unprocessable)
}

fn read(fields: &Fields) -> Result<WebhookSettings, Faults> {
    let events = fields.all("events").map(WebhookEvent::from_name);
    let events: Option<_> = events.collect();
    Ok(WebhookSettings {
        name: fields.get("name").trim().to_owned(),
        url: fields.get("url").trim().to_owned(),
        events: events
            .ok_or_else(|| Faults::from_field("events", "has a value that is not a choice"))?,
        enabled: true,
    })
}

/// Shows a webhook with its recent deliveries.
pub(crate) async fn show(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path((project, id)): Path<(ProjectId, WebhookId)>,
) -> Result<Response, Failure> {
    let found = ui.app.webhook(&caller.call, project, id).await?;
    let (webhook, version) = (found.value, found.version);
    let newest = listing::page("", PageOrder::Newest, PAGE_ROWS);
    let mut found = ui
        .app
        .webhook_deliveries(&caller.call, project, id, newest)
        .await?;
    found.truncate(PAGE_ROWS);
    let now = caller.visit.now;
    let name = webhook.name.to_string();
    Ok(shown(&WebhookPage {
        frame: Frame::project(&ui, &caller, project, NavEntry::Webhooks.titled(&name)).await?,
        project,
        id,
        csrf: caller.visit.csrf.clone(),
        version,
        heading: outcome(&name, webhook.enabled, &found),
        name,
        url: webhook.url,
        events: webhook.events.iter().map(|event| event.name()).collect(),
        enabled: webhook.enabled,
        deliveries: found.iter().map(|found| delivery(found, now)).collect(),
    }))
}

fn outcome(name: &str, enabled: bool, deliveries: &[WebhookDelivery]) -> String {
    let in_state = |state| deliveries.iter().filter(|own| own.state == state).count();
    let (waiting, failed) = (
        in_state(WebhookDeliveryState::Pending),
        in_state(WebhookDeliveryState::Failed),
    );
    let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    match (enabled, waiting, failed) {
        (false, ..) => format!("{name} is switched off."),
        (true, 0, 0) if deliveries.is_empty() => format!("{name} has received nothing yet."),
        (true, 0, 0) => format!("{name} has received all its events."),
        (true, 0, failed) => {
            format!("{name} did not receive {}.", count(number(failed), "event"))
        }
        (true, waiting, _) => format!("{} for {name}.", {
            let events = count(number(waiting), "event");
            if waiting == 1 {
                format!("{events} waits")
            } else {
                format!("{events} wait")
            }
        }),
    }
}

fn delivery(delivery: &WebhookDelivery, now: Timestamp) -> DeliveryRow {
    let (tone, icon, word) = match delivery.state {
        WebhookDeliveryState::Pending if delivery.attempts == 0 => (Tone::Busy, "wait", "Waits"),
        WebhookDeliveryState::Pending => (Tone::Warn, "wait", "Is tried again"),
        WebhookDeliveryState::Delivered => (Tone::Ok, "ok", "Received"),
        WebhookDeliveryState::Failed => (Tone::Bad, "bad", "Not received"),
    };
    let status = delivery.last_status.map(|status| status.to_string());
    let is_pending = delivery.state == WebhookDeliveryState::Pending;
    DeliveryRow {
        event: delivery.event.clone(),
        status: Status::new(tone, icon, word),
        attempts: delivery.attempts,
        answer: delivery.last_error.clone().or(status).unwrap_or_default(),
        at: when(delivery.created_at, now),
        next: is_pending.then(|| when(delivery.next_at, now)),
    }
}

/// Enables or disables a webhook.
pub(crate) async fn switch(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path((project, id)): Path<(ProjectId, WebhookId)>,
    fields: Fields,
) -> Result<Response, Failure> {
    let webhook = ui.app.webhook(&caller.call, project, id).await?.value;
    let enabled = fields.get("enabled") == "yes";
    let settings = WebhookSettings {
        name: webhook.name.to_string(),
        url: webhook.url,
        events: webhook.events,
        enabled,
    };
    let note = match ui
        .app
        .update_webhook(&caller.versioned(&fields), project, id, settings)
        .await
    {
        Ok(_) if enabled => Note::good("New and waiting events are sent."),
        Ok(_) => Note::good("No event is sent until the webhook is switched on."),
        Err(error) => Faults::from_error(error)?.note(),
    };
    Ok(note.at(&own_path(project, id), ui.cookie))
}

/// Queues a test event.
pub(crate) async fn test(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path((project, id)): Path<(ProjectId, WebhookId)>,
) -> Result<Response, Failure> {
    let note = match ui.app.test_webhook(&caller.call, project, id).await {
        Ok(_) => Note::good("A test was sent. Load the page again to see the response."),
        Err(error) => Faults::from_error(error)?.note(),
    };
    Ok(note.at(&own_path(project, id), ui.cookie))
}

/// The confirmation page of replacing the secret.
pub(crate) async fn ask_secret(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path((project, id)): Path<(ProjectId, WebhookId)>,
) -> Result<Response, Failure> {
    let question = Question {
        command: "rotate-secret",
        verb: "Another secret for",
        effect: "The current secret is no longer used: the receiver refuses events until it has the new one. Those are retried.",
        button: "Create another secret",
    };
    ask(&ui, &caller, project, id, question).await
}

/// Replaces the secret, and shows the new one once.
pub(crate) async fn rotate_secret(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path((project, id)): Path<(ProjectId, WebhookId)>,
) -> Result<Response, Failure> {
    match ui
        .app
        .rotate_webhook_secret(&caller.call, project, id)
        .await
    {
        Ok((webhook, secret)) => {
            let name = webhook.value.name.to_string();
            let title = NavEntry::Webhooks.titled("New secret");
            Ok(shown(&SecretPage {
                frame: Frame::project(&ui, &caller, project, title).await?,
                project,
                id,
                heading: format!("{name} has a new secret."),
                name,
                secret: secret.to_string(),
            }))
        }
        Err(error) => {
            let note = Faults::from_error(error)?.note();
            Ok(note.at(&own_path(project, id), ui.cookie))
        }
    }
}

/// The confirmation page of deleting the webhook.
pub(crate) async fn ask_deletion(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path((project, id)): Path<(ProjectId, WebhookId)>,
) -> Result<Response, Failure> {
    let question = Question {
        command: "delete",
        verb: "Delete",
        effect: "Events waiting for it are not sent.",
        button: "Delete the webhook",
    };
    ask(&ui, &caller, project, id, question).await
}

async fn ask(
    ui: &Ui,
    caller: &Caller,
    project: ProjectId,
    id: WebhookId,
    question: Question,
) -> Result<Response, Failure> {
    let Question {
        command,
        verb,
        effect,
        button,
    } = question;
    let webhook = ui.app.webhook(&caller.call, project, id).await?.value;
    let confirm = Confirm {
        over: Link {
            text: "Webhooks".to_owned(),
            path: format!("/projects/{project}/webhooks"),
        },
        heading: format!("{verb} {}?", webhook.name),
        effects: vec![effect.to_owned()],
        action: format!("{}/{command}", own_path(project, id)),
        back: own_path(project, id),
        csrf: caller.visit.csrf.clone(),
        button: button.to_owned(),
    };
    let title = NavEntry::Webhooks.titled("Webhook");
    let frame = Frame::project(ui, caller, project, title).await?;
    Ok(confirmation(frame, confirm))
}

/// Deletes a webhook.
pub(crate) async fn delete(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path((project, id)): Path<(ProjectId, WebhookId)>,
) -> Result<Response, Failure> {
    let (note, path) = match ui.app.delete_webhook(&caller.call, project, id).await {
        Ok(()) => (
            Note::good("The webhook is deleted."),
            format!("/projects/{project}/webhooks"),
        ),
        Err(error) => (Faults::from_error(error)?.note(), own_path(project, id)),
    };
    Ok(note.at(&path, ui.cookie))
}

fn own_path(project: ProjectId, id: WebhookId) -> String {
    format!("/projects/{project}/webhooks/{id}")
}
