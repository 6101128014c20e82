//! Sends a request to a target and brings the response back.

use crate::body::Body;
use crate::client_body::ClientBody;
use crate::exchange::Exchange;
use crate::failure::{connect_problem, framing_problem, send_problem};
use crate::policy::request_head::{self, Length};
use crate::policy::response_head;
use crate::request_body::{BodyFault, Progress, RequestBody, Times};
use crate::state::ActivePlan;
use crate::upgrade::{self, Asked};
use crate::{interim, replay};
use http::{Method, Request, Response, StatusCode, Version};
use http_body::Body as _;
use hyper::body::Incoming;
use proxy_clock::{Timer, Timers};
use proxy_errors::{Detail, Problem, Reason};
use proxy_framing::RequestKind;
use proxy_plan::{RoutePlan, UpstreamPlan};
use proxy_pool::{
    ConnectFault, Connection, Pool, ResponseBody, SendFault, TargetSlot, connect, wait_for_place,
};
use std::rc::Rc;
use std::time::Duration;

/// Where a request goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Destination<'p> {
    pub(crate) route: &'p RoutePlan,
    pub(crate) upstream: &'p UpstreamPlan,
    pub(crate) target: u16,
    pub(crate) total: Option<Duration>,
}

/// What stays the same over all attempts to send one request.
struct Attempts<'e, 'p> {
    exchange: &'e mut Exchange,
    active: Rc<ActivePlan>,
    pool: Rc<Pool<RequestBody>>,
    to: Destination<'p>,
    timers: Timers,
    wire: proxy_pool::Exchange,
    upload: Option<Rc<Progress>>,
    tried: Vec<u16>,
}

/// A connection, and whether it had served a request before.
struct Link {
    connection: Connection<RequestBody>,
    slot: TargetSlot,
    kept: bool,
}

/// Forwards the request of `exchange` and answers with the target's response.
pub(crate) async fn send(
    exchange: &mut Exchange,
    to: Destination<'_>,
) -> Result<Response<Body>, Problem> {
    let body = exchange.body.take().filter(|body| !body.is_end_stream());
    let length = match (&body, exchange.found.content_length) {
        (Some(_), None) => Length::Chunked,
        (Some(_), Some(_)) | (None, _) => Length::Known,
    };
    let asked = request_head::apply(exchange, to, length);
    let timers = exchange.timers(to.total);
    let wire = proxy_pool::Exchange {
        kind: kind(&exchange.head.method, asked.is_some()),
        replayable: replay::may_repeat(&exchange.head.method, body.is_some()),
    };
    let (body, upload) = match body {
        Some(body) => {
            let (body, progress) = upload(exchange, to.route, body, &timers);
            (body, Some(progress))
        }
        None => (RequestBody::default(), None),
    };
    exchange.facts().upload.clone_from(&upload);
    let active = Rc::clone(&exchange.closing.active);
    if let Some(upstream) = active.upstreams.get(to.upstream.index) {
        upstream.turn.set(upstream.turn.get().wrapping_add(1));
    }
    let pool = Rc::clone(&exchange.worker().pool);
    let mut attempts = Attempts {
        exchange,
        active,
        pool,
        to,
        timers,
        wire,
        upload,
        tried: Vec::new(),
    };
    let request = attempts.exchange.take_request(body);
    let (response, link) = attempts.run(request).await?;
    attempts.bring_back(response, link, asked.as_ref())
}

