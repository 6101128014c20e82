//! Converts `proxy_cache` to the cache of a route.

use crate::kdl::Node;
use crate::nginx::parser::Directive;
use crate::nginx::scope::Scope;
use crate::site::{Route, Site};
use crate::units;

/// Maximum size of the memory cache that replaces a cache on disk.
const MAX_MEMORY_BYTES: u64 = 1 << 30;
const MIN_MEMORY_BYTES: u64 = 64 << 10;

/// Directives that may prevent storage of a response, or define its key.
const CONDITIONS: &[(&str, &str)] = &[
    (
        "proxy_cache_bypass",
        "write a second route without `cache` for these requests; the route has no cache until then",
    ),
    (
        "proxy_no_cache",
        "write a second route without `cache` for these requests; the route has no cache until then",
    ),
    (
        "proxy_cache_key",
        "the key has scheme, host, path and query: write `key-headers` or `ignore-query`; the route has no cache until then",
    ),
    (
        "proxy_cache_methods",
        "responses to GET are stored; the route has no cache until then",
    ),
];

/// Adds the cache in effect in a scope to a route.
pub(super) fn apply(site: &mut Site, route: &mut Route, scope: &Scope<'_>) {
    let name = scope.word("proxy_cache").filter(|it| *it != "off");
    let Some(name) = name else {
        return;
    };
    let path = scope.outermost().find(|it| {
        let zone = option(it, "keys_zone").unwrap_or_default();
        it.name == "proxy_cache_path" && zone.split(':').next() == Some(name)
    });
    let mut is_closed = false;
    for (condition, advice) in CONDITIONS {
        for directive in scope.all(condition) {
            if !is_usual(directive) {
                is_closed = true;
                site.note(&directive.place, &directive.shown(), advice);
            }
        }
    }
    for directive in scope.all("proxy_ignore_headers") {
        site.note(
            &directive.place,
            &directive.shown(),
            "fields of responses that keep them out of the cache count here",
        );
    }
    for directive in scope.all("proxy_cache_min_uses") {
        site.note(
            &directive.place,
            &directive.shown(),
            "the first response is stored already",
        );
    }
    if is_closed {
        return;
    }
    let mut cache = Node::new("cache");
    if let Some(node) = lifetime(site, scope) {
        cache = cache.children(node);
    }
    let inactive = path.and_then(|it| units::milliseconds(&option(it, "inactive")?, 1_000));
    let stale = inactive.unwrap_or(600_000).clamp(1_000, 604_800_000) / 1_000;
    if let Some(directive) = scope.last("proxy_cache_use_stale") {
        let has = |word: &str| directive.words.iter().any(|it| it == word);
        let mut errors = directive.words.iter();
        if has("updating") {
            cache = cache.child(Node::number("stale-while-revalidate-secs", stale));
        }
        if errors.any(|it| !matches!(it.as_str(), "updating" | "off" | "http_404" | "http_403")) {
            cache = cache.child(Node::number("stale-if-error-secs", stale));
        }
    }
    route.policies.settings.push(cache);
}

/// Lifetime and statuses of responses without an explicit lifetime: those of the first
/// `proxy_cache_valid` with 200 or without a status.
fn lifetime(site: &mut Site, scope: &Scope<'_>) -> Option<Vec<Node>> {
    let all = scope.all("proxy_cache_valid");
    let is_of_200 = |it: &&&Directive| {
        it.words.len() == 1 || it.words.iter().any(|word| word == "200" || word == "any")
    };
    let first = all.iter().find(is_of_200).or(all.first())?;
    let ms = units::milliseconds(first.words.last()?, 1_000)?;
    for other in all {
        if !std::ptr::eq(*other, *first) {
            site.note(
                &other.place,
                &other.shown(),
                "a route has one `ttl-secs`: responses of these statuses are stored if they say how long",
            );
        }
    }
    if ms == 0 {
        return Some(Vec::new());
    }
    let ttl = site.time(&first.place, &first.shown(), "ttl", ms);
    let (_, statuses) = first.words.split_last()?;
    // Responses with other statuses are never complete representations.
    let is_stored = |status: &str| {
        let number = status.parse::<u16>();
        number.is_ok_and(|it| (200..600).contains(&it) && it != 206 && it != 304)
    };
    let listed: Vec<&str> = match statuses {
        [] => vec!["200", "301", "302"],
        [any] if any == "any" => Vec::new(),
        statuses => statuses.iter().map(String::as_str).collect(),
    };
    let listed: Vec<&str> = listed.into_iter().filter(|it| is_stored(it)).collect();
    let mut nodes = vec![ttl];
    if !listed.is_empty() {
        nodes.push(
            listed
                .iter()
                .fold(Node::new("statuses"), |node, it| node.word(it)),
        );
    }
    Some(nodes)
}

