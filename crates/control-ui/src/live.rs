//! Events for pages that are kept live. They only signal a change in the user's organizations: the page reloads itself,
//! with full admission.

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

/// Changes within this time are one event: it bounds the rate of reloads of a page.
const QUIET: Duration = Duration::from_secs(2);
/// Interval for rollouts, which change by nodes' reports without audit entries.
const PULSE: Duration = Duration::from_secs(5);
/// Interval of refreshes without a pulse.
const IDLE: Duration = Duration::from_secs(30);
/// Events of one stream, at least two seconds apart: then the browser reconnects.
const MAX_EVENTS: u32 = 150;
/// Keeps proxies from closing a stream without events.
const KEEP_ALIVE: Duration = Duration::from_secs(20);

/// A stream of one page.
struct Stream {
    app: Arc<App>,
    session: SessionId,
    waiter: Waiter,
    limit: Duration,
    sent: u32,
    _permit: StreamPermit,
}

/// The events of one page; `?pulse` for pages with nodes' reports.
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
        limit: if has_pulse { PULSE } else { IDLE },
        sent: 0,
        _permit: permit,
    };
    let events = stream::unfold(stream, next);
    let events = Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE));
    // Proxies pass each event on at once.
    let unbuffered = (HeaderName::from_static("x-accel-buffering"), "no");
    Ok(([unbuffered], events).into_response())
}

async fn next(mut stream: Stream) -> Option<(Result<Event, Infallible>, Stream)> {
    if MAX_EVENTS <= stream.sent || stream.waiter.wait(stream.limit).await == Wake::Closed {
        return None;
    }
    sleep(QUIET).await;
    // The session may have ended, or have other organizations by now. A stream that ends lets the browser reconnect.
    let actor = stream.app.actor_of_live_page(stream.session).await.ok()?;
    stream.waiter.change_scope(ChangeScope::from(&actor));
    stream.sent += 1;
    Some((Ok(Event::default().data("changed")), stream))
}
