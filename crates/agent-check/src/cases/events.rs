//! Events and their decisions.

use crate::case::{Case, Outcome};
use crate::cases::handshake::with_field;
use crate::client::{Client, ExpectedDecision, hello};
use crate::sample::{
    Exchange, ask, cancel, complete, plain, request, unusual_headers, unusual_target,
};
use crate::settings::Settings;
use agent_protocol::{
    BODY_PARTS, BodyMode, Encoding, EventKind, FrameType, Header, ProxyMessage, RequestId, Wants,
};
use std::collections::HashSet;

/// Requests that are sent before any decision is read.
const INTERLEAVED_REQUESTS: usize = 32;
const LARGE_HEADER_BYTES: usize = 8_000;

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "request-headers",
        rule: "a request's head is answered by one decision with its id and seq",
        run: head,
    },
    Case {
        name: "unknown-fields",
        rule: "fields of an event that the agent does not know are skipped",
        run: unknown_fields,
    },
    Case {
        name: "bytes-of-headers",
        rule: "repeated, empty and large headers, and bytes that are not UTF-8, are decided",
        run: bytes,
    },
    Case {
        name: "greatest-id",
        rule: "ids up to 2^53 - 1 are repeated exactly",
        run: greatest_id,
    },
    Case {
        name: "interleaved-requests",
        rule: "many requests at once on one connection get one decision each",
        run: interleaved,
    },
    Case {
        name: "request-body",
        rule: "each event of a request's body is decided",
        run: request_body,
    },
    Case {
        name: "truncated-body",
        rule: "a body that is sent in part is decided",
        run: truncated,
    },
    Case {
        name: "body-parts",
        rule: "parts of a body are decided as one, requests between them at once, and may be cancelled",
        run: body_parts,
    },
    Case {
        name: "response",
        rule: "a response's head and body are decided",
        run: response,
    },
    Case {
        name: "completion",
        rule: "a completion is not answered, and the next request is decided",
        run: completion,
    },
    Case {
        name: "cancel",
        rule: "a cancelled request gets at most the decision that was on its way",
        run: cancelled,
    },
    Case {
        name: "cancel-of-unknown",
        rule: "a cancel of a request that the agent does not know is skipped",
        run: cancel_of_unknown,
    },
];

fn open(settings: &Settings) -> Result<(Client, Wants), String> {
    let (client, welcome) = Client::greet(settings, &[Encoding::Json])?;
    Ok((client, welcome.wants))
}

fn head(settings: &Settings) -> Outcome {
    let (mut client, _) = open(settings)?;
    let id = client.next_id();
    let decision = ask(&mut client, request(settings, id, &[], false))?;
    client.expect_quiet()?;
    Ok(Some(format!("decided {}", decision.name())))
}

fn unknown_fields(settings: &Settings) -> Outcome {
    let (mut client, _) = open(settings)?;
    let id = client.next_id();
    let event = ProxyMessage::RequestHeaders(request(settings, id, &[], false));
    let frame = client.frame(&event)?;
    client.send_raw(&with_field(&frame, FrameType::RequestHeaders)?)?;
    client.decision(first_event(id))?;
    Ok(None)
}

fn first_event(id: RequestId) -> ExpectedDecision {
    ExpectedDecision {
        id,
        seq: 0,
        event: EventKind::RequestHeaders,
        is_chunk: false,
    }
}

fn bytes(settings: &Settings) -> Outcome {
    let (mut client, _) = open(settings)?;
    let mut headers = unusual_headers();
    let large = "x".repeat(LARGE_HEADER_BYTES);
    headers.push(Header::new("x-large", large).map_err(|error| error.to_string())?);
    let id = client.next_id();
    let mut event = request(settings, id, &headers, false);
    event.target = unusual_target();
    ask(&mut client, event)?;
    Ok(None)
}

fn greatest_id(settings: &Settings) -> Outcome {
    let (mut client, _) = open(settings)?;
    ask(&mut client, request(settings, RequestId::MAX, &[], false))?;
    Ok(None)
}

