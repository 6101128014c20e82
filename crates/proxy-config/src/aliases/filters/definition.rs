//! The settings of a route for one filter.

use crate::aliases::alias::Argument;
use crate::aliases::tree::Tree;
use crate::kdl::Value;

/// Paths of settings below a route, each with its entries.
pub(super) type Settings = Vec<(&'static str, Vec<Argument>)>;

/// The settings represented by a filter, or a workaround.
pub(super) type Definition = Result<Settings, &'static str>;

/// A setting of a filter with its entries, each removed when read, so that unread ones are
/// detected.
struct Filter<'t, T> {
    node: &'t T,
    unread: Vec<&'t T>,
}

impl<'t, T: Tree> Filter<'t, T> {
    fn new(node: &'t T) -> Self {
        Self {
            node,
            unread: node.children().iter().collect(),
        }
    }

    fn take(&mut self, name: &str) -> Option<&'t T> {
        let index = self.unread.iter().position(|node| node.name() == name)?;
        Some(self.unread.remove(index))
    }

    fn arguments(&mut self, name: &str) -> Option<Vec<Argument>> {
        if let Some(node) = self.take(name) {
            return Some(node.arguments());
        }
        let arguments = self.node.arguments().into_iter();
        let property = arguments.filter(|it| it.name.as_deref() == Some(name));
        let property: Vec<_> = property.map(|it| Argument::plain(it.value)).collect();
        (!property.is_empty()).then_some(property)
    }

    fn word(&mut self, name: &str) -> Option<String> {
        let arguments = self.arguments(name)?;
        arguments
            .first()?
            .as_text()
            .map(|word| word.to_lowercase().replace('-', "_"))
    }

    /// Reports any remaining entry.
    fn end(self, settings: Settings) -> Definition {
        if self.unread.is_empty() {
            Ok(settings)
        } else {
            Err("leave out what the route's policy does not have, and write the policy itself")
        }
    }
}

/// The settings of a route for the filter `node` of the configuration `root`.
pub(super) fn definition<T: Tree>(root: &T, node: &T) -> Definition {
    let mut filter = Filter::new(node);
    match filter.word("type").as_deref() {
        Some("rate_limit") => rate_limit(filter),
        Some("agent") => agent(root, filter),
        Some("compress") => compress(filter),
        Some("cors") => cors(filter),
        Some("headers") => headers(filter),
        Some("timeout") => timeout(filter),
        Some("redirect") => Err("write `redirect` in the route"),
        Some("url_rewrite") => Err("write `policies { rewrite { … } }` in the route"),
        Some("log") => Err("leave it out: the access log has a record of each request"),
        Some("geo") => Err("run it as an agent, or write `allow-file` with the networks"),
        _ => Err("write a policy of the route, or an agent, for it"),
    }
}

fn rate_limit<T: Tree>(mut filter: Filter<'_, T>) -> Definition {
    let rate = filter.arguments("max-rps").ok_or("write `max-rps`")?;
    let mut settings = vec![("policies.rate-limit.requests-per-second", rate)];
    let burst = filter.arguments("burst");
    // The default burst of a filter.
    let burst = burst.unwrap_or_else(|| vec![Argument::plain(Value::Integer(10))]);
    settings.push(("policies.rate-limit.burst", burst));
    match filter.word("key").as_deref() {
        None | Some("client_ip") => {
            settings.push(("policies.rate-limit.key", vec![Argument::text("client_ip")]));
        }
        Some(word @ ("path" | "route")) => {
            settings.push(("policies.rate-limit.key", vec![Argument::text(word)]));
        }
        Some(word) => {
            let name = word
                .strip_prefix("header:")
                .map(|name| name.replace('_', "-"));
            let name = name.ok_or("write `rate-limit` with a `key` of its own in the route")?;
            let key = format!("header:{name}");
            settings.push(("policies.rate-limit.key", vec![Argument::text(&key)]));
        }
    }
    match filter.word("on-limit").as_deref() {
        None | Some("reject") => {}
        Some("log_only") => {
            let on = vec![Argument::plain(Value::Flag(true))];
            settings.push(("policies.rate-limit.observe-only", on));
        }
        Some(_) => return Err("write `on-limit \"reject\"`: requests are never delayed"),
    }
    match filter.word("backend").as_deref() {
        None | Some("local") => {}
        Some("redis") => {
            let url = filter.arguments("redis-url").ok_or("write `redis-url`")?;
            settings.push(("policies.rate-limit.store", url));
            if let Some(timeout) = filter.arguments("redis-timeout-ms") {
                settings.push(("policies.rate-limit.store-timeout-ms", timeout));
            }
        }
        Some(_) => return Err("use Redis or Valkey: `rate-limit { store \"redis://…\" }`"),
    }
    if let Some(status) = filter.arguments("status-code")
        && status != [Argument::plain(Value::Integer(429))]
    {
        return Err("leave `status-code` out: the status is 429");
    }
    filter.end(settings)
}

