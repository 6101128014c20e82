//! One HTTP/1.1 connection to a target.

use crate::fault::SendFault;
use crate::http2::Lane;
use crate::io::UpstreamIo;
use crate::transport::Transport;
use crate::wire::{Exchange, Wire};
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::Body;
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use proxy_clock::{Deadline, Tick};
use proxy_framing::HeadLimits;
use proxy_limits::Permit;
use std::error::Error;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};

type Driver<B> = http1::Connection<TokioIo<UpstreamIo>, B>;
type SendError<B> = TrySendError<Request<B>>;

/// A connection that carries one request at a time and is driven by whoever waits for it.
pub struct Connection<B: Body + 'static> {
    sender: SendRequest<B>,
    // Boxed: a pool moves connections about.
    driver: Option<Box<Driver<B>>>,
    wire: Rc<Wire>,
    permit: Option<Permit>,
    pub(crate) generation: u32,
    pub(crate) idle_since: Tick,
}

/// What is left of a connection after `101 Switching Protocols`.
#[derive(Debug)]
pub struct Tunnel {
    /// The stream, now without HTTP.
    pub transport: Transport,
    /// What the target sent right behind its answer.
    pub early: Bytes,
    /// The place on a shared connection, when the stream is one of many.
    pub lane: Option<Lane>,
}

impl<B: Body + 'static> Connection<B> {
    /// Counters and leftovers of the current exchange.
    pub fn wire(&self) -> &Rc<Wire> {
        &self.wire
    }

    /// Whether the next request may be sent now.
    #[inline]
    pub fn is_ready(&self) -> bool {
        self.driver.is_some() && self.sender.is_ready()
    }
}

impl<B> Connection<B>
where
    B: Body + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    /// Speaks HTTP/1.1 over `transport`. `permit` is given back when the connection ends.
    ///
    /// # Errors
    /// hyper's, which today never happens: nothing is sent yet.
    pub async fn start(
        transport: Transport,
        limits: HeadLimits,
        generation: u32,
        permit: Option<Permit>,
    ) -> Result<Self, hyper::Error> {
        let wire = Rc::new(Wire::new(limits));
        let io = TokioIo::new(UpstreamIo::new(transport, Rc::clone(&wire)));
        let mut builder = http1::Builder::new();
        if limits.max_header_count > 100 {
            builder.max_headers(limits.max_header_count as usize);
        }
        let (sender, driver) = builder.handshake(io).await?;
        Ok(Self {
            sender,
            driver: Some(Box::new(driver)),
            wire,
            permit,
            generation,
            idle_since: Tick::default(),
        })
    }

    /// Sends `request` and waits for the head of its response; `notice` is called whenever something
    /// may have happened on the wire meanwhile.
    ///
    /// # Errors
    /// [`SendFault`]; the connection is of no more use then.
    pub fn send(
        &mut self,
        exchange: Exchange,
        request: Request<B>,
        deadline: &Deadline,
        notice: impl Fn(&Wire),
    ) -> impl Future<Output = Result<Response<Incoming>, SendFault<Request<B>>>> {
        self.wire.begin(exchange);
        let answer = self.sender.try_send_request(request);
        let (driver, wire) = (&mut self.driver, &*self.wire);
        async move {
            let mut answer = pin!(answer);
            poll_fn(|cx| {
                let polled = poll_exchange(driver, answer.as_mut(), cx);
                notice(wire);
                match polled {
                    Poll::Ready(Ok(response)) => Poll::Ready(Ok(response)),
                    Poll::Ready(Err(error)) => Poll::Ready(Err(send_fault(wire, error))),
                    Poll::Pending => match deadline.take_expired() {
                        Some((timer, after)) => {
                            Poll::Ready(Err(SendFault::TimedOut { timer, after }))
                        }
                        None => Poll::Pending,
                    },
                }
            })
            .await
        }
    }

    /// Drives the connection once. Ready when it has ended.
    #[inline]
    pub(crate) fn poll_drive(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(driver) = &mut self.driver else {
            return Poll::Ready(());
        };
        if driver.poll_without_shutdown(cx).is_pending() {
            return Poll::Pending;
        }
        self.driver = None;
        Poll::Ready(())
    }

    /// The head of the last request, when it was replayable and nothing came back.
    pub fn into_sent_head(self) -> Vec<u8> {
        self.wire.take_head()
    }

    /// The stream under a connection whose last answer was `101`.
    pub fn into_tunnel(mut self) -> Option<(Tunnel, Option<Permit>)> {
        let http1::Parts { io, read_buf, .. } = self.driver.take()?.into_parts();
        let tunnel = Tunnel {
            transport: io.into_inner().into_transport(),
            early: read_buf,
            lane: None,
        };
        Some((tunnel, self.permit.take()))
    }
}

/// One turn of driver and answer.
///
/// A driver that is ready is dropped at once, as only its drop gives back a request that it had not
/// taken yet; unless it ended by switching protocols, where its stream is still wanted.
fn poll_exchange<B>(
    driver: &mut Option<Box<Driver<B>>>,
    mut answer: Pin<&mut impl Future<Output = Result<Response<Incoming>, SendError<B>>>>,
    cx: &mut Context<'_>,
) -> Poll<Result<Response<Incoming>, SendError<B>>>
where
    B: Body + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let Some(running) = driver else {
        return answer.poll(cx);
    };
    if running.poll_without_shutdown(cx).is_pending() {
        return answer.poll(cx);
    }
    let ended = driver.take();
    let polled = answer.as_mut().poll(cx);
    if let Poll::Ready(Ok(response)) = &polled
        && response.status() == StatusCode::SWITCHING_PROTOCOLS
    {
        *driver = ended;
        return polled;
    }
    drop(ended);
    match polled {
        Poll::Pending => answer.poll(cx),
        ready @ Poll::Ready(_) => ready,
    }
}

fn send_fault<B>(wire: &Wire, mut error: SendError<B>) -> SendFault<Request<B>> {
    if let Some(request) = error.take_message() {
        return SendFault::Unsent(Box::new(request));
    }
    if let Some(fault) = wire.fault.get() {
        return SendFault::BadResponse(fault);
    }
    let error = error.into_error();
    if error.is_user() {
        return SendFault::RequestBody;
    }
    let io = error
        .source()
        .and_then(|cause| cause.downcast_ref::<io::Error>());
    match io {
        Some(io) => SendFault::Closed(Some(io::Error::new(io.kind(), io.to_string()))),
        None if error.is_incomplete_message() || error.is_canceled() || error.is_closed() => {
            SendFault::Closed(None)
        }
        None => SendFault::Http(error),
    }
}

impl<B: Body + 'static> fmt::Debug for Connection<B> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Connection")
            .field("wire", &self.wire)
            .field("open", &self.driver.is_some())
            .finish_non_exhaustive()
    }
}
