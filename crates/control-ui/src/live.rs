//! Event streams of live pages. An event only says that something changed in the user's
//! organizations; the page then reloads, with a complete admission.

use crate::request::failure::Failure;
use crate::request::visit::Caller;
use crate::ui::Ui;
use crate::ui::live_streams::StreamPermit;
use axum::extract::State;
use axum::http::HeaderName;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use control_app::{App, ChangeScope, Error, Waiter, Wake};
use control_domain::{Actor, Refusal};
use control_wire::SessionId;
use futures_util::stream;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// Minimum time between two events of a stream, which limits the rate of reloads.
const MIN_EVENT_INTERVAL: Duration = Duration::from_secs(2);
/// Interval of events for pages with rollouts: their progress causes no audit entries.
const ROLLOUT_EVENT_INTERVAL: Duration = Duration::from_secs(5);
/// Interval of events for other pages.
const DEFAULT_EVENT_INTERVAL: Duration = Duration::from_secs(30);
/// Maximum number of events per stream; then the browser reconnects.
const MAX_EVENTS: u32 = 150;
/// Interval of comments that keep proxies from closing an idle stream.
const KEEP_ALIVE: Duration = Duration::from_secs(20);

/// Event stream of one page.
struct Stream {
    app: Arc<App>,
    session: SessionId,
    waiter: Waiter,
    limit: Duration,
    sent: u32,
    _permit: StreamPermit,
}

/// Serves the events of a page; `?pulse` for pages with nodes' reports.
pub(crate) async fn events(State(ui): State<Arc<Ui>>, caller: Caller) -> Result<Response, Failure> {
    let actor = &caller.call.actor;
    let Actor::User { id, session, .. } = actor else {
        return Err(Refusal::WrongCredential.into());
    };
    let permit = ui.streams.acquire(*id);
    let permit = permit.ok_or_else(|| Failure::from(Error::TooManyWaiters))?;
    let has_pulse = caller.visit.path.ends_with("?pulse");
    let stream = Stream {
        app: Arc::clone(&ui.app),
        session: *session,
        waiter: ui.app.changes.subscribe(ChangeScope::from(actor)),
        limit: if has_pulse {
            ROLLOUT_EVENT_INTERVAL
        } else {
            DEFAULT_EVENT_INTERVAL
        },
        sent: 0,
        _permit: permit,
    };
    let events = stream::unfold(stream, next);
    let events = Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE));
    // Tells proxies to pass each event on at once.
    let unbuffered = (HeaderName::from_static("x-accel-buffering"), "no");
    Ok(([unbuffered], events).into_response())
}

async fn next(mut stream: Stream) -> Option<(Result<Event, Infallible>, Stream)> {
    if MAX_EVENTS <= stream.sent || stream.waiter.wait(stream.limit).await == Wake::Closed {
        return None;
    }
    sleep(MIN_EVENT_INTERVAL).await;
    // The session may have ended, or its organizations changed. When a stream ends, the browser
    // reconnects.
    let actor = stream.app.actor_of_live_page(stream.session).await.ok()?;
    stream.waiter.change_scope(ChangeScope::from(&actor));
    stream.sent += 1;
    Some((Ok(Event::default().data("changed")), stream))
}
