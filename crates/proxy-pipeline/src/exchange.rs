//! The current request with its state.

mod attempts;
mod response_memory;

use crate::headers::correlation::{CorrelationId, is_acceptable};
use crate::headers::forwarded_headers::{ForwardedHeaders, client_ip};
use crate::headers::header_edits::{self, FilledEdits, ResponseEdits};
use crate::headers::inbound_head::{InboundHead, LoggedHead, path_as_sent};
use crate::headers::indexed_headers::{IndexedHeaders, KnownHeaders};
use crate::headers::{hop_by_hop, names};
use crate::record::completion::CompletionGuard;
use crate::record::exchange_record::{ExchangeKind, ExchangeRecord};
use crate::record::request_trace::RequestTrace;
use crate::response::body::Body;
use crate::response::error_page;
use crate::response::local_reply::{Answer, ReplyFormat, local_reply, replace_by_agent};
use crate::upload::client_body::ClientBody;
use crate::upload::request_body::RequestBody;
use crate::worker::active_plan::ActivePlan;
use crate::worker::connection_info::{ConnectionInfo, RequestStream};
use crate::worker::head_recording::HeadRecording;
use crate::worker::plan_parts::Origin;
use crate::worker::state::Worker;
use bytes::Bytes;
use http::header::{ACCEPT, HOST, WWW_AUTHENTICATE};
use http::request::Parts;
use http::uri::{Authority, PathAndQuery};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, Uri, Version};
use proxy_clock::{Deadline, RequestTimers};
use proxy_errors::{Problem, ResponseForm, ServiceForm};
use proxy_http1::{RawTarget, VerbatimFields};
use proxy_model::{PageTemplate, RequestValues};
use proxy_plan::{ListenerPlan, RELAYED_METHOD, RequestHead, RoutePlan};
use proxy_telemetry::{AccessLogHead, AccessLogRequest, Protocol, RecordedFields};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// A request being handled. If it is dropped early, its record is still written: see
/// [`CompletionGuard`].
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) head: InboundHead,
    pub(crate) body: Option<ClientBody>,
    /// A gRPC call: POST over HTTP/2 with gRPC's `Content-Type`, before agents edit the head.
    pub(crate) is_grpc: bool,
    /// Forwarding claims of an untrusted client have been removed: any in the head were set by
    /// agents or by a token.
    pub(crate) has_stripped_claims: bool,
    /// Names of the fields that agents or a token have set or removed.
    pub(crate) agent_fields: Vec<HeaderName>,
    // Boxed, because it is moved often and rarely read.
    pub(crate) completion: Box<CompletionGuard>,
    /// The plan at the beginning of the request, which keeps it across reloads.
    active: Rc<ActivePlan>,
    /// Index of the connection's listener in `active`. The connection has its index in the newest
    /// plan.
    listener: usize,
    /// Header fields for the target in addition to the head's.
    pub(crate) forwarded: Option<ForwardedHeaders>,
    service: ServiceForm,
    /// The route's edits of headers, filled with the values of this request; `None` if the route's
    /// edits have no variables.
    pub(crate) edits: Option<Rc<FilledEdits>>,
    /// The authenticated user; `None` on routes without authentication.
    user: Option<Box<str>>,
    /// Scheme and host as sent by the client; `None` unless the route rewrites paths.
    pub(crate) client_origin: Option<Box<str>>,
    /// The upstream's response may be stored, so that fields for this client are added later.
    pub(crate) is_for_store: bool,
    /// `Accept`, if it mentions HTML; kept for error responses after the head has gone upstream.
    accept: Option<HeaderValue>,
    stream: RequestStream,
}