fn interleaved(settings: &Settings) -> Outcome {
    let (mut client, _) = open(settings)?;
    let mut bytes = Vec::new();
    let mut open = HashSet::new();
    for _ in 0..INTERLEAVED_REQUESTS {
        let id = client.next_id();
        let event = ProxyMessage::RequestHeaders(request(settings, id, &[], false));
        bytes.extend(client.frame(&event)?);
        open.insert(id);
    }
    client.send_raw(&bytes)?;
    for _ in 0..INTERLEAVED_REQUESTS {
        let message = client.any_decision()?;
        if message.seq != 0 {
            return Err(format!("seq {} of {}", message.seq, message.id));
        }
        if !open.remove(&message.id) {
            return Err(format!(
                "a second decision, or one of no request: id {}",
                message.id
            ));
        }
    }
    client.expect_quiet()?;
    Ok(None)
}

fn request_body(settings: &Settings) -> Outcome {
    let (mut client, wants) = open(settings)?;
    if wants.request_body == BodyMode::None {
        return Ok(Some("not wanted".to_owned()));
    }
    let mut exchange = Exchange::begin(&mut client, settings, wants)?;
    exchange.body(EventKind::RequestBody, false)?;
    Ok(exchange.end()?.map(refused))
}

fn truncated(settings: &Settings) -> Outcome {
    let (mut client, wants) = open(settings)?;
    if wants.request_body == BodyMode::None {
        return Ok(Some("not wanted".to_owned()));
    }
    let mut exchange = Exchange::begin(&mut client, settings, wants)?;
    exchange.body(EventKind::RequestBody, true)?;
    Ok(exchange.end()?.map(refused))
}

fn body_parts(settings: &Settings) -> Outcome {
    let mut hello = hello(&[Encoding::Json]);
    hello.features.push(BODY_PARTS.to_owned());
    let (mut client, welcome) = Client::greet_with(settings, &hello)?;
    if !welcome.features.iter().any(|name| name == BODY_PARTS) {
        return Ok(Some("not used".to_owned()));
    }
    if welcome.wants.request_body != BodyMode::Buffered {
        return Ok(Some("not wanted".to_owned()));
    }
    let mut exchange = Exchange::begin(&mut client, settings, welcome.wants)?;
    exchange.parts(settings)?;
    let refusal = exchange.end()?;
    let mut exchange = Exchange::begin(&mut client, settings, welcome.wants)?;
    exchange.cancelled_parts()?;
    client.expect_quiet()?;
    plain(&mut client, settings)?;
    Ok(refusal.map(refused))
}

fn response(settings: &Settings) -> Outcome {
    let (mut client, wants) = open(settings)?;
    if !wants.response_headers {
        return Ok(Some("not wanted".to_owned()));
    }
    let mut exchange = Exchange::begin(&mut client, settings, wants)?;
    exchange.body(EventKind::RequestBody, false)?;
    exchange.response()?;
    exchange.body(EventKind::ResponseBody, false)?;
    Ok(exchange.end()?.map(refused))
}

fn refused(decision: &'static str) -> String {
    format!("the sample request got {decision}; --header may add credentials")
}

fn completion(settings: &Settings) -> Outcome {
    let (mut client, wants) = open(settings)?;
    if !wants.completion {
        return Ok(Some("not wanted".to_owned()));
    }
    let id = client.next_id();
    ask(&mut client, request(settings, id, &[], false))?;
    complete(&mut client, wants, id)?;
    client.expect_quiet()?;
    plain(&mut client, settings)?;
    Ok(None)
}

fn cancelled(settings: &Settings) -> Outcome {
    let (mut client, _) = open(settings)?;
    let first = client.next_id();
    client.send(&ProxyMessage::RequestHeaders(request(
        settings,
        first,
        &[],
        false,
    )))?;
    cancel(&mut client, first)?;
    let second = client.next_id();
    client.send(&ProxyMessage::RequestHeaders(request(
        settings,
        second,
        &[],
        false,
    )))?;
    let mut message = client.any_decision()?;
    if message.id == first {
        message = client.any_decision()?;
    }
    if message.id != second {
        return Err(format!("a decision for id {} came instead", message.id));
    }
    client.expect_quiet()?;
    Ok(None)
}

fn cancel_of_unknown(settings: &Settings) -> Outcome {
    let (mut client, _) = open(settings)?;
    let id = client.next_id();
    ask(&mut client, request(settings, id, &[], false))?;
    cancel(&mut client, id)?;
    let unused = client.next_id();
    cancel(&mut client, unused)?;
    client.expect_quiet()?;
    plain(&mut client, settings)?;
    Ok(None)
}
