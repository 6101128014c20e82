//! The settings of routes' policies.

use super::block::Block;
use proxy_model::registry::policies;
use proxy_model::{HeaderEdits, Policies, RateLimit, Retry, RouteTimeouts};

/// Adds a route's policies to its settings.
pub(super) fn put_policies(block: &mut Block<'_>, own: &Policies) {
    let Policies {
        timeouts,
        max_body_size,
        rate_limit,
        request_headers,
        response_headers,
        buffer_requests,
        buffer_responses,
        retry,
    } = own;
    let RouteTimeouts {
        connect,
        request,
        read,
        idle,
    } = timeouts;
    block.put(&policies::REQUEST, request);
    block.put(&policies::CONNECT, connect);
    block.put(&policies::READ, read);
    block.put(&policies::IDLE, idle);
    block.put(&policies::MAX_BODY_SIZE, max_body_size);
    if let Some(rate_limit) = rate_limit {
        put_rate_limit(block, rate_limit);
    }
    let HeaderEdits { remove, set, add } = request_headers;
    block.put(&policies::REMOVE_REQUEST, remove);
    block.put(&policies::SET_REQUEST, set);
    block.put(&policies::ADD_REQUEST, add);
    let HeaderEdits { remove, set, add } = response_headers;
    block.put(&policies::REMOVE_RESPONSE, remove);
    block.put(&policies::SET_RESPONSE, set);
    block.put(&policies::ADD_RESPONSE, add);
    block.put(&policies::BUFFER_REQUESTS, [buffer_requests]);
    block.put(&policies::BUFFER_RESPONSES, [buffer_responses]);
    if let Some(retry) = retry {
        put_retry(block, retry);
    }
}

fn put_rate_limit(block: &mut Block<'_>, rate_limit: &RateLimit) {
    let RateLimit {
        place: _,
        requests_per_second,
        burst,
        key,
    } = rate_limit;
    block.put(&policies::REQUESTS_PER_SECOND, [requests_per_second]);
    block.put(&policies::BURST, [burst]);
    block.put(&policies::KEY, [key]);
}

fn put_retry(block: &mut Block<'_>, retry: &Retry) {
    let Retry {
        place: _,
        attempts,
        on,
        budget_percent,
    } = retry;
    block.put(&policies::ATTEMPTS, [attempts]);
    block.put(&policies::ON, [on]);
    block.put(&policies::BUDGET_PERCENT, [budget_percent]);
}
