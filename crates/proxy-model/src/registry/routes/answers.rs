//! Redirects and fixed responses of a route.

use crate::registry::kind::{Block, Pair};
use crate::registry::number::Integer;
use crate::registry::spec::{DefaultValue, Required, Unset};
use crate::registry::table::{choice, integer, named, pair, settings, text, word, written};
use crate::registry::text::{Text, Written};
use crate::registry::word::{Choice, ChoiceWord};
use crate::route::{RedirectStatus, RedirectTarget, TrailingSlash};
use http::HeaderValue;

const STATUSES: &[ChoiceWord<RedirectStatus>] = &[
    word(
        "301",
        RedirectStatus::MovedPermanently,
        "permanent, clients may change POST to GET",
    ),
    word(
        "302",
        RedirectStatus::Found,
        "temporary, clients may change POST to GET",
    ),
    word(
        "303",
        RedirectStatus::SeeOther,
        "temporary, clients send GET",
    ),
    word(
        "307",
        RedirectStatus::TemporaryRedirect,
        "temporary, method and body stay",
    ),
    word(
        "308",
        RedirectStatus::PermanentRedirect,
        "permanent, method and body stay",
    ),
];

const SLASHES: &[ChoiceWord<TrailingSlash>] = &[
    word("add", TrailingSlash::Add, "appends the missing slash"),
    word(
        "remove",
        TrailingSlash::Remove,
        "removes it, except from `/`",
    ),
];

settings! {
    /// Redirects the route's requests: `redirect "https"`, `redirect "https://www.example.com"
    /// status=308`, `redirect "/new"`. Omitted parts of the URL are taken from the request.
    /// `Location` is always absolute. A redirect to the URL of the request itself is answered 500,
    /// reason `redirect_loop`; behind a trusted proxy the scheme is `X-Forwarded-Proto`'s.
    REDIRECT: Block, Unset = named("routes.route.redirect", "a URL or a part of it")
        .optional("the route does not redirect")
        .enforced("proxy-server", "a_redirect_keeps_the_parts_of_the_url_that_it_does_not_replace");
    /// `https` or `http` alone: the same URL with that scheme and its default port. A URL without a
    /// path: path and query are unchanged. A URL with a path, or a path alone: it replaces the
    /// path, and the query is unchanged unless a `?` is written here. `//host` keeps the scheme.
    /// May be written as the block's argument.
    REDIRECT_TO: Text<RedirectTarget>, Unset = text(
        "routes.route.redirect.to",
        "a URL or a part of it",
        "https://www.example.com",
        str::parse::<RedirectTarget>,
    )
    .optional("scheme, host and query stay")
    .enforced("proxy-server", "a_redirect_keeps_the_parts_of_the_url_that_it_does_not_replace");
    /// Replaces the beginning of the path, by whole segments as with `path-prefix`.
    REDIRECT_REPLACE_PREFIX: Pair, Unset = pair(
        "routes.route.redirect.replace-prefix",
        "a beginning of paths and its replacement",
        "\"/old\" \"/new\"",
    )
    .optional("the path of the request or of the URL")
    .enforced("proxy-server", "a_redirect_replaces_the_beginning_of_a_path");
    /// Change of the slash at the end of the path.
    REDIRECT_TRAILING_SLASH: Choice<TrailingSlash>, Unset =
        choice("routes.route.redirect.trailing-slash", SLASHES)
            .optional("it stays")
            .enforced("proxy-server", "a_redirect_adds_and_removes_the_slash_at_the_end");
    /// Status of the redirect. Browsers keep permanent ones, with or without a later change here.
    REDIRECT_STATUS: Choice<RedirectStatus>, DefaultValue<RedirectStatus> =
        choice("routes.route.redirect.status", STATUSES)
            .or(RedirectStatus::Found)
            .enforced("proxy-server", "a_redirect_has_its_status");
    /// Responds to every request of the route, of any method: `respond 200 "text"`, `respond 410`.
    RESPOND: Block, Unset = named("routes.route.respond", "a status and a text")
        .optional("the route does not respond itself")
        .enforced("proxy-server", "a_route_responds_with_its_status_and_text");
    /// Status of the response: 2xx, 4xx or 5xx. May be written as the block's first argument. A 4xx or 5xx is
    /// logged with the reason `respond_client_error` or `respond_server_error`.
    RESPOND_STATUS: Integer<u16>, Required = integer("routes.route.respond.status", 200, 599, "")
        .enforced("proxy-server", "a_route_responds_with_its_status_and_text");
    /// Body of the response. May be written as the block's second argument.
    RESPOND_BODY: Text<String>, Unset =
        text("routes.route.respond.body", "a text", "Gone fishing", |text| Ok(text.to_owned()))
            .optional("no body; for a 4xx or 5xx the proxy's own error in JSON or HTML")
            .enforced("proxy-server", "a_route_responds_with_its_status_and_text");
    /// `Content-Type` of the body.
    RESPOND_CONTENT_TYPE: Text<HeaderValue>, DefaultValue<Written<HeaderValue>> = text(
        "routes.route.respond.content-type",
        "a media type",
        "text/html; charset=utf-8",
        |text| match HeaderValue::from_str(text) {
            Ok(value) if text.contains('/') => Ok(value),
            _ => Err("write a type and a subtype, as `text/html`".to_owned()),
        },
    )
    .or(written("text/plain; charset=utf-8", || {
        HeaderValue::from_static("text/plain; charset=utf-8")
    }))
    .enforced("proxy-server", "a_response_has_its_content_type");
}
