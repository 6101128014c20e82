//! Counting and logging of problems.

use crate::failure::waited;
use crate::worker::connection_info::ConnectionInfo;
use crate::worker::state::Worker;
use proxy_errors::{Detail, ErrorType, LimitType, Problem, Reason};
use proxy_telemetry::{AccessLogHead, ErrorRecord, Level, LimitRecord, LimitSetting, TraceId};
use std::net::IpAddr;
use std::time::Duration;

/// The context of a problem: its request, or its connection.
#[derive(Debug)]
pub(crate) struct ErrorContext<'a> {
    /// Time since 1970.
    pub(crate) at: Duration,
    pub(crate) took: Duration,
    pub(crate) correlation_id: &'a str,
    pub(crate) trace_id: Option<&'a TraceId>,
    pub(crate) client_ip: IpAddr,
    pub(crate) status: u16,
    pub(crate) upstream: Option<&'a str>,
    pub(crate) target: Option<&'a str>,
    pub(crate) head: Option<&'a AccessLogHead>,
    pub(crate) route: Option<&'a str>,
}

/// A reached limit, for its record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReachedLimit {
    /// `None` for memory, which the closed list of types does not have.
    pub(crate) limit_type: Option<LimitType>,
    pub(crate) actual: u64,
    pub(crate) limit: u64,
    /// `None` for a fixed limit.
    pub(crate) setting: Option<&'static str>,
}

/// Counts `problem` and writes its records. A client's disconnect is only counted.
#[cold]
pub(crate) fn log_problem(worker: &Worker, problem: &Problem, context: &ErrorContext<'_>) {
    let ErrorContext {
        at,
        took,
        correlation_id,
        trace_id: _,
        client_ip,
        status,
        upstream,
        target,
        head,
        route,
    } = *context;
    let reason = problem.reason();
    let setting = count(worker, problem);
    if reason == Reason::ClientAborted {
        return;
    }
    let level = if status >= 500 {
        Level::Error
    } else {
        Level::Warn
    };
    let warns = worker.logs.borrow().warnings;
    let client_ip = client_ip.to_string();
    let message = problem.log_message();
    if let Some(reached) = reached_limit(worker, problem) {
        note_reached(worker, &reached, &message, context);
    }
    if level == Level::Warn && !warns {
        return;
    }
    worker.logs.borrow_mut().errors.error(&ErrorRecord {
        level,
        at,
        correlation_id,
        error_type: problem.error_type().name(),
        http_status: status,
        message: &message,
        reason: reason.as_str(),
        upstream,
        target,
        route,
        client_ip: &client_ip,
        head,
        took,
        field: problem.field(),
        setting,
    });
}

/// Returns true for refusals by policy: by rules of access, credentials, agents and limits.
const fn is_refusal(error_type: ErrorType) -> bool {
    matches!(
        error_type,
        ErrorType::AuthenticationFailed
            | ErrorType::AuthorizationFailed
            | ErrorType::WafBlocked
            | ErrorType::LimitExceeded
            | ErrorType::RateLimit
    )
}

/// Counts `problem` by its reason, and by the setting of its limit, which is returned.
fn count(worker: &Worker, problem: &Problem) -> Option<&'static str> {
    let reason = problem.reason();
    let index = u16::try_from(reason.index()).unwrap_or(u16::MAX);
    worker.metrics.failed(index);
    if is_refusal(reason.error_type()) {
        worker.metrics.blocked(index);
    }
    let setting = setting(worker, problem);
    if let Some(setting) = setting.and_then(LimitSetting::from_path) {
        worker.metrics.rejected(setting);
    }
    setting
}

/// The setting of the limit that was reached; of the two memory limits, the active one.
fn setting(worker: &Worker, problem: &Problem) -> Option<&'static str> {
    if problem.reason() != Reason::MemoryPressure {
        return problem.setting();
    }
    let is_by_percent = worker.shared.memory.is_by_percent();
    let setting = if is_by_percent {
        LimitSetting::MaxMemoryPercent
    } else {
        LimitSetting::MaxMemory
    };
    Some(setting.path())
}

/// Counts and logs that a request exceeded a limit with `observe-only`.
#[cold]
pub(crate) fn note_observed(worker: &Worker, problem: &Problem, context: &ErrorContext<'_>) {
    worker.metrics.rate_limits_observed.add(1);
    if let Some(reached) = reached_limit(worker, problem) {
        let message = format!(
            "{} (served: the limit only observes)",
            problem.log_message()
        );
        write_limit(worker, &reached, &message, context);
    }
}

