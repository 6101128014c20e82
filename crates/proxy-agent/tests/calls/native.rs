//! The proxy's own protocol: one client's calls do not make other calls fail.

use crate::fake::{FakeAgent, Reaction};
use crate::support::{begin, body, client, run};
use agent_protocol::{
    BodyMode, EventKind, Header, MAX_PART_BYTES, ProxyMessage, RequestId, ResponseHeaders,
};
use proxy_agent::{AgentClient, CallContext, CallError, EventNumber, Session};
use proxy_model::AgentProtocol;
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

const LARGE_BODY: &[u8] = &[b'x'; 1 << 20];

fn own(agent: &FakeAgent) -> Rc<AgentClient> {
    client(agent.socket().as_ref(), AgentProtocol::Native)
}

/// Requests decisions on the head of a request with a body, and on this body.
async fn upload(client: &AgentClient, data: &[u8]) -> Result<(), CallError> {
    let mut session = begin(client, true).await?.session.unwrap();
    show(&mut session, data).await
}

async fn show(session: &mut Session, data: &[u8]) -> Result<(), CallError> {
    assert_eq!(session.request_body(), BodyMode::Buffered);
    let event = ProxyMessage::RequestBody(body(session, data));
    let kind = EventKind::RequestBody;
    session
        .call(&event, kind, false, &CallContext::default())
        .await?;
    Ok(())
}

/// Returns true if an event is the body of a request, or a part of one.
fn is_body(event: &ProxyMessage<'_>) -> bool {
    matches!(event, ProxyMessage::RequestBody(_))
}

#[test]
fn large_bodies_at_once_are_decided_and_so_are_heads_between_them() {
    for has_parts in [false, true] {
        run(async move {
            let agent = FakeAgent::start(has_parts, |_| Reaction::Allow);
            let client = own(&agent);
            let mut calls = Vec::new();
            for _ in 0..24 {
                let one = Rc::clone(&client);
                calls.push(tokio::task::spawn_local(async move {
                    upload(&one, LARGE_BODY).await
                }));
                let one = Rc::clone(&client);
                calls.push(tokio::task::spawn_local(async move {
                    begin(&one, false).await.map(drop)
                }));
            }

            for call in calls {
                assert_eq!(call.await.unwrap(), Ok(()));
            }
            assert_eq!(agent.ended_connections(), 0);
        });
    }
}

#[test]
fn a_request_without_a_body_is_decided_while_every_body_makes_its_connection_wait() {
    run(async {
        let agent = FakeAgent::start(false, |event| {
            if is_body(event) {
                Reaction::Pause
            } else {
                Reaction::Allow
            }
        });
        let client = own(&agent);
        let mut uploads = Vec::new();
        for count in 1..=3 {
            let one = Rc::clone(&client);
            uploads.push(tokio::task::spawn_local(async move {
                upload(&one, LARGE_BODY).await
            }));
            let bodies =
                |agent: &FakeAgent| agent.events().iter().filter(|one| is_body(one)).count();
            agent.wait_until(|agent| bodies(agent) == count).await;
        }
        for _ in 0..5 {
            let one = Rc::clone(&client);
            uploads.push(tokio::task::spawn_local(async move {
                upload(&one, LARGE_BODY).await
            }));
        }
        tokio::task::yield_now().await;

        for _ in 0..10 {
            assert!(begin(&client, false).await.is_ok());
        }

        agent.resume();
        for upload in uploads {
            assert_eq!(upload.await.unwrap(), Ok(()));
        }
        assert_eq!(agent.connections(), 4);
    });
}

#[test]
fn a_call_waits_for_an_agent_that_reads_slowly() {
    run(async {
        let agent = FakeAgent::start(false, |event| match event {
            ProxyMessage::ResponseHeaders(_) => Reaction::Pause,
            _ => Reaction::Allow,
        });
        let client = own(&agent);
        let mut sessions = Vec::new();
        for _ in 0..6 {
            sessions.push(begin(&client, true).await.unwrap().session.unwrap());
        }
        assert_eq!(agent.connections(), 1);
        let first = sessions.pop().unwrap();
        let paused = tokio::task::spawn_local(answered(first, Vec::new()));
        let is_paused = |agent: &FakeAgent| {
            let events = agent.events();
            matches!(events.last(), Some(ProxyMessage::ResponseHeaders(_)))
        };
        agent.wait_until(is_paused).await;
        let calls: Vec<_> = sessions
            .into_iter()
            .map(|mut session| {
                tokio::task::spawn_local(async move { show(&mut session, LARGE_BODY).await })
            })
            .collect();
        // The socket and the buffer are full: the calls wait, and none has failed.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert!(!calls.iter().any(tokio::task::JoinHandle::is_finished));

        agent.resume();

        assert_eq!(paused.await.unwrap(), Ok(()));
        for call in calls {
            assert_eq!(call.await.unwrap(), Ok(()));
        }
    });
}

async fn answered(mut session: Session, headers: Vec<Header<'static>>) -> Result<(), CallError> {
    let EventNumber { id, seq } = session.next_event();
    let event = ProxyMessage::ResponseHeaders(ResponseHeaders {
        id,
        seq,
        timeout_ms: 1_000,
        upstream: None,
        status: 200,
        http_version: "HTTP/1.1".into(),
        headers,
        has_body: false,
    });
    let kind = EventKind::ResponseHeaders;
    session
        .call(&event, kind, false, &CallContext::default())
        .await?;
    Ok(())
}

