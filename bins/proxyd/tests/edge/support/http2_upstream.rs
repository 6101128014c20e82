//! A scripted HTTP/2 target.

use bytes::Bytes;
use h2::RecvStream;
use h2::server::{Builder, SendResponse};
use http::request::Parts;
use http::{HeaderMap, Response};
use proxy_testkit::Journal;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

/// A scripted target.
pub(crate) struct Http2Upstream {
    pub(crate) address: SocketAddr,
    pub(crate) requests: Journal<Parts>,
    pub(crate) connections: Journal<()>,
    leave: Arc<Notify>,
}

/// A request as received.
pub(crate) struct Request {
    /// Index of its connection, from 0.
    pub(crate) connection: usize,
    pub(crate) head: Parts,
    pub(crate) body: RecvStream,
    pub(crate) respond: SendResponse<Bytes>,
}

/// The protocol options of a target.
#[derive(Clone, Default)]
pub(crate) struct UpstreamOptions {
    pub(crate) tls: Option<Arc<ServerConfig>>,
    pub(crate) max_streams: Option<u32>,
    pub(crate) tunnels: bool,
}

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Http2Upstream {
    /// Runs `script` for every request.
    pub(crate) fn start<F>(script: impl Fn(Request) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self::with_options(UpstreamOptions::default(), script)
    }

    /// Like [`Self::start`], with these options.
    pub(crate) fn with_options<F>(
        options: UpstreamOptions,
        script: impl Fn(Request) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let script: Arc<dyn Fn(Request) -> Work + Send + Sync> =
            Arc::new(move |request| Box::pin(script(request)));
        let (requests, connections) = (Journal::default(), Journal::default());
        let leave = Arc::new(Notify::new());
        let server = Server {
            options,
            script,
            requests: requests.clone(),
            leave: Arc::clone(&leave),
        };
        let (bound, address) = channel();
        let accepted = connections.clone();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
                bound.send(listener.local_addr().unwrap()).unwrap();
                for number in 0.. {
                    let (stream, _) = listener.accept().await.unwrap();
                    accepted.push(());
                    let server = server.clone();
                    tokio::spawn(server.accept(stream, number));
                }
            });
        });
        Self {
            address: address.recv().unwrap(),
            requests,
            connections,
            leave,
        }
    }

    /// Sends GOAWAY on every open connection.
    pub(crate) fn send_goaway(&self) {
        self.leave.notify_waiters();
    }
}

#[derive(Clone)]
struct Server {
    options: UpstreamOptions,
    script: Arc<dyn Fn(Request) -> Work + Send + Sync>,
    requests: Journal<Parts>,
    leave: Arc<Notify>,
}

impl Server {
    /// Serves the connection, over TLS if the options require it.
    async fn accept(self, stream: TcpStream, number: usize) {
        let Some(config) = self.options.tls.clone() else {
            return self.serve(stream, number).await;
        };
        if let Ok(stream) = TlsAcceptor::from(config).accept(stream).await {
            self.serve(stream, number).await;
        }
    }

    async fn serve(self, stream: impl AsyncRead + AsyncWrite + Unpin, connection: usize) {
        let mut builder = Builder::new();
        if let Some(max) = self.options.max_streams {
            builder.max_concurrent_streams(max);
        }
        if self.options.tunnels {
            builder.enable_connect_protocol();
        }
        let Ok(mut http) = builder.handshake::<_, Bytes>(stream).await else {
            return;
        };
        let mut left = std::pin::pin!(self.leave.notified());
        let mut leaving = false;
        loop {
            let accepted = tokio::select! {
                accepted = http.accept() => accepted,
                () = &mut left, if !leaving => {
                    leaving = true;
                    http.graceful_shutdown();
                    continue;
                }
            };
            let Some(Ok((request, respond))) = accepted else {
                return;
            };
            let (head, body) = request.into_parts();
            self.requests.push(head.clone());
            tokio::spawn((self.script)(Request {
                connection,
                head,
                body,
                respond,
            }));
        }
    }
}

impl Request {
    /// Answers with status 200 and this body.
    pub(crate) fn reply(self, body: impl Into<Bytes>) {
        self.reply_with(&[], body, &[]);
    }

    /// The same, with header fields and trailers.
    pub(crate) fn reply_with(
        mut self,
        fields: &[(&'static str, &'static str)],
        body: impl Into<Bytes>,
        trailers: &[(&'static str, &'static str)],
    ) {
        let mut head = Response::new(());
        *head.headers_mut() = map(fields);
        // Fails if the client has disconnected.
        let Ok(mut send) = self.respond.send_response(head, false) else {
            return;
        };
        drop(send.send_data(body.into(), trailers.is_empty()));
        if !trailers.is_empty() {
            drop(send.send_trailers(map(trailers)));
        }
    }

    /// Reads the whole body, and the trailers.
    pub(crate) async fn read(&mut self) -> Option<(Vec<u8>, HeaderMap)> {
        let mut whole = Vec::new();
        while let Some(data) = self.body.data().await {
            let data = data.ok()?;
            self.body.flow_control().release_capacity(data.len()).ok()?;
            whole.extend_from_slice(&data);
        }
        let trailers = self.body.trailers().await.ok()?;
        Some((whole, trailers.unwrap_or_default()))
    }
}

fn map(fields: &[(&'static str, &'static str)]) -> HeaderMap {
    let fields = fields.iter();
    fields
        .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
        .collect()
}
