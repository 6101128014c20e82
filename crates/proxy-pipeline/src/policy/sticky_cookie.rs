//! The cookie that binds a client to the target that has answered it.

use crate::exchange::Exchange;
use http::header::SET_COOKIE;
use http::{HeaderMap, HeaderValue};
use proxy_plan::{Choice, UpstreamPlan};

/// Adds the cookie to a response's `headers`, where its upstream is sticky and the client's cookie
/// does not name the target already. [RFC 6265 §4.1]
pub(crate) fn apply(
    exchange: &Exchange,
    upstream: &UpstreamPlan,
    choice: &Choice,
    headers: &mut HeaderMap,
) {
    let Some(sticky) = &upstream.balancing.sticky else {
        return;
    };
    let called = exchange.completion.record.parts.upstream;
    let token = called.and_then(|(_, target)| sticky.tokens.get(usize::from(target)));
    let Some(token) = token.filter(|token| choice.request.session != Some(**token)) else {
        return;
    };
    let secure = if choice.request.is_https {
        "; Secure"
    } else {
        ""
    };
    let value = token.value();
    let value = String::from_utf8_lossy(&value);
    let cookie = format!(
        "{}={value}; Path=/; HttpOnly; SameSite=Lax{secure}",
        sticky.cookie
    );
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        headers.append(SET_COOKIE, cookie);
    }
}
