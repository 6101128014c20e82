//! A request to a target over HTTP/2, with its response.

use super::connection::StreamSlot;
use super::tunnel::Tunnel;
use super::upload::{Upload, UploadError};
use crate::error::{Http2RequestError, SendError};
use crate::transport::{StreamPair, UpstreamStream};
use bytes::Bytes;
use h2::RecvStream;
use h2::client::ResponseFuture;
use http::request::Parts;
use http::{Request, Response, StatusCode};
use http_body::{Body, Frame};
use proxy_clock::Deadline;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// Maximum number of 1xx responses.
const MAX_INFORMATIONAL: u32 = 16;

/// A request in flight. Dropping it resets its stream.
#[derive(Debug)]
pub struct Http2Request<B> {
    response: ResponseFuture,
    upload: Option<Upload<B>>,
    /// The head as sent, for a retry.
    head: Option<Box<Parts>>,
    failed: Option<UploadError>,
    informational: u32,
    stream_slot: StreamSlot,
}

/// A request that its connection did not accept: no part of it was sent.
#[derive(Debug)]
pub struct RejectedRequest<B> {
    /// Error of the connection.
    pub error: Http2RequestError,
    /// The complete request.
    pub request: Request<B>,
}

impl<B: Body<Data = Bytes> + Unpin> Http2Request<B> {
    /// Sends `request`; its URI has scheme and authority.
    ///
    /// # Errors
    /// [`RejectedRequest`] if the connection accepts no more requests.
    pub fn begin(
        stream_slot: StreamSlot,
        request: Request<B>,
    ) -> Result<Self, Box<RejectedRequest<B>>> {
        let (head, body) = request.into_parts();
        let copy = Box::new(head.clone());
        let ends = body.is_end_stream();
        let sent = stream_slot
            .sender()
            .send_request(Request::from_parts(head, ()), ends);
        match sent {
            Ok((response, send)) => {
                stream_slot.request_sent();
                let upload = (!ends).then(|| Upload::new(send, body, stream_slot.unsent()));
                Ok(Self {
                    response,
                    upload,
                    head: Some(copy),
                    failed: None,
                    informational: 0,
                    stream_slot,
                })
            }
            Err(error) => {
                let error = Http2RequestError::Unprocessed(error);
                let request = Request::from_parts(*copy, body);
                Err(Box::new(RejectedRequest { error, request }))
            }
        }
    }

    /// Waits for the head of the response; `notice` gets the heads of preceding 1xx responses.
    ///
    /// # Errors
    /// [`Http2RequestError`]; only [`Self::into_request`] may be called then.
    pub fn poll_response(
        &mut self,
        cx: &mut Context<'_>,
        notice: impl Fn(&Response<()>),
    ) -> Poll<Result<Response<RecvStream>, Http2RequestError>> {
        self.poll_upload(cx);
        while let Poll::Ready(Some(Ok(interim))) = self.response.poll_informational(cx) {
            check_interim(&interim, &mut self.informational)?;
            notice(&interim);
        }
        match Pin::new(&mut self.response).poll(cx) {
            Poll::Ready(Ok(response)) => {
                self.head = None;
                Poll::Ready(Ok(response))
            }
            Poll::Ready(Err(_)) | Poll::Pending if self.failed == Some(UploadError::Body) => {
                Poll::Ready(Err(Http2RequestError::RequestBody))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(Http2RequestError::from(error))),
            Poll::Pending => Poll::Pending,
        }
    }

    /// The request for a retry, unless a part of its body is lost.
    pub fn into_request(self, empty: B) -> Option<Request<B>> {
        let head = *self.head?;
        let body = match self.upload {
            None => empty,
            Some(upload) if !upload.touched => upload.into_body(),
            Some(_) => return None,
        };
        Some(Request::from_parts(head, body))
    }

    /// Returns true if no response has arrived, interim ones included.
    pub fn is_unanswered(&self) -> bool {
        self.head.is_some() && self.informational == 0
    }