impl Attempts<'_, '_> {
    /// Sends the request until somebody answers or it must not be sent again.
    async fn run(
        &mut self,
        mut request: Request<RequestBody>,
    ) -> Result<(Response<Incoming>, Link), Problem> {
        let mut target = self.to.target;
        loop {
            self.exchange.ask(self.to.upstream.index, target);
            let mut link = match self.link(target).await {
                Ok(link) => link,
                Err(fault) => {
                    let problem = connect_problem(&fault, &self.to.upstream.name);
                    target = self.next_target(target, problem)?;
                    continue;
                }
            };
            let began = self.exchange.worker().time.elapsed();
            match self.attempt(&mut link.connection, request).await {
                Ok(response) => {
                    let took = self.exchange.worker().time.elapsed().saturating_sub(began);
                    self.answered(took);
                    return Ok((response, link));
                }
                // The target had closed a kept connection: nothing was sent, nobody is to blame.
                Err(SendFault::Unsent(unsent)) if link.kept => {
                    self.note_stale();
                    request = *unsent;
                }
                Err(fault) => {
                    let repeated = self.repeat(link, &fault);
                    let problem = self.problem(&fault);
                    let Some(again) = repeated else {
                        self.note_failure(&problem);
                        return Err(problem);
                    };
                    request = again;
                }
            }
        }
    }

    /// A connection to `target`: one that was kept, else a new one.
    async fn link(&self, target: u16) -> Result<Link, ConnectFault> {
        let plan = self.to.upstream.targets.get(usize::from(target));
        let plan = plan.ok_or(ConnectFault::NoAddress)?;
        let slot = TargetSlot(plan.slot);
        let generation = plan.state.generation();
        if let Some(connection) = self.pool.take(slot, generation) {
            return Ok(Link {
                connection,
                slot,
                kept: true,
            });
        }
        // Boxed: it is rare, and would make every request's future as large as itself.
        let connection = Box::pin(self.open(target, slot, generation)).await?;
        Ok(Link {
            connection,
            slot,
            kept: false,
        })
    }

    async fn open(
        &self,
        target: u16,
        slot: TargetSlot,
        generation: u32,
    ) -> Result<Connection<RequestBody>, ConnectFault> {
        let (plan, links) = self.target(target).ok_or(ConnectFault::NoAddress)?;
        let mut settings = links.clone();
        settings.timeout = self.to.route.times.connect;
        let permit = match self.pool.limit(slot) {
            Some(limit) => Some(wait_for_place(&limit, settings.timeout, &self.timers).await?),
            None => None,
        };
        let transport = connect(&plan.state.addresses(), &settings, &self.timers).await?;
        let limits = self.active.response_limits;
        Connection::start(transport, limits, generation, permit)
            .await
            .map_err(|error| ConnectFault::Io(std::io::Error::other(error)))
    }

    fn target(
        &self,
        target: u16,
    ) -> Option<(&proxy_plan::TargetPlan, &proxy_pool::ConnectSettings)> {
        let upstream = self.active.upstreams.get(self.to.upstream.index)?;
        let plan = self.to.upstream.targets.get(usize::from(target))?;
        Some((plan, upstream.links.targets.get(usize::from(target))?))
    }

    fn attempt(
        &self,
        connection: &mut Connection<RequestBody>,
        request: Request<RequestBody>,
    ) -> impl Future<Output = Result<Response<Incoming>, SendFault<Request<RequestBody>>>> {
        let times = &self.to.route.times;
        match &self.upload {
            Some(_) => self.timers.start(Timer::UpstreamWrite, times.read),
            None => self.timers.start(Timer::ResponseHeader, times.response),
        }
        let client = Rc::clone(self.exchange.client());
        // HTTP/1.0 knows one response for each request. [RFC 9110 §15.2]
        let understands = self.exchange.head.version >= Version::HTTP_11;
        let deadline = self.timers.deadline();
        connection.send(self.wire, request, deadline, move |wire| {
            let heads = wire.take_informational();
            if !heads.is_empty() && understands {
                client.announce(&interim::for_clients(&heads));
            }
        })
    }

    /// The target to ask after `failed` could not be connected to. Nothing was sent, so any method
    /// may go elsewhere.
    fn next_target(&mut self, failed: u16, problem: Problem) -> Result<u16, Problem> {
        self.note_failure(&problem);
        self.tried.push(failed);
        let next = self.may_retry().then(|| self.untried()).flatten();
        match next {
            Some(target) => {
                self.note_retry();
                Ok(target)
            }
            None => Err(problem),
        }
    }