impl Exchange {
    pub(crate) fn begin(
        worker: Rc<Worker>,
        stream: RequestStream,
        head: Parts,
        fields: Option<VerbatimFields>,
        body: ClientBody,
    ) -> Self {
        let active = worker.active();
        let client = Rc::clone(&stream.client);
        let (mut head, access_head) =
            InboundHead::read(head, fields, |head| access_head(&worker, &active, head));
        let headers = &mut head.headers;
        let began = worker.time.elapsed();
        let protocol = protocol(head.version);
        count_begin(&worker, &client, protocol);
        let listener_index = client.listener.get();
        let listener = active.plan.listeners().get(listener_index);
        let trusted = listener.map_or(&[][..], |listener| &listener.trusted_proxies);
        if client.terms.is_retired() {
            client.peer.update_trust(trusted);
        }
        let client_ip = client_ip(&client.peer, headers, trusted);
        let correlation_id = correlation_id(&worker, headers, began);
        let html = headers.has(KnownHeaders::ACCEPTS_HTML);
        let accept = html.then(|| headers.first(&ACCEPT)).flatten();
        let trace = if headers.has(KnownHeaders::TRACE_PARENT) || active.traces.is_some() {
            RequestTrace::begin(&worker, &active, &mut head, client.peer.tls)
        } else {
            None
        };
        let completion = Box::new(CompletionGuard {
            watch: worker.watch_reloads(),
            worker,
            origin: Origin::Plan(Rc::clone(&active)),
            client,
            record: ExchangeRecord {
                access_head,
                trace,
                ..ExchangeRecord::new(began, correlation_id, protocol, client_ip)
            },
        });
        let is_grpc = is_grpc(&head);
        Self {
            head,
            body: Some(body),
            is_grpc,
            has_stripped_claims: false,
            agent_fields: Vec::new(),
            completion,
            active,
            listener: listener_index,
            forwarded: None,
            service: ServiceForm::Unsaid,
            edits: None,
            user: None,
            client_origin: None,
            is_for_store: false,
            accept,
            stream,
        }
    }

    /// A connection that is relayed: a head without fields and path, with the server name of the
    /// TLS handshake as its host. It counts among the tunnels.
    pub(crate) fn relayed(
        worker: Rc<Worker>,
        stream: RequestStream,
        server_name: Option<&str>,
    ) -> Self {
        let active = worker.active();
        let client = Rc::clone(&stream.client);
        let mut request = Request::new(());
        *request.method_mut() = Method::from_bytes(RELAYED_METHOD.as_bytes()).unwrap_or_default();
        match server_name.and_then(|name| name.parse::<Uri>().ok()) {
            Some(uri) => *request.uri_mut() = uri,
            None => drop(request.extensions_mut().insert(RawTarget(Bytes::new()))),
        }
        let (head, ()) = request.into_parts();
        let (head, access_head) =
            InboundHead::read(head, None, |head| access_head(&worker, &active, head));
        let began = worker.time.elapsed();
        client.in_flight.set(client.in_flight.get() + 1);
        client.requests.set(client.requests.get() + 1);
        worker.metrics.tunnels.add(1);
        worker.metrics.request(Protocol::Tcp);
        let listener_index = client.listener.get();
        let correlation_id = worker.ids.next(worker.time.unix(began));
        let client_ip = client.peer.ip;
        let completion = Box::new(CompletionGuard {
            watch: worker.watch_reloads(),
            worker,
            origin: Origin::Plan(Rc::clone(&active)),
            client,
            record: ExchangeRecord {
                access_head,
                kind: ExchangeKind::Tunnel,
                ..ExchangeRecord::new(began, correlation_id, Protocol::Tcp, client_ip)
            },
        });
        Self {
            head,
            body: None,
            is_grpc: false,
            has_stripped_claims: false,
            agent_fields: Vec::new(),
            completion,
            active,
            listener: listener_index,
            forwarded: None,
            service: ServiceForm::Unsaid,
            edits: None,
            user: None,
            client_origin: None,
            is_for_store: false,
            accept: None,
            stream,
        }
    }

    /// A copy of the request with `head` and no body, neither counted as a request nor logged.
    pub(crate) fn copy(&self, head: Parts) -> Self {
        let original = &*self.completion;
        let (head, ()) = InboundHead::read(head, None, |_| ());
        let (listener, terms) = (
            Rc::clone(&original.client.listener),
            Rc::clone(&original.client.terms),
        );
        let peer = original.client.peer.clone();
        let client = Rc::new(ConnectionInfo::new(listener, peer, true, terms));
        let completion = Box::new(CompletionGuard {
            worker: Rc::clone(&original.worker),
            origin: Origin::Plan(Rc::clone(&self.active)),
            watch: original.worker.watch_reloads(),
            client: Rc::clone(&client),
            record: ExchangeRecord {
                kind: ExchangeKind::Copy,
                ..ExchangeRecord::new(
                    original.worker.time.elapsed(),
                    original.record.correlation_id.clone(),
                    original.record.protocol,
                    original.record.client_ip,
                )
            },
        });
        Self {
            is_grpc: self.is_grpc,
            has_stripped_claims: self.has_stripped_claims,
            agent_fields: self.agent_fields.clone(),
            head,
            body: None,
            completion,
            active: Rc::clone(&self.active),
            listener: self.listener,
            forwarded: None,
            service: self.service,
            edits: self.edits.clone(),
            user: self.user.clone(),
            client_origin: None,
            is_for_store: false,
            accept: None,
            stream: RequestStream {
                client,
                deadline: Rc::default(),
            },
        }
    }