    /// Returns true if the connection had carried a request before.
    pub fn was_reused(&self) -> bool {
        self.stream_slot.reused
    }

    /// The next frame of `stream`, the response's body.
    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
        stream: &mut RecvStream,
    ) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        self.poll_upload(cx);
        if let Some(data) = ready!(stream.poll_data(cx)) {
            let data = data.and_then(|data| {
                stream.flow_control().release_capacity(data.len())?;
                Ok(Frame::data(data))
            });
            return Poll::Ready(Some(data));
        }
        let trailers = ready!(stream.poll_trailers(cx))?;
        Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(trailers))))
    }

    pub(crate) fn poll_upload(&mut self, cx: &mut Context<'_>) {
        if let Some(upload) = &mut self.upload
            && let Poll::Ready(sent) = upload.poll(cx)
        {
            self.failed = sent.err();
            if self.failed != Some(UploadError::Target) {
                self.upload = None;
            }
        }
    }
}

/// Counts an interim response. Fails for a 101, and after [`MAX_INFORMATIONAL`] responses.
fn check_interim(interim: &Response<()>, count: &mut u32) -> Result<(), Http2RequestError> {
    *count += 1;
    if interim.status() == StatusCode::SWITCHING_PROTOCOLS {
        return Err(Http2RequestError::UnaskedUpgrade);
    }
    if *count > MAX_INFORMATIONAL {
        return Err(Http2RequestError::TooManyInformational);
    }
    Ok(())
}

/// The response to an extended CONNECT. [RFC 8441 §5]
#[derive(Debug)]
pub struct ExtendedConnectResponse {
    /// Head of the response.
    pub head: Response<()>,
    /// The stream as a tunnel; `None` unless the status is 2xx.
    pub tunnel: Option<Tunnel>,
}

/// Sends an extended CONNECT on `stream_slot`; `head` has the protocol in its extensions. Returns
/// `None`, without sending anything, if the target does not support extended CONNECT.
///
/// # Errors
/// [`SendError`] if the connection or the stream ends first, or the deadline passes.
pub async fn extended_connect(
    stream_slot: StreamSlot,
    head: Parts,
    deadline: &Deadline,
) -> Result<Option<ExtendedConnectResponse>, SendError> {
    let connecting = async {
        stream_slot.settings_received().await;
        if !stream_slot.takes_tunnels() {
            return Ok(None);
        }
        let request = Request::from_parts(head, ());
        let sent = stream_slot.sender().send_request(request, false);
        let (mut response, send) = sent.map_err(Http2RequestError::Unprocessed)?;
        stream_slot.request_sent();
        let mut informational = 0;
        let answered = poll_fn(|cx| {
            while let Poll::Ready(Some(Ok(interim))) = response.poll_informational(cx) {
                check_interim(&interim, &mut informational)?;
            }
            Pin::new(&mut response)
                .poll(cx)
                .map_err(Http2RequestError::from)
        });
        Ok(Some((answered.await?, send)))
    };
    let mut connecting = Box::pin(connecting);
    let answered = poll_fn(|cx| match connecting.as_mut().poll(cx) {
        Poll::Ready(answered) => Poll::Ready(answered.map_err(SendError::Http2Request)),
        Poll::Pending => match deadline.take_expired() {
            Some((timer, after)) => Poll::Ready(Err(SendError::TimedOut { timer, after })),
            None => Poll::Pending,
        },
    })
    .await?;
    drop(connecting);
    let Some((response, send)) = answered else {
        return Ok(None);
    };
    let (head, receive) = response.into_parts();
    let tunnel = head.status.is_success().then(|| Tunnel {
        transport: UpstreamStream::Stream(Box::new(StreamPair::new(
            send,
            receive,
            stream_slot.unsent(),
        ))),
        early: Bytes::new(),
        stream_slot: Some(stream_slot),
    });
    Ok(Some(ExtendedConnectResponse {
        head: Response::from_parts(head, ()),
        tunnel,
    }))
}