#[test]
fn a_body_in_parts_lets_other_events_pass() {
    run(async {
        let agent = FakeAgent::start(true, |event| match event {
            ProxyMessage::ResponseHeaders(_) => Reaction::Pause,
            _ => Reaction::Allow,
        });
        let client = own(&agent);
        let mut sessions = Vec::new();
        for _ in 0..3 {
            sessions.push(begin(&client, true).await.unwrap().session.unwrap());
        }
        let paused = sessions.pop().unwrap();
        let paused = tokio::task::spawn_local(answered(paused, Vec::new()));
        let is_paused = |agent: &FakeAgent| {
            let events = agent.events();
            matches!(events.last(), Some(ProxyMessage::ResponseHeaders(_)))
        };
        agent.wait_until(is_paused).await;
        let mut uploading = sessions.pop().unwrap();
        let upload =
            tokio::task::spawn_local(async move { show(&mut uploading, LARGE_BODY).await });
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        let other = sessions.pop().unwrap();
        let other_id = other.next_event().id;
        let other = tokio::task::spawn_local(answered(other, Vec::new()));
        tokio::task::yield_now().await;

        agent.resume();

        for call in [paused, upload, other] {
            assert_eq!(call.await.unwrap(), Ok(()));
        }
        assert_parts(&agent.events(), other_id);
    });
}

/// Checks that the parts of the body belong to one event, with the other request's event in
/// between.
fn assert_parts(events: &[ProxyMessage<'static>], other: RequestId) {
    let mut data = Vec::new();
    let mut numbers = Vec::new();
    let mut was_other_seen = false;
    for event in events {
        match event {
            ProxyMessage::RequestBody(part) => {
                assert!(part.data.as_bytes().len() <= MAX_PART_BYTES);
                data.extend_from_slice(part.data.as_bytes());
                numbers.push((part.id, part.seq));
                assert_eq!(part.last, data.len() == LARGE_BODY.len());
                assert!(!part.last || was_other_seen, "the other event came late");
            }
            ProxyMessage::ResponseHeaders(event) => was_other_seen |= event.id == other,
            _ => {}
        }
    }
    assert_eq!(data, LARGE_BODY);
    numbers.dedup();
    assert_eq!(numbers.len(), 1, "{numbers:?}");
}

/// Calls ignored by the agent, ended in sequence.
async fn ignored(agent: &FakeAgent, client: &Rc<AgentClient>, count: usize, has_expired: bool) {
    for _ in 0..count {
        let before = agent.events().len();
        let ended = Rc::new(CallContext::default());
        let (own, is_late) = (Rc::clone(client), Rc::clone(&ended));
        let call = tokio::task::spawn_local(async move {
            let asked = own.begin(Duration::ZERO, crate::support::head(false), &is_late, None);
            asked.await.map(drop)
        });
        agent
            .wait_until(|agent| before < agent.events().len())
            .await;
        ended.has_expired.set(has_expired);
        call.abort();
        assert!(call.await.is_err());
    }
}

fn ignoring() -> FakeAgent {
    let heads = Cell::new(0);
    FakeAgent::start(false, move |event| {
        if !matches!(event, ProxyMessage::RequestHeaders(_)) {
            return Reaction::Ignore;
        }
        heads.set(heads.get() + 1);
        if heads.get() <= 60 {
            Reaction::Ignore
        } else {
            Reaction::Allow
        }
    })
}

#[test]
fn calls_that_clients_give_up_are_cancelled_and_cost_no_connection() {
    run(async {
        let agent = ignoring();
        let client = own(&agent);

        ignored(&agent, &client, 60, false).await;

        assert!(begin(&client, false).await.is_ok());
        assert_eq!((agent.connections(), agent.ended_connections()), (1, 0));
        let events = agent.events();
        let cancels = events
            .iter()
            .filter(|event| matches!(event, ProxyMessage::Cancel(_)));
        assert_eq!(cancels.count(), 60);
    });
}

#[test]
fn a_connection_with_a_timed_out_agent_call_is_closed() {
    run(async {
        let agent = ignoring();
        let client = own(&agent);

        ignored(&agent, &client, 32, true).await;

        agent
            .wait_until(|agent| agent.ended_connections() == 1)
            .await;
    });
}

#[test]
fn a_drained_connection_is_closed_when_its_last_request_has_ended() {
    run(async {
        let is_first = Cell::new(true);
        let agent = FakeAgent::start(false, move |event| match event {
            ProxyMessage::RequestHeaders(_) if is_first.take() => Reaction::Drain,
            _ => Reaction::Allow,
        });
        let client = own(&agent);

        let session = begin(&client, false).await.unwrap().session.unwrap();
        // The first session still expects the response to its request.
        let other = begin(&client, false).await.unwrap().session.unwrap();
        assert_eq!((agent.connections(), agent.ended_connections()), (2, 0));
        drop(session);

        agent
            .wait_until(|agent| agent.ended_connections() == 1)
            .await;
        let reported = |event: &ProxyMessage<'_>| matches!(event, ProxyMessage::Cancel(_));
        assert!(
            agent.events().iter().any(reported),
            "its end was sent before"
        );
        drop(other);
        assert!(begin(&client, false).await.is_ok());
        assert_eq!((agent.connections(), agent.ended_connections()), (2, 1));
    });
}