    /// The deadline of the request. A task must watch it.
    pub(crate) fn deadline(&self) -> Rc<Deadline> {
        Rc::clone(&self.stream.deadline)
    }

    /// The parts of the head on which the plan's decision depends.
    pub(crate) fn request_head(&self) -> RequestHead<'_> {
        let authority = self.head.uri.authority().map(Authority::as_str);
        let host = || self.head.headers.host()?.to_str().ok();
        let fields = &self.head.headers;
        let is_read = self.active.plan.reads_fields() || fields.has(KnownHeaders::FORWARDING);
        let headers = if is_read {
            fields.as_map()
        } else {
            fields.as_unread_map()
        };
        RequestHead {
            listener: self.listener,
            method: &self.head.method,
            host: authority.or_else(host).unwrap_or_default(),
            target: self.head.uri.path_and_query(),
            headers,
            content_length: self.head.headers.content_length(),
            client_ip: self.completion.record.client_ip,
            is_tls: self.completion.client.peer.tls,
            is_peer_trusted: self.completion.client.peer.trusted.get(),
        }
    }

    /// Encodes the head used by the decision, if this request is recorded.
    #[cold]
    pub(crate) fn record_head(&mut self, recording: &HeadRecording) {
        if !recording.takes_next() {
            return;
        }
        let head = self.request_head();
        let request = AccessLogRequest {
            method: head.method.as_str().as_bytes(),
            host: Some(head.host.as_bytes()),
            path: head
                .target
                .map_or(&b"*"[..], |target| target.as_str().as_bytes()),
            user_agent: None,
            referer: None,
        };
        let listener = self.active.plan.listeners().get(self.listener);
        let fields = RecordedFields {
            listener: listener.map_or("", |listener| &listener.name),
            headers: self.head.headers.grouped(),
        };
        let recorded = {
            let mut logs = self.worker().logs.borrow_mut();
            let log = &mut logs.recording;
            log.recorded_head(&request, fields, &recording.format)
        };
        self.record().recorded_head = recorded.map(Box::new);
    }

    /// Takes the request for the upstream, with `headers`; only the method is kept.
    pub(crate) fn take_request(
        &mut self,
        headers: HeaderMap,
        body: RequestBody,
    ) -> Request<RequestBody> {
        let mut request = Request::new(body);
        *request.method_mut() = self.head.method.clone();
        *request.uri_mut() = std::mem::take(&mut self.head.uri);
        *request.headers_mut() = headers;
        if self.head.method == Method::CONNECT {
            // The protocol of the tunnel.
            *request.extensions_mut() = std::mem::take(&mut self.head.extensions);
        } else if let Some(raw) = self.head.extensions.remove::<RawTarget>() {
            request.extensions_mut().insert(raw);
        }
        request
    }

    pub(crate) fn active(&self) -> &Rc<ActivePlan> {
        &self.active
    }

    /// Beginning of the request, since the worker's start.
    pub(crate) fn began(&self) -> Duration {
        self.completion.record.began
    }

    pub(crate) fn worker(&self) -> &Rc<Worker> {
        &self.completion.worker
    }

    pub(crate) fn client(&self) -> &Rc<ConnectionInfo> {
        &self.completion.client
    }

    pub(crate) fn record(&mut self) -> &mut ExchangeRecord {
        &mut self.completion.record
    }

    /// The listener of the request in its plan.
    pub(crate) fn listener(&self) -> Option<&ListenerPlan> {
        self.active.plan.listeners().get(self.listener)
    }

    pub(crate) fn set_route(&mut self, route: &RoutePlan) {
        self.service = route.form;
        if route.has_values {
            self.edits = Some(Rc::new(self.filled_edits(route)));
        }
        if route.rewrite.is_some() {
            let head = self.request_head();
            let origin = format!("{}://{}", head.scheme().name(), head.host);
            self.client_origin = Some(origin.into());
        }
        self.completion.record.parts.route = Some(route.index);
        if let Some(position) = route.service.upstream() {
            self.completion.record.parts.route_upstream = Some(position);
        }
    }

    /// Removes claims of untrusted peers from the head before agents see it or a token's claims are
    /// put into it, and fields that `Connection` nominates: a client could otherwise have those
    /// fields removed.
    #[cold]
    pub(crate) fn strip_claims(&mut self) {
        // The remaining claims were set by the proxy.
        if self.has_stripped_claims {
            return;
        }
        let is_trusted = self.client().peer.trusted.get();
        hop_by_hop::strip_for_agents(&mut self.head.headers, is_trusted);
        self.has_stripped_claims = !is_trusted;
    }

    /// Records the user of the request, after a right password or a valid token.
    pub(crate) fn set_user(&mut self, route: &RoutePlan, user: Box<str>) {
        self.user = Some(user);
        if route.has_values {
            self.edits = Some(Rc::new(self.filled_edits(route)));
        }
    }

    /// The timers of this exchange; `total` is its maximum time.
    pub(crate) fn timers(&self, total: Option<Duration>) -> RequestTimers {
        let clock = Rc::clone(&self.completion.worker.clock);
        RequestTimers::new(clock, Rc::clone(&self.stream.deadline), total)
    }

    /// The error response for `problem`.
    pub(crate) fn refuse(&mut self, problem: Problem) -> Response<Body> {
        // An agent's own status is kept.
        let has_usual_status = problem.status() == problem.reason().status();
        let problem = if self.active.standard_statuses && has_usual_status {
            let status = problem.reason().standard_status();
            problem.with_status(status)
        } else {
            problem
        };
        // The value matters only for the detection of gRPC, by its beginning.
        let content_type = self.is_grpc.then_some(&b"application/grpc"[..]);
        let accept = self.accept.as_ref().map(HeaderValue::as_bytes);
        let form = ResponseForm::choose(self.service, accept, content_type);
        let format = ReplyFormat {
            form,
            page: self.error_page(problem.status().as_u16()),
            correlation_id: &self.completion.record.correlation_id,
            method: &self.head.method,
            expose_reason: self
                .listener()
                .is_some_and(|listener| listener.expose_reasons),
        };
        let mut response = local_reply(&problem, format);
        let agents = self.completion.record.agents.as_mut();
        if let Some(mut reply) = agents.and_then(|agents| agents.reply.take())
            && form != ResponseForm::Grpc
        {
            self.reserve_reply(&mut reply);
            response = replace_by_agent(reply, response, &self.head.method);
        }
        if let Some(route) = self.route() {
            self.response_edits(route).apply(response.headers_mut());
            let credentials = route.credentials.as_ref();
            let challenge = credentials.and_then(|own| own.challenge(problem.reason()));
            if let Some(challenge) = challenge.filter(|_| form != ResponseForm::Grpc) {
                let headers = response.headers_mut();
                headers.insert(WWW_AUTHENTICATE, challenge.clone());
            }
        }
        if self.completion.record.access_head.is_none() {
            self.completion.record.error_head = self.error_head().map(Box::new);
        }
        let record = &mut self.completion.record;
        // A tunnel that was about to begin ends here: the target's response is not sent.
        record.upgrade = None;
        record.verbatim = None;
        record.problem = Some(Box::new(problem));
        response
    }

    /// The page of the route, else of the listener, for `status`.
    fn error_page(&self, status: u16) -> Option<&Arc<PageTemplate>> {
        let own = self.route();
        let own = own.and_then(|route| error_page::find(&route.error_pages, status));
        own.or_else(|| error_page::find(&self.listener()?.error_pages, status))
    }

    /// The route of the request in its plan.
    pub(crate) fn route(&self) -> Option<&RoutePlan> {
        let route = self.completion.record.parts.route?;
        self.active.plan.routes().get(route)
    }

    /// The edits of the response headers of `route`, for this request.
    pub(crate) fn response_edits<'e>(&'e self, route: &'e RoutePlan) -> ResponseEdits<'e> {
        if self.is_for_store {
            return ResponseEdits::NONE;
        }
        header_edits::for_response(self.edits.as_deref(), route)
    }

    /// The edits of the route, filled with the values of the request.
    #[cold]
    fn filled_edits(&self, route: &RoutePlan) -> FilledEdits {
        let head = self.request_head();
        let record = &self.completion.record;
        let session = self.completion.client.session.as_deref();
        let certificate = session.and_then(|session| session.verdict.certificate());
        let values = RequestValues {
            client_ip: record.client_ip,
            host: head.host,
            scheme: head.scheme(),
            method: head.method.as_str(),
            path: head.target.map_or("", PathAndQuery::path),
            query: head.target.and_then(PathAndQuery::query),
            route: &route.id,
            listener: self.listener().map_or("", |listener| &listener.name),
            correlation_id: record.correlation_id.as_str(),
            protocol: record.protocol.name(),
            tls_version: session.and_then(|one| one.version).unwrap_or_default(),
            tls_server_name: session
                .and_then(|one| one.server_name.as_deref())
                .unwrap_or_default(),
            tls_client_subject: certificate.map_or("", |(subject, _)| subject),
            tls_client_fingerprint: certificate.map_or("", |(_, sha256)| sha256),
            time: Some(self.worker().time.unix(record.began)),
            user: self.user.as_deref().unwrap_or_default(),
        };
        let response = route.response_headers.filled(&values);
        let cors = route.cors.as_ref();
        let cors = cors.map(|cors| cors.edits(head.method, head.headers));
        FilledEdits {
            request: route.request_headers.filled(&values),
            response: match cors {
                Some(cors) => cors.followed_by(response),
                None => response,
            },
        }
    }

    /// Restores the target of a request that could not be forwarded, for its record.
    pub(crate) fn restore_target(&mut self, request: &mut Request<RequestBody>) {
        self.head.uri = std::mem::take(request.uri_mut());
        if let Some(raw) = request.extensions_mut().remove::<RawTarget>() {
            self.head.extensions.insert(raw);
        }
        if let Some(host) = request.headers_mut().remove(HOST) {
            self.head.headers.insert(HOST, host);
        }
    }

    /// The encoded head for an error record.
    fn error_head(&self) -> Option<AccessLogHead> {
        let head = &self.head;
        let forwarded = self.forwarded.as_ref();
        let host = forwarded.and_then(|forwarded| forwarded.host.as_ref());
        let host = host.or_else(|| head.headers.host());
        let authority = head.uri.authority().map(|host| host.as_str().as_bytes());
        let request = AccessLogRequest {
            method: head.method.as_str().as_bytes(),
            host: host.map(HeaderValue::as_bytes).or(authority),
            path: path_as_sent(&head.uri, &head.extensions),
            user_agent: None,
            referer: None,
        };
        let errors = &mut self.worker().logs.borrow_mut().errors;
        errors.access_head(&request, &self.active.error_format)
    }

    pub(crate) fn answer(&self, answer: Answer) -> Response<Body> {
        answer.into_response(&self.head.method)
    }
}