/// Counts and logs a reached limit.
pub(crate) fn note_reached(
    worker: &Worker,
    reached: &ReachedLimit,
    message: &str,
    context: &ErrorContext<'_>,
) {
    if let Some(limit_type) = reached.limit_type {
        worker.metrics.limit_met(limit_type);
    }
    write_limit(worker, reached, message, context);
}

fn write_limit(worker: &Worker, reached: &ReachedLimit, message: &str, context: &ErrorContext<'_>) {
    if !worker.logs.borrow().warnings {
        return;
    }
    let ReachedLimit {
        limit_type,
        actual,
        limit,
        setting,
    } = *reached;
    let id = context.correlation_id;
    let trace_id = context.trace_id.map(|id| &id[..]);
    let trace_id = trace_id.and_then(|id| str::from_utf8(id).ok());
    worker.logs.borrow_mut().errors.limit(&LimitRecord {
        at: context.at,
        message,
        repeated: 0,
        limit_type,
        limit,
        actual,
        client_ip: context.client_ip,
        trace_id: Some(trace_id.unwrap_or(id)).filter(|id| !id.is_empty()),
        correlation_id: Some(id).filter(|id| !id.is_empty()),
        setting,
    });
}

/// Logs the reason why a connection was closed outside of any request, without a response.
pub fn log_connection_problem(worker: &Worker, client: &ConnectionInfo, problem: &Problem) {
    let at = worker.time.unix(worker.time.elapsed());
    // A new ID, which no response has, connects the two records of this connection.
    let correlation_id = worker.ids.next(at);
    let context = ErrorContext {
        at,
        took: waited(problem),
        correlation_id: correlation_id.as_str(),
        trace_id: None,
        client_ip: client.peer.ip,
        status: problem.status().as_u16(),
        upstream: None,
        target: None,
        head: None,
        route: None,
    };
    log_problem(worker, problem, &context);
}

/// Counts a connection from `client_ip` that was closed without a response because of a limit. Of
/// its records, only the one of the limit is written, which a flood folds.
pub fn count_closed_connection(worker: &Worker, client_ip: IpAddr, problem: &Problem) {
    count(worker, problem);
    let Some(reached) = reached_limit(worker, problem) else {
        return;
    };
    let context = ErrorContext {
        at: worker.time.unix(worker.time.elapsed()),
        took: Duration::ZERO,
        correlation_id: "",
        trace_id: None,
        client_ip,
        status: problem.status().as_u16(),
        upstream: None,
        target: None,
        head: None,
        route: None,
    };
    note_reached(worker, &reached, &problem.log_message(), &context);
}

fn counted(detail: &Detail) -> (u64, u64) {
    match detail {
        Detail::Limit { current, limit } | Detail::LimitAtLeast { current, limit } => {
            (*current, *limit)
        }
        // The wait and its limit are the same.
        Detail::After(time) => (as_millis(*time), as_millis(*time)),
        Detail::None | Detail::Text(_) | Detail::Named { .. } => (0, 0),
    }
}

/// In milliseconds, rounded up.
fn as_millis(time: Duration) -> u64 {
    u64::try_from(time.as_micros().div_ceil(1_000)).unwrap_or(u64::MAX)
}

/// The limit that the problem is about. Agents' limits are noted where their calls end, because an
/// agent may fail open.
fn reached_limit(worker: &Worker, problem: &Problem) -> Option<ReachedLimit> {
    let setting = setting(worker, problem);
    if problem.reason() == Reason::MemoryPressure {
        let memory = &worker.shared.memory;
        return Some(ReachedLimit {
            limit_type: None,
            actual: memory.used_bytes(),
            limit: memory.max_bytes()?,
            setting,
        });
    }
    let limit_type = limit_met(problem.reason())?;
    let (actual, limit) = counted(problem.detail());
    Some(ReachedLimit {
        limit_type: Some(limit_type),
        actual,
        limit,
        setting,
    })
}

/// The limit that this reason belongs to.
///
/// A request rate belongs to the type `RateLimit`. Other reasons with that limit type are frame
/// floods, which no setting limits and which are counted by their reason.
fn limit_met(reason: Reason) -> Option<LimitType> {
    if reason.error_type() == ErrorType::RateLimit {
        return Some(LimitType::RequestRate);
    }
    let limit_type = reason.limit_type()?;
    (limit_type != LimitType::RequestRate).then_some(limit_type)
}