/// Returns true if a key or a condition describes the proxy's behaviour anyway.
fn is_usual(directive: &Directive) -> bool {
    let text = directive.words.join("");
    let text = text.replace(['{', '}'], "");
    match &*directive.name {
        "proxy_cache_key" => {
            let parts = [
                "$scheme",
                "$proxy_host",
                "$host",
                "$http_host",
                "$request_method",
                "$request_uri",
                "$uri",
                "$is_args",
                "$args",
                "://",
                "|",
                ":",
                "GET",
            ];
            let rest = parts
                .iter()
                .fold(text.clone(), |rest, part| rest.replace(part, ""));
            let has_query = text.contains("$request_uri") || text.contains("$args");
            rest.is_empty() && has_query
        }
        // Requests for a protocol upgrade, and requests with credentials, are never answered from
        // the cache.
        "proxy_cache_bypass" | "proxy_no_cache" => {
            let mut words = directive.words.iter();
            words.all(|it| {
                let is_own = it == "$http_upgrade" || it == "$http_authorization";
                is_own || (directive.name == "proxy_no_cache" && it == "$http_pragma")
            })
        }
        "proxy_cache_methods" => {
            let mut words = directive.words.iter();
            words.all(|it| it == "GET" || it == "HEAD")
        }
        _ => false,
    }
}

/// The top-level block `cache` for the caches of the block `http`, if a route uses one.
pub(in crate::nginx) fn memory(site: &mut Site, block: &[Directive]) {
    let has_cache = site
        .routes
        .iter()
        .any(|route| route.policies.settings.iter().any(|it| it.is("cache")));
    let mut total = 0_u64;
    for directive in block.iter().filter(|it| it.name == "proxy_cache_path") {
        let bytes = option(directive, "max_size").and_then(|it| units::bytes(&it));
        total = total.saturating_add(bytes.unwrap_or(MAX_MEMORY_BYTES));
        site.note(
            &directive.place,
            &directive.shown(),
            "responses are stored in memory, at most 1 GiB of them: write `cache { max-bytes … }` at the top for another size",
        );
    }
    if has_cache && total > 0 {
        let bytes = total.clamp(MIN_MEMORY_BYTES, MAX_MEMORY_BYTES);
        // A stored body may occupy at most an eighth of the memory.
        let object = (bytes < 8 << 20).then(|| Node::number("max-object-bytes", bytes / 8));
        let node = Node::new("cache")
            .child(Node::number("max-bytes", bytes))
            .children(object);
        site.settings.push(node);
    }
}

/// Value of an option `name=value`.
fn option(directive: &Directive, name: &str) -> Option<String> {
    let mut words = directive.words.iter();
    words.find_map(|word| {
        word.strip_prefix(name)?
            .strip_prefix('=')
            .map(str::to_owned)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::migrated::Place;

    #[test]
    fn keys_of_the_whole_request_are_usual() {
        for (name, words, expected) in [
            ("proxy_cache_key", "$scheme$proxy_host$request_uri", true),
            ("proxy_cache_key", "$scheme://$host$request_uri", true),
            ("proxy_cache_key", "$host$uri$is_args$args", true),
            ("proxy_cache_key", "$host$uri", false),
            ("proxy_cache_key", "$host$request_uri$cookie_user", false),
            ("proxy_cache_bypass", "$http_upgrade", true),
            ("proxy_cache_bypass", "$cookie_session", false),
        ] {
            let directive = Directive {
                name: name.to_owned(),
                words: vec![words.to_owned()],
                block: None,
                place: Place {
                    file: String::new(),
                    line: 1,
                },
            };
            assert_eq!(is_usual(&directive), expected, "{name} {words}");
        }
    }
}
