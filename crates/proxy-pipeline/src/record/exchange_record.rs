//! The data of an exchange, collected until it ends.

use crate::headers::correlation::CorrelationId;
use crate::limits::request_permits::RequestPermits;
use crate::limits::route_limits::RateLimitStatus;
use crate::record::agent_record::AgentRecord;
use crate::record::request_trace::RequestTrace;
use crate::record::retry_record::RetryRecord;
use crate::record::wait_times::WaitTimes;
use crate::upload::request_body::Progress;
use crate::worker::cache_counters::CacheOutcome;
use crate::worker::plan_parts::PlanParts;
use http::StatusCode;
use proxy_errors::Problem;
use proxy_health::BreakerPermit;
use proxy_http1::VerbatimFields;
use proxy_pool::{ConnectionPermit, Tunnel};
use proxy_telemetry::{AccessLogHead, Protocol};
use proxy_upstream::ActiveRequest;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct ExchangeRecord {
    pub(crate) began: Duration,
    pub(crate) correlation_id: CorrelationId,
    pub(crate) protocol: Protocol,
    pub(crate) client_ip: IpAddr,
    pub(crate) parts: PlanParts,
    /// Connected to the last target, and counted as a request there.
    pub(crate) connected: bool,
    /// `None` until there is a response.
    pub(crate) status: Option<StatusCode>,
    pub(crate) bytes_out: u64,
    /// Bytes from the client after a protocol switch.
    pub(crate) tunnelled_in: u64,
    pub(crate) complete: bool,
    pub(crate) retry: RetryRecord,
    pub(crate) upstream_took: Option<Duration>,
    pub(crate) waits: WaitTimes,
    pub(crate) upload: Option<Rc<Progress>>,
    pub(crate) problem: Option<Box<Problem>>,
    pub(crate) permits: RequestPermits,
    /// Fields of the target's response that are not in its map.
    pub(crate) verbatim: Option<VerbatimFields>,
    /// Values of the `X-RateLimit-*` fields, if a limit applies.
    pub(crate) rate: Option<RateLimitStatus>,
    /// Counts this request as active at its target; `None` if the balancer ignores load.
    pub(crate) load: Option<ActiveRequest>,
    /// Permit of the route's breaker, until the result is reported.
    pub(crate) breaker: Option<BreakerPermit>,
    /// The time at which the outcome is recorded at the target.
    pub(crate) target_outcome: TargetOutcome,
    /// Effect of the cache; `None` on routes without one.
    pub(crate) cache: Option<CacheOutcome>,
    /// Decisions of agents; `None` on routes without agents.
    pub(crate) agents: Option<Box<AgentRecord>>,
    /// The encoded head for the access record; `None` if the log is off.
    pub(crate) access_head: Option<AccessLogHead>,
    /// The encoded head for the recording; `None` for a request that is not recorded.
    pub(crate) recorded_head: Option<Box<AccessLogHead>>,
    /// The encoded head for an error record, if that log is off.
    pub(crate) error_head: Option<Box<AccessLogHead>>,
    /// The trace of the request: received, or begun here.
    pub(crate) trace: Option<Box<RequestTrace>>,
    /// The stream to the target of a protocol switch that the response agrees to.
    pub(crate) upgrade: Option<Box<AgreedUpgrade>>,
    pub(crate) kind: ExchangeKind,
}

/// The time at which the outcome of a request is recorded at its target: in its breaker, its
/// passive health check and its counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TargetOutcome {
    /// Recorded with the head of the response, or with the failure before it.
    #[default]
    AtHead,
    /// Recorded with the end of the body.
    AtEnd,
    /// Success with the head, because the body is a stream that may have no end; failure with its
    /// end.
    OnFailure,
}

/// The gauge in which an exchange is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExchangeKind {
    /// Requests in flight.
    Request,
    /// Tunnels.
    Tunnel,
    /// No record: a copy of a request for another upstream.
    Copy,
}

/// A protocol switch that target and client have agreed to, until its response is finished.
#[derive(Debug)]
pub(crate) struct AgreedUpgrade {
    /// The target's side.
    pub(crate) tunnel: Tunnel,
    /// The permit of the target's connection, if it is exclusive and limited.
    pub(crate) permit: Option<ConnectionPermit>,
    /// Maximum time without traffic in either direction.
    pub(crate) idle: Duration,
}

impl ExchangeRecord {
    /// The record of an exchange that begins.
    #[inline]
    pub(crate) fn new(
        began: Duration,
        correlation_id: CorrelationId,
        protocol: Protocol,
        client_ip: IpAddr,
    ) -> Self {
        Self {
            began,
            correlation_id,
            protocol,
            client_ip,
            parts: PlanParts::default(),
            connected: false,
            status: None,
            bytes_out: 0,
            tunnelled_in: 0,
            complete: false,
            retry: RetryRecord::default(),
            upstream_took: None,
            waits: WaitTimes::default(),
            upload: None,
            problem: None,
            permits: RequestPermits::default(),
            verbatim: None,
            rate: None,
            load: None,
            breaker: None,
            target_outcome: TargetOutcome::AtHead,
            cache: None,
            agents: None,
            access_head: None,
            recorded_head: None,
            error_head: None,
            trace: None,
            upgrade: None,
            kind: ExchangeKind::Request,
        }
    }
}
