//! Cross-origin requests.

use crate::policies::OriginPattern;
use crate::registry::kind::Block;
use crate::registry::number::Time;
use crate::registry::spec::{DefaultValue, Repeatable, Required, Spec, Unset};
use crate::registry::table::{block, flag, settings, text, time_from};
use crate::registry::text::Text;
use crate::registry::word::Flag;
use http::{HeaderName, Method};
use std::time::Duration;

const BY: &str = "proxy-server";

const fn name(path: &'static str) -> Spec<Text<HeaderName>, Required> {
    text(path, "a header name", "X-Total-Count", |text| {
        HeaderName::from_bytes(text.as_bytes()).map_err(|error| error.to_string())
    })
}

settings! {
    /// Origins of pages that may use the route, for browsers. Preflight requests (`OPTIONS` with
    /// `Origin` and `Access-Control-Request-Method`) are answered 204 by the proxy itself, so the
    /// route must match `OPTIONS`. Fields `Access-Control-…` of the upstream are replaced.
    CORS: Block, Unset = block("routes.route.policies.cors")
        .optional("the upstream's headers")
        .also(&["routes.route"])
        .enforced(BY, "pages_of_allowed_origins_may_use_a_route");
    /// Origins that are allowed: `https://app.example.com`, `https://*.example.com` for all names below one, or
    /// `*` for every origin.
    ALLOW_ORIGINS: Text<OriginPattern>, Repeatable = text(
        "routes.route.policies.cors.allow-origins",
        "an origin",
        "https://app.example.com",
        |text| text.parse::<OriginPattern>().map_err(str::to_owned),
    )
    .many()
    .enforced(BY, "pages_of_allowed_origins_may_use_a_route");
    /// Methods that are allowed. Without the setting: GET, HEAD and POST.
    ALLOW_METHODS: Text<Method>, Repeatable = text(
        "routes.route.policies.cors.allow-methods",
        "a method",
        "PUT",
        |text| Method::from_bytes(text.as_bytes()).map_err(|error| error.to_string()),
    )
    .many()
    .enforced(BY, "a_preflight_request_is_answered_by_the_proxy");
    /// Permitted header fields of requests, in addition to CORS-safelisted ones.
    ALLOW_HEADERS: Text<HeaderName>, Repeatable = name("routes.route.policies.cors.allow-headers")
        .many()
        .enforced(BY, "a_preflight_request_is_answered_by_the_proxy");
    /// Header fields of responses that pages may read, in addition to CORS-safelisted ones.
    EXPOSE_HEADERS: Text<HeaderName>, Repeatable = name("routes.route.policies.cors.expose-headers")
        .many()
        .enforced(BY, "pages_of_allowed_origins_may_use_a_route");
    /// Permits requests with cookies and other credentials. Excludes `*`.
    ALLOW_CREDENTIALS: Flag, DefaultValue<bool> = flag("routes.route.policies.cors.allow-credentials")
        .or(false)
        .enforced(BY, "pages_of_allowed_origins_may_use_a_route");
    /// Time for which browsers keep the answer to a preflight request.
    MAX_AGE: Time, DefaultValue<Duration> = time_from(
        "routes.route.policies.cors.max-age-secs",
        Duration::ZERO,
        Duration::from_hours(24),
    )
    .or(Duration::from_mins(10))
    .enforced(BY, "a_preflight_request_is_answered_by_the_proxy");
}