fn correlation_id(worker: &Worker, headers: &IndexedHeaders, began: Duration) -> CorrelationId {
    let sent = headers
        .has(KnownHeaders::CORRELATION_ID)
        .then(|| headers.as_map().get(names::CORRELATION_ID))
        .flatten()
        .filter(|id| is_acceptable(id.as_bytes()));
    match sent {
        Some(id) => CorrelationId::Sent(id.clone()),
        None => worker.ids.next(worker.time.unix(began)),
    }
}

/// Counts a request that begins; the guard of its completion counts its end.
#[inline]
fn count_begin(worker: &Worker, client: &ConnectionInfo, protocol: Protocol) {
    client.in_flight.set(client.in_flight.get() + 1);
    client.requests.set(client.requests.get() + 1);
    worker.metrics.requests_in_flight.add(1);
    worker.metrics.request(protocol);
}

fn is_grpc(head: &InboundHead) -> bool {
    head.headers.has(KnownHeaders::GRPC)
        && matches!(head.version, Version::HTTP_2 | Version::HTTP_3)
        && head.method == Method::POST
}

fn protocol(version: Version) -> Protocol {
    match version {
        Version::HTTP_10 => Protocol::Http10,
        Version::HTTP_2 => Protocol::Http2,
        Version::HTTP_3 => Protocol::Http3,
        _ => Protocol::Http11,
    }
}

/// Encodes the head for the access log.
#[inline]
fn access_head(
    worker: &Worker,
    active: &ActivePlan,
    head: LoggedHead<'_>,
) -> Option<AccessLogHead> {
    let format = active.access_format.as_ref()?;
    let authority = head.uri.authority().map(|host| host.as_str().as_bytes());
    let request = AccessLogRequest {
        method: head.method.as_str().as_bytes(),
        host: head.headers.host.or(authority),
        path: path_as_sent(head.uri, head.extensions),
        user_agent: head.headers.user_agent,
        referer: head.headers.referer,
    };
    let access = &mut worker.logs.borrow_mut().access;
    access.access_head(&request, format)
}
