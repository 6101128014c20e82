//! Middlewares for sizes, rates and retries.

use super::draft::{Draft, Middleware, Unwritten};
use crate::kdl::Node;
use crate::site::Site;
use crate::units;

pub(super) fn compress(site: &mut Site, draft: &mut Draft<'_>, middleware: Middleware<'_>) {
    let settings = middleware.settings();
    let codings = settings.texts_of("encodings");
    let known = codings.into_iter();
    let known = known.filter(|it| matches!(*it, "gzip" | "zstd" | "br"));
    let least = settings.number_of("minResponseBodyBytes").unwrap_or(1_024);
    let types = settings.texts_of("includedContentTypes");
    let node = Node::new("compression")
        .children(Node::new("codings").args(known).with_arguments())
        .children(Node::new("types").args(types).with_arguments())
        .child(Node::number("min-size", least));
    draft.route.policies.settings.push(node);
    if settings.get("excludedContentTypes").is_some() {
        middleware.note(
            site,
            "excludedContentTypes",
            "write the types that are compressed in `compression { types … }`",
        );
    }
}

pub(super) fn rate_limit(
    site: &mut Site,
    draft: &mut Draft<'_>,
    middleware: Middleware<'_>,
) -> Result<(), Unwritten> {
    const RATE: Unwritten = Unwritten("write `rate-limit { rate …; key … }` in the policies");
    let settings = middleware.settings();
    let average = settings.number_of("average").unwrap_or(0);
    if average == 0 {
        return Ok(());
    }
    let has_limit = draft
        .route
        .policies
        .settings
        .iter()
        .any(|it| it.is("rate-limit"));
    if has_limit || settings.get("redis").is_some() {
        return Err(RATE);
    }
    let period = settings.text_of("period").unwrap_or("1s");
    let period = match units::milliseconds(period, 1_000) {
        Some(1_000) => "s",
        Some(60_000) => "min",
        Some(3_600_000) => "h",
        Some(86_400_000) => "day",
        _ => return Err(RATE),
    };
    let key = match settings.get("sourceCriterion") {
        None => "client_ip".to_owned(),
        Some(source) if source.is_empty() => "client_ip".to_owned(),
        Some(source) => match source.text_of("requestHeaderName") {
            Some(name) => format!("header:{name}"),
            None => return Err(RATE),
        },
    };
    let rate = match period {
        "s" => Node::number("requests-per-second", average),
        period => Node::text("rate", &format!("{average}/{period}")),
    };
    let burst = settings.number_of("burst").unwrap_or(1).max(1);
    let node = Node::new("rate-limit")
        .child(rate)
        .child(Node::number("burst", burst))
        .child(Node::text("key", &key));
    draft.route.policies.settings.push(node);
    middleware.note(
        site,
        "",
        "requests over the rate do not wait: they are answered 429",
    );
    Ok(())
}

/// Converts `retry`. Traefik's number of attempts includes the first.
pub(super) fn retry(draft: &mut Draft<'_>, middleware: Middleware<'_>) {
    let attempts = middleware.settings().number_of("attempts").unwrap_or(1);
    let node =
        Node::new("retry").child(Node::number("attempts", attempts.saturating_sub(1).min(10)));
    let settings = &mut draft.route.policies.settings;
    settings.retain(|it| !it.is("retry"));
    settings.push(node);
}

pub(super) fn buffering(site: &mut Site, draft: &mut Draft<'_>, middleware: Middleware<'_>) {
    let settings = middleware.settings();
    let policies = &mut draft.route.policies.settings;
    if let Some(bytes) = settings
        .number_of("maxRequestBodyBytes")
        .filter(|it| *it > 0)
    {
        policies.retain(|it| !it.is("max-body-size"));
        policies.push(Node::number("max-body-size", bytes.min(1 << 40)));
    }
    if middleware
        .first_of(&["maxResponseBodyBytes", "retryExpression"])
        .is_some()
    {
        middleware.note(
            site,
            "",
            "responses have no largest size; write `retry` for attempts",
        );
    }
}

pub(super) fn circuit_breaker(site: &mut Site, draft: &mut Draft<'_>, middleware: Middleware<'_>) {
    let settings = &mut draft.route.policies.settings;
    settings.retain(|it| !it.is("circuit-breaker"));
    settings.push(Node::new("circuit-breaker").child(Node::number("failure-threshold", 5)));
    middleware.note(
        site,
        "expression",
        "the breaker opens after five failures in a row",
    );
}
