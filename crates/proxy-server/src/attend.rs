//! A new connection: what it speaks is found out, then it is served.

use crate::connection;
use crate::handshake::{self, Failure};
use crate::http2;
use crate::patience::Patience;
use crate::preface;
use crate::settings::ConnectionSettings;
use crate::transport::Transport;
use bytes::Bytes;
use proxy_clock::{Deadline, Timer};
use proxy_pipeline::{Client, Peer, TlsSession, Worker};
use std::cell::Cell;
use std::rc::Rc;
use tokio::net::TcpStream;

/// The version of HTTP that a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spoken {
    Http1,
    Http2,
}

/// A connection of which it is known what it speaks.
#[derive(Debug)]
pub(crate) struct Agreed {
    pub(crate) spoken: Spoken,
    pub(crate) session: Option<TlsSession>,
    pub(crate) transport: Transport,
    /// What was read to find out.
    pub(crate) early: Bytes,
}

/// A connection ready to be served.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) client: Rc<Client>,
    pub(crate) deadline: Rc<Deadline>,
    pub(crate) transport: Transport,
    /// What was read of it already.
    pub(crate) early: Bytes,
}

/// Serves the connection of `peer` until it ends.
pub(crate) async fn attend(
    worker: Rc<Worker>,
    settings: Rc<ConnectionSettings>,
    listener: Rc<Cell<usize>>,
    stream: TcpStream,
    peer: Peer,
) {
    let deadline = Rc::<Deadline>::default();
    let entry = worker.sweep.register(Rc::clone(&deadline));
    match agree(&worker, &settings, stream, &deadline).await {
        Ok(agreed) => {
            let client = Client::new(listener, peer, agreed.spoken == Spoken::Http1);
            let line = Line {
                client: Rc::new(client.secured(agreed.session)),
                deadline,
                transport: agreed.transport,
                early: agreed.early,
            };
            match agreed.spoken {
                Spoken::Http1 => connection::serve(worker, settings, line).await,
                // Boxed: most connections are not.
                Spoken::Http2 => Box::pin(http2::serve(worker, settings, line)).await,
            }
        }
        Err(failure) => {
            let client = Rc::new(Client::new(listener, peer, true));
            let patience = Patience {
                clock: &worker.clock,
                deadline: &deadline,
            };
            Box::pin(failure.settle(&worker, &client, &settings, patience)).await;
        }
    }
    drop(entry);
}

async fn agree(
    worker: &Worker,
    settings: &ConnectionSettings,
    stream: TcpStream,
    deadline: &Deadline,
) -> Result<Agreed, Failure> {
    let patience = Patience {
        clock: &worker.clock,
        deadline,
    };
    match &settings.tls {
        Some(tls) => {
            let time = settings.handshake_time;
            // Boxed: it is large, and over before the first request.
            Box::pin(handshake::shake(worker, tls, stream, time, patience)).await
        }
        None if settings.h2c => Box::pin(hear(settings, stream, patience)).await,
        None => Ok(Agreed {
            spoken: Spoken::Http1,
            session: None,
            transport: Transport::Tcp(stream),
            early: Bytes::new(),
        }),
    }
}

async fn hear(
    settings: &ConnectionSettings,
    mut stream: TcpStream,
    patience: Patience<'_>,
) -> Result<Agreed, Failure> {
    let time = settings.header_time;
    let heard = patience.within(Timer::RequestHeader, time, preface::listen(&mut stream));
    let Some(Ok((spoken, early))) = heard.await else {
        return Err(Failure::Nobody);
    };
    Ok(Agreed {
        spoken,
        session: None,
        transport: Transport::Tcp(stream),
        early,
    })
}