    fn untried(&self) -> Option<u16> {
        let upstream = self.active.upstreams.get(self.to.upstream.index)?;
        let ready = upstream.ready.borrow();
        let balancing = self.to.upstream.balancing;
        balancing.choose_another(upstream.turn.get(), ready.targets(), &self.tried)
    }

    /// The request again, when a kept connection ended without a word and it may be repeated.
    fn repeat(
        &mut self,
        link: Link,
        fault: &SendFault<Request<RequestBody>>,
    ) -> Option<Request<RequestBody>> {
        let silent = link.kept && link.connection.wire().received() == 0;
        let closed = matches!(fault, SendFault::Closed(_));
        if !silent || !closed || !self.wire.replayable || !self.may_retry() {
            return None;
        }
        let again = replay::request(&link.connection.into_sent_head())?;
        self.note_stale();
        self.note_retry();
        Some(again)
    }

    fn may_retry(&mut self) -> bool {
        self.exchange.facts().retries == 0
    }

    fn note_retry(&mut self) {
        self.exchange.facts().retries += 1;
        if let Some((upstream, _)) = self.exchange.asked() {
            upstream.cells.retries.add(1);
        }
    }

    fn note_stale(&self) {
        if let Some((upstream, _)) = self.exchange.asked() {
            upstream.cells.pool_stale.add(1);
        }
    }

    fn note_failure(&self, problem: &Problem) {
        let reason = problem.reason();
        if !reason.counts_against_upstream() {
            return;
        }
        if let Some((upstream, target)) = self.exchange.asked() {
            upstream
                .cells
                .failed(u16::try_from(reason.index()).unwrap_or(u16::MAX));
            target.failures.add(1);
        }
    }

    fn problem(&self, fault: &SendFault<Request<RequestBody>>) -> Problem {
        let upload = self
            .upload
            .as_ref()
            .and_then(|progress| progress.fault.get());
        if let (Some(BodyFault::CutOff), Some(fault)) = (upload, self.exchange.client().fault.get())
        {
            return framing_problem(fault);
        }
        send_problem(fault, &self.to.upstream.name, upload)
    }

    fn answered(&mut self, took: Duration) {
        self.exchange.facts().upstream_took = Some(took);
        if let Some((upstream, _)) = self.exchange.asked() {
            upstream.cells.answered(took);
        }
    }

    fn bring_back(
        self,
        response: Response<Incoming>,
        link: Link,
        asked: Option<&Asked>,
    ) -> Result<Response<Body>, Problem> {
        let route = self.to.route;
        let (mut head, body) = response.into_parts();
        if head.status == StatusCode::SWITCHING_PROTOCOLS {
            return upgrade::switch(self.exchange, route, link.connection, head, asked);
        }
        if head.status.is_success() && asked.is_some_and(Asked::is_bootstrapped) {
            // The client would take it for the beginning of its tunnel.
            let detail = Detail::name(&*self.to.upstream.name);
            return Err(Problem::new(Reason::UpgradeDeclined, detail));
        }
        response_head::apply(route, &mut head);
        let body = ResponseBody::new(body, link.connection, self.pool, link.slot);
        self.timers.stop();
        let body = Body::upstream(body, self.timers, route.times.read);
        Ok(Response::from_parts(head, body))
    }
}

fn upload(
    exchange: &Exchange,
    route: &RoutePlan,
    body: ClientBody,
    timers: &Timers,
) -> (RequestBody, Rc<Progress>) {
    let body_idle = exchange
        .listener()
        .map_or(route.times.read, |listener| listener.body_idle_time);
    let times = Times {
        body_idle,
        write: route.times.read,
        response: route.times.response,
    };
    RequestBody::new(body, route.max_body_bytes, times, timers.clone())
}

fn kind(method: &Method, upgrade: bool) -> RequestKind {
    match (upgrade, *method == Method::HEAD) {
        (true, _) => RequestKind::Upgrade,
        (false, true) => RequestKind::Head,
        (false, false) => RequestKind::Other,
    }
}