/// An agent, if the filter does not treat it otherwise than its own block.
fn agent<T: Tree>(root: &T, mut filter: Filter<'_, T>) -> Definition {
    let name = filter.arguments("agent").ok_or("write `agent`")?;
    let blocks = root
        .children()
        .iter()
        .filter(|node| node.name() == "agents");
    let mut agents = blocks.flat_map(Tree::children);
    let is_named = |node: &&T| node.arguments().first() == name.first();
    let agent = agents
        .find(is_named)
        .ok_or("define the agent in `agents`")?;
    for setting in ["timeout-ms", "failure-mode"] {
        let own = Filter::new(agent).arguments(setting);
        if let Some(value) = filter.arguments(setting)
            && own.is_some_and(|own| own != value)
        {
            return Err(
                "write `timeout-ms` and `failure-mode` in the agent: they are the same for all routes",
            );
        }
    }
    if filter.word("phase").is_some_and(|phase| phase != "request") {
        return Err("leave `phase` out: the agent says which events it gets");
    }
    let inspects = filter.arguments("inspect-body");
    let sees_bodies = Filter::new(agent)
        .arguments("events")
        .is_some_and(|events| {
            let mut events = events.iter().filter_map(Argument::as_text);
            events.any(|event| event.replace('-', "_") == "request_body")
        });
    if inspects == Some(vec![Argument::plain(Value::Flag(true))]) && !sees_bodies {
        return Err("write `events \"request-body\"` in the agent");
    }
    filter.end(vec![("agents", name)])
}

fn compress<T: Tree>(mut filter: Filter<'_, T>) -> Definition {
    let listed = filter.arguments("algorithms");
    let listed = listed.unwrap_or_else(|| vec![Argument::text("gzip,br")]);
    let mut codings = Vec::new();
    for word in listed
        .iter()
        .filter_map(Argument::as_text)
        .flat_map(|it| it.split(','))
    {
        match word.trim() {
            "br" | "brotli" => codings.push(Argument::text("br")),
            word @ ("gzip" | "zstd") => codings.push(Argument::text(word)),
            _ => return Err("leave `deflate` out: the codings are zstd, br and gzip"),
        }
    }
    let mut settings = vec![("policies.compression.codings", codings)];
    for (from, to) in [
        ("min-size", "policies.compression.min-size"),
        ("content-types", "policies.compression.types"),
    ] {
        settings.extend(filter.arguments(from).map(|entries| (to, entries)));
    }
    filter.end(settings)
}

fn cors<T: Tree>(mut filter: Filter<'_, T>) -> Definition {
    let origins = filter.arguments("allowed-origins");
    let origins = origins.ok_or("write `policies { cors { allow-origins … } }` in the route")?;
    let mut settings = vec![("policies.cors.allow-origins", origins)];
    for (from, to) in [
        ("allowed-methods", "policies.cors.allow-methods"),
        ("allowed-headers", "policies.cors.allow-headers"),
        ("exposed-headers", "policies.cors.expose-headers"),
        ("allow-credentials", "policies.cors.allow-credentials"),
        ("max-age-secs", "policies.cors.max-age-secs"),
    ] {
        settings.extend(filter.arguments(from).map(|entries| (to, entries)));
    }
    filter.end(settings)
}

fn headers<T: Tree>(mut filter: Filter<'_, T>) -> Definition {
    let phase = filter.word("phase");
    let [set, add, remove] = match phase.as_deref() {
        None | Some("request") => [
            "policies.request-headers.set",
            "policies.request-headers.add",
            "policies.request-headers.remove",
        ],
        Some("response") => [
            "policies.response-headers.set",
            "policies.response-headers.add",
            "policies.response-headers.remove",
        ],
        Some(_) => return Err("write `request-headers` and `response-headers` in the route"),
    };
    let mut settings = Vec::new();
    for (name, path) in [("set", set), ("add", add)] {
        while let Some(node) = filter.take(name) {
            if !node.arguments().is_empty() {
                settings.push((path, node.arguments()));
            }
            for field in node.children() {
                let mut entries = vec![Argument::text(field.name())];
                entries.extend(field.arguments());
                settings.push((path, entries));
            }
        }
    }
    while let Some(node) = filter.take("remove") {
        settings.push((remove, node.arguments()));
    }
    filter.end(settings)
}

fn timeout<T: Tree>(mut filter: Filter<'_, T>) -> Definition {
    let mut settings = Vec::new();
    for (from, to) in [
        ("request-timeout-secs", "policies.timeouts.request-secs"),
        ("connect-timeout-secs", "policies.timeouts.connect-secs"),
    ] {
        settings.extend(filter.arguments(from).map(|entries| (to, entries)));
    }
    filter.end(settings)
}
