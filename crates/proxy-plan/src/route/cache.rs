//! Caching of a route's responses.

use proxy_cache::{CacheSettings, StoreLimits};
use proxy_model::registry::policies::{self as rows, cache as cache_rows, rewrite as rewrite_rows};
use proxy_model::registry::routes as route_rows;
use proxy_model::{self as model, HeaderField, Model, Part, Setting, effective_in};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

/// The compiled caching of a route's responses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachePlan {
    /// Lifetimes and key of the route's responses.
    pub settings: CacheSettings,
    /// Identifies the route and all settings that stored responses depend on: after a change of
    /// one, earlier responses are not found.
    pub selector: Box<[u8]>,
    /// True if each response may be for one client only: the route requires credentials, or sends
    /// values of the request to the upstream. A response is stored only if it permits use for other
    /// requests.
    pub is_personal: bool,
}

/// Rows of settings that the stored responses of a route depend on.
const ROWS: [&str; 10] = [
    route_rows::UPSTREAM.path,
    rewrite_rows::REWRITE.path,
    rows::REQUEST_HEADERS.path,
    cache_rows::TTL.path,
    cache_rows::HEURISTIC.path,
    cache_rows::STATUSES.path,
    cache_rows::KEY_HEADERS.path,
    cache_rows::IGNORE_QUERY.path,
    cache_rows::STALE_WHILE_REVALIDATE.path,
    cache_rows::STALE_IF_ERROR.path,
];

impl CachePlan {
    pub(crate) fn compile(route: &model::Route, model: &Model) -> Option<Self> {
        let policies = &route.policies;
        let model::RouteCache {
            place: _,
            ttl,
            heuristic_percent,
            statuses,
            key_headers,
            ignore_query,
            stale_while_revalidate,
            stale_if_error,
            collapse,
            client_directives,
            cache_status,
        } = policies.cache.as_ref()?;
        let mut selector = route.id.clone().into_bytes();
        selector.push(0);
        selector.extend_from_slice(&fingerprint(route, model).to_be_bytes());
        let requires_credentials = policies.basic_auth.is_some() || policies.jwt.is_some();
        Some(Self {
            settings: CacheSettings {
                default_ttl: ttl.map(|ttl| seconds(*ttl)),
                heuristic_percent: heuristic_percent.map(|percent| *percent),
                statuses: statuses.value.clone(),
                key_headers: key_headers.iter().map(|name| name.value.clone()).collect(),
                ignore_query: ignore_query.iter().map(|name| name.value.clone()).collect(),
                stale_while_revalidate: seconds(**stale_while_revalidate),
                stale_if_error: seconds(**stale_if_error),
                collapse: **collapse,
                client_directives: **client_directives,
                cache_status: **cache_status,
            },
            selector: selector.into(),
            is_personal: requires_credentials || policies.request_headers.has_values(),
        })
    }
}

/// The bounds of the store; `None` if no route needs one.
pub(crate) fn store_limits(model: &Model) -> Option<StoreLimits> {
    let mut routes = model.routes.iter();
    let is_used = routes.any(|route| route.policies.cache.is_some());
    let model::Cache {
        max_bytes,
        max_object_bytes,
    } = &model.cache;
    is_used.then_some(StoreLimits {
        max_bytes: **max_bytes,
        max_object_bytes: **max_object_bytes,
    })
}

/// A hash of the settings that stored responses depend on; stable within this process.
fn fingerprint(route: &model::Route, model: &Model) -> u64 {
    let mut hasher = DefaultHasher::new();
    for setting in effective_in(model, Part::Route(route)) {
        if ROWS.iter().any(|row| setting.row.starts_with(row)) {
            setting.row.hash(&mut hasher);
            setting.value.to_string().hash(&mut hasher);
        }
    }
    // The list as written, without redactions.
    let request_headers = &route.policies.request_headers;
    let fields = request_headers.set.iter().chain(&request_headers.add);
    for field in fields.map(|field: &Setting<HeaderField>| &field.value) {
        field.hash(&mut hasher);
    }
    hasher.finish()
}

fn seconds(time: Duration) -> u32 {
    u32::try_from(time.as_secs()).unwrap_or(u32::MAX)
}
