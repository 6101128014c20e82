//! The HTTP/2 connections of a target.

use super::exchange::FAILURE;
use super::target::{Condition, State};
use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::{Request, Response};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

pub(crate) async fn serve(mut stream: TcpStream, state: State) {
    state.wait_while(Condition::Paused).await;
    if state.now() == Condition::Garbage {
        drop(stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await);
        return;
    }
    let Ok(mut connection) = h2::server::handshake(stream).await else {
        return;
    };
    let mut streams = JoinSet::new();
    loop {
        tokio::select! {
            accepted = connection.accept() => {
                let Some(Ok((request, respond))) = accepted else {
                    return;
                };
                streams.spawn(answer(request, respond, state.clone()));
            }
            // A stream that ends the connection returns false.
            Some(Ok(false)) = streams.join_next() => return,
        }
        state.wait_while(Condition::Paused).await;
    }
}

/// False if the connection is to be closed.
async fn answer(
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    state: State,
) -> bool {
    let id = request.headers().get("x-correlation-id");
    let id = id.map_or("", |id| id.to_str().unwrap()).to_owned();
    state.note(&id);
    let Some(body) = read_body(request.into_body()).await else {
        return true;
    };
    let answer = Bytes::from([id.as_bytes(), &body].concat());
    let half = answer.slice(..answer.len() / 2);
    match state.now() {
        Condition::Well | Condition::Killed | Condition::Paused | Condition::Holding => {
            send(&mut respond, 200, answer);
        }
        Condition::Silent => {
            state.wait_while(Condition::Silent).await;
            respond.send_reset(Reason::CANCEL);
        }
        Condition::Closing | Condition::Garbage => return false,
        Condition::ResetInBody | Condition::CutInBody => {
            let head = Response::new(());
            if let Ok(mut body) = respond.send_response(head, false) {
                drop(body.send_data(half, false));
                body.send_reset(Reason::INTERNAL_ERROR);
            }
            return state.now() != Condition::CutInBody;
        }
        Condition::Failing => send(&mut respond, 503, Bytes::from_static(FAILURE)),
    }
    true
}

fn send(respond: &mut SendResponse<Bytes>, status: u16, answer: Bytes) {
    let head = Response::builder().status(status).body(()).unwrap();
    // A stream that the proxy has reset takes no response.
    if let Ok(mut body) = respond.send_response(head, false) {
        drop(body.send_data(answer, true));
    }
}

async fn read_body(mut body: RecvStream) -> Option<Vec<u8>> {
    let mut all = Vec::new();
    while let Some(piece) = body.data().await {
        let piece = piece.ok()?;
        body.flow_control().release_capacity(piece.len()).ok()?;
        all.extend_from_slice(&piece);
    }
    Some(all)
}
