//! A gRPC service by tonic, and calls to it, without protobuf.

use super::certificates::{Authority, Identity};
use bytes::{Buf, BufMut, Bytes};
use proxy_testkit::Journal;
use std::convert::Infallible;
use std::net::SocketAddr;
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic::body::Body;
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::metadata::MetadataMap;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{
    Certificate, Channel, ClientTlsConfig, Endpoint, Identity as Pair, Server, ServerTlsConfig,
};
use tonic::{Code, Request, Response, Status, Streaming};
use tower::service_fn;

type Messages = ReceiverStream<Result<Bytes, Status>>;

/// A codec of plain bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Plain;

impl Codec for Plain {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Plain {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, message: Bytes, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put(message);
        Ok(())
    }
}

impl Decoder for Plain {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}

/// A service with the methods of [`serve`].
pub(crate) struct GrpcService {
    pub(crate) address: SocketAddr,
    pub(crate) calls: Journal<MetadataMap>,
    /// The methods of cancelled calls.
    pub(crate) given_up: Journal<&'static str>,
}

/// State shared by the methods.
#[derive(Clone)]
struct ServiceState {
    calls: Journal<MetadataMap>,
    given_up: Journal<&'static str>,
}

/// Records when a call is cancelled.
struct Alarm(Journal<&'static str>, &'static str);

impl Drop for Alarm {
    fn drop(&mut self) {
        self.0.push(self.1);
    }
}

impl GrpcService {
    /// Serves on the test's runtime, which ends it; over TLS with an identity.
    pub(crate) fn start(identity: Option<&Identity>) -> Self {
        let incoming = TcpIncoming::bind(([127, 0, 0, 1], 0).into()).unwrap();
        let address = incoming.local_addr().unwrap();
        let mut server = Server::builder();
        if let Some(Identity { chain, key, .. }) = identity {
            let tls = ServerTlsConfig::new().identity(Pair::from_pem(chain, key));
            server = server.tls_config(tls).unwrap();
        }
        let state = ServiceState {
            calls: Journal::default(),
            given_up: Journal::default(),
        };
        let (calls, given_up) = (state.calls.clone(), state.given_up.clone());
        let service = service_fn(move |request| serve(state.clone(), request));
        tokio::spawn(async move { server.serve_with_incoming(service, incoming).await });
        Self {
            address,
            calls,
            given_up,
        }
    }
}

async fn serve(
    state: ServiceState,
    request: http::Request<Body>,
) -> Result<http::Response<Body>, Infallible> {
    let mut grpc = tonic::server::Grpc::new(Plain).max_decoding_message_size(8 * 1024 * 1024);
    let headers = request.headers().clone();
    state.calls.push(MetadataMap::from_headers(headers));
    let method = request.uri().path().to_owned();
    Ok(match method.as_str() {
        "/test.Echo/Unary" => grpc.unary(service_fn(unary), request).await,
        "/test.Echo/Join" => grpc.client_streaming(service_fn(join), request).await,
        "/test.Echo/JoinLate" => grpc.streaming(service_fn(join_late), request).await,
        "/test.Echo/Count" => grpc.server_streaming(service_fn(count), request).await,
        "/test.Echo/Chat" => grpc.streaming(service_fn(chat), request).await,
        "/test.Echo/Fail" => grpc.unary(service_fn(fail), request).await,
        "/test.Echo/Hang" => {
            // Before the message is read: a caller may cancel earlier.
            let _alarm = Alarm(state.given_up, "Hang");
            grpc.unary(service_fn(hang), request).await
        }
        "/test.Echo/Watch" => {
            let watch =
                service_fn(move |request| std::future::ready(Ok(watch(state.clone(), request))));
            grpc.server_streaming(watch, request).await
        }
        _ => Status::unimplemented("no such method").into_http(),
    })
}

/// Returns the message and the client's metadata.
async fn unary(request: Request<Bytes>) -> Result<Response<Bytes>, Status> {
    let (asked, _, message) = request.into_parts();
    let mut response = Response::new(message);
    if let Some(value) = asked.get("x-in") {
        response.metadata_mut().insert("x-out", value.clone());
    }
    if let Some(value) = asked.get_bin("trace-bin") {
        response
            .metadata_mut()
            .insert_bin("trace-bin", value.clone());
    }
    Ok(response)
}

/// Returns all messages in one.
async fn join(request: Request<Streaming<Bytes>>) -> Result<Response<Bytes>, Status> {
    let mut all = Vec::new();
    let mut messages = request.into_inner();
    while let Some(message) = messages.message().await? {
        all.extend_from_slice(&message);
    }
    Ok(Response::new(all.into()))
}

/// The same, with the head sent at once.
async fn join_late(request: Request<Streaming<Bytes>>) -> Result<Response<Messages>, Status> {
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        let joined = join(request).await.map(Response::into_inner);
        drop(sender.send(joined).await);
    });
    Ok(Response::new(ReceiverStream::new(receiver)))
}

/// Returns as many messages as requested.
async fn count(request: Request<Bytes>) -> Result<Response<Messages>, Status> {
    let count = u64::from(request.into_inner().as_ref().get_u32());
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        for number in 0..count {
            let message = Bytes::copy_from_slice(&number.to_be_bytes());
            if sender.send(Ok(message)).await.is_err() {
                return;
            }
        }
    });
    Ok(Response::new(ReceiverStream::new(receiver)))
}

/// Returns each message as it arrives.
async fn chat(request: Request<Streaming<Bytes>>) -> Result<Response<Messages>, Status> {
    let mut messages = request.into_inner();
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        while let Some(message) = messages.next().await {
            if sender.send(message).await.is_err() {
                return;
            }
        }
    });
    Ok(Response::new(ReceiverStream::new(receiver)))
}

async fn fail(_: Request<Bytes>) -> Result<Response<Bytes>, Status> {
    let mut metadata = MetadataMap::new();
    metadata.insert("x-why", "because".parse().unwrap());
    let message = "100 % of the blätter\nare gone";
    Err(Status::with_metadata(
        Code::FailedPrecondition,
        message,
        metadata,
    ))
}

async fn hang(_: Request<Bytes>) -> Result<Response<Bytes>, Status> {
    std::future::pending().await
}

/// One message, and then silence.
fn watch(state: ServiceState, request: Request<Bytes>) -> Response<Messages> {
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        let _alarm = Alarm(state.given_up, "Watch");
        drop(sender.send(Ok(request.into_inner())).await);
        sender.closed().await;
    });
    Response::new(ReceiverStream::new(receiver))
}

/// A client of the service at `address`, over TLS with a trusted authority.
pub(crate) async fn caller(address: SocketAddr, trusted: Option<&Authority>) -> Grpc<Channel> {
    let scheme = if trusted.is_some() { "https" } else { "http" };
    let mut endpoint = Endpoint::from_shared(format!("{scheme}://{address}")).unwrap();
    if let Some(authority) = trusted {
        let tls = ClientTlsConfig::new()
            .ca_certificate(Certificate::from_pem(authority.pem()))
            .domain_name("site.test");
        endpoint = endpoint.tls_config(tls).unwrap();
    }
    let channel = endpoint.connect().await.unwrap();
    Grpc::new(channel).max_decoding_message_size(8 * 1024 * 1024)
}

/// `grpc`, when it is ready for another call.
pub(crate) async fn ready(grpc: &mut Grpc<Channel>) -> &mut Grpc<Channel> {
    grpc.ready().await.unwrap();
    grpc
}
