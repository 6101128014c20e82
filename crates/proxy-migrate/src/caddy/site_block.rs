//! Converts site blocks to routes.

use super::access::{self, Hidden, Refusal};
use super::address::{self, Addresses};
use super::advice::{added_prefix, advice, is_client_auth, is_passive};
use super::automatic::Automatic;
use super::error_pages;
use super::matcher::{self, Conditions, Definitions};
use super::order;
use super::parser::Directive;
use super::proxy;
use super::redirects::{self, Stripped};
use super::value::edit;
use crate::kdl::Node;
use crate::site::{Message, Path, Policies, Rewrite, Route, Service, Site, escaped};
use crate::units;
use std::rc::Rc;

/// The path behind the prefix that a `handle_path` removes, without its first slash.
const REMAINING_PATH: &str = "/?(.*)";

/// Settings in effect at a place in a site.
#[derive(Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct Context {
    conditions: Conditions,
    /// Visible definitions of matchers.
    matchers: Rc<Definitions>,
    policies: Policies,
    root: Option<String>,
    fallback: Option<String>,
    /// Prefix that `handle_path` has removed.
    stripped: Option<String>,
    priority: Option<u32>,
    is_within_block: bool,
    /// Set if directives of the block apply to only some of its requests.
    has_branches: bool,
    /// Addresses of clients that lists of networks would not be compared with.
    hidden: Hidden,
    /// Agents that decide on the requests.
    agents: Vec<String>,
    /// Set if a check applies to paths: Caddy compares paths case-insensitively.
    has_guarded_paths: bool,
    /// Set within `route`, where directives are evaluated as written.
    is_written_order: bool,
    /// Set if a check could not be converted: nothing is served.
    is_closed: bool,
}

impl Context {
    /// Records that a check applies to the block's requests.
    fn guard(&mut self) {
        self.has_guarded_paths |= !self.conditions.paths.is_empty();
    }
}

pub(super) fn read(
    site: &mut Site,
    block: &Directive,
    automatic: Option<&mut Automatic>,
    hidden: Hidden,
) {
    let addresses = address::read(site, block, automatic);
    let mut context = Context {
        is_closed: addresses.is_closed,
        hidden,
        ..Context::default()
    };
    match addresses.path.as_deref().map(matcher::path) {
        Some(Some(path)) => context.conditions.paths.push(path),
        Some(None) => {
            context.is_closed = true;
            site.note(
                &block.place,
                &block.shown(),
                "write the path in `matches` of the routes; they answer 501 until then",
            );
        }
        None => {}
    }
    in_block(site, &addresses, block, &context);
}

fn in_block(site: &mut Site, addresses: &Addresses, block: &Directive, outer: &Context) {
    let mut context = outer.clone();
    context.matchers = Definitions::within(&outer.matchers, &block.block);
    context.is_written_order = block.name() == "route";
    context.has_branches = order::has_branches(&block.block);
    if site.is_full() {
        return;
    }
    for directive in &block.block {
        setting(site, &mut context, directive);
    }
    let pages = error_pages::read(site, &block.block, context.root.as_deref());
    context.policies.settings.extend(pages);
    let items = items(site, &mut context, block);
    let contents = items
        .iter()
        .filter(|(_, item)| !matches!(item, Item::Refusal(_)));
    let contents: Vec<&Directive> = contents.map(|(directive, _)| *directive).collect();
    let is_mixed = !context.is_within_block && order::is_mixed(&contents, &context.matchers);
    let is_ordered = is_mixed || order::matters(&contents, context.is_written_order);
    if is_ordered && context.is_within_block {
        context.is_closed = true;
        site.note(
            &block.place,
            &block.shown(),
            "its directives are tried in their order: write their routes with priorities; they answer 501 until then",
        );
    }
    let goes_on = contents.iter().all(|it| order::has_matcher(it));
    let mut answered: Option<&Directive> = None;
    for (position, (directive, item)) in items.into_iter().enumerate() {
        let own = match item {
            Item::Refusal(refusal) => {
                refusal.apply(&mut context.policies);
                context.guard();
                continue;
            }
            Item::Closed => continue,
            Item::Content(own) => own,
        };
        if let Some(first) = answered.filter(|it| it.name() != directive.name()) {
            site.note(
                &directive.place,
                &directive.shown(),
                &format!("`{}` comes before it and takes all requests", first.name()),
            );
            continue;
        }
        let mut inner = context.clone();
        if is_ordered && !context.is_within_block {
            inner.priority = order::priority(directive.name(), position);
        }
        inner.conditions = own;
        content(site, addresses, inner, directive);
        // Without an order of its own, content is ordered by its conditions.
        if is_ordered && !order::has_matcher(directive) {
            answered = Some(directive);
        }
    }
    // Requests that pass the check continue after the block.
    if context.is_closed && context.is_within_block && goes_on {
        push(site, addresses, context, Service::not_migrated());
    }
}

/// A directive that answers requests.
enum Item {
    Content(Conditions),
    /// A list of networks, for all later directives of the block.
    Refusal(Refusal),
    /// It has no counterpart, so that the block is closed.
    Closed,
}

/// Directives that answer requests, in evaluation order.
fn items<'d>(
    site: &mut Site,
    context: &mut Context,
    block: &'d Directive,
) -> Vec<(&'d Directive, Item)> {
    let contents = order::contents(&block.block, context.is_written_order);
    let mut has_list = !context.policies.allow.is_empty();
    let mut items = Vec::new();
    for (position, directive) in contents.iter().copied().enumerate() {
        let later = contents.get(position + 1..).unwrap_or_default();
        let refusal = Refusal::read(directive, later, &context.matchers, context.hidden);
        // A route has a single list of admitted networks.
        if let Some(refusal) = refusal.filter(|it| !(it.is_for_others && has_list)) {
            has_list |= refusal.is_for_others;
            items.push((directive, Item::Refusal(refusal)));
            continue;
        }
        let own = own_conditions(context, directive);
        if own.is_none() || has_own_answers(directive) {
            context.is_closed = true;
            site.note(
                &directive.place,
                &directive.shown(),
                "write routes with its conditions; those of this block answer 501 until then",
            );
        }
        items.push((directive, own.map_or(Item::Closed, Item::Content)));
    }
    items
}

/// Conditions of a directive and of the blocks around it; `None` if a route cannot express them.
fn own_conditions(context: &Context, directive: &Directive) -> Option<Conditions> {
    if !order::has_matcher(directive) {
        // A block has no argument but a matcher, such as `{$PATH}/*`.
        let is_block = matches!(directive.name(), "handle" | "handle_path" | "route");
        let is_unknown = is_block && !matches!(directive.word(1), "" | "*");
        return (!is_unknown).then(|| context.conditions.clone());
    }
    let own = matcher::conditions(directive.word(1), &context.matchers)?;
    context.conditions.within(own, context.stripped.as_deref())
}

/// Returns true if a directive decides by another server's response, such as a login server's, or
/// hides files.
fn has_own_answers(directive: &Directive) -> bool {
    let decides = |it: &Directive| matches!(it.name(), "handle_response" | "hide");
    directive.block.iter().any(decides)
}

/// Applies a directive that changes the settings of requests.
fn setting(site: &mut Site, context: &mut Context, directive: &Directive) {
    let arguments = directive.arguments();
    let first = directive.word(1);
    let rest = if matcher::is_matcher(first) && directive.name() != "rewrite" {
        arguments.get(1..).unwrap_or_default()
    } else {
        arguments
    };
    let is_for_all = first == "*" || !matcher::is_matcher(first);
    match directive.name() {
        "root" if is_for_all => context.root = rest.first().cloned(),
        // `root /srv`, without a matcher.
        "root" if arguments.len() == 1 => context.root = Some(first.to_owned()),
        "try_files" => {
            let last = directive.words.last().filter(|word| word.starts_with('/'));
            context.fallback = last.map(|word| word.trim_start_matches('/').to_owned());
        }
        "encode" if is_for_all => {
            let codings = rest.iter().map(String::as_str);
            let known = codings.filter(|it| matches!(*it, "gzip" | "zstd" | "br"));
            let codings = Node::new("codings").args(known).with_arguments();
            context
                .policies
                .settings
                .push(Node::new("compression").children(codings));
        }
        "header" if is_for_all => headers(site, context, directive, rest),
        "request_body" if is_for_all => {
            let limit = directive.block.iter().find(|it| it.name() == "max_size");
            if let Some(bytes) = limit.and_then(|it| units::decimal_bytes(it.word(1))) {
                context
                    .policies
                    .settings
                    .push(Node::number("max-body-size", bytes));
            }
        }
        "rewrite" if first == "*" && !directive.word(2).contains(['{', '?']) => {
            context.policies.rewrite = Some(Rewrite::Path(directive.word(2).to_owned()));
        }
        // Later conditions would be compared with the rewritten path.
        "rewrite" if first == "*" && adds_prefix(context, directive) => {
            add_prefix(context, directive);
        }
        "uri" if first == "strip_prefix" && !context.has_branches => {
            context.policies.rewrite = Some(Rewrite::Strip(directive.word(2).to_owned()));
        }
        "basic_auth" | "basicauth" if is_for_all && !context.is_written_order => {
            password(site, context, directive, rest);
        }
        "forward_auth" if is_for_all && !context.is_written_order => {
            login_server(site, context, directive, rest);
        }
        "request_header" if is_for_all => request_header(site, context, directive, rest),
        "tls" => tls(site, context, directive),
        "bind" | "handle_errors" | "log" => {}
        _ => other(site, context, directive),
    }
}

/// Converts a password; a block has at most one.
fn password(site: &mut Site, context: &mut Context, directive: &Directive, rest: &[String]) {
    let written = access::password(directive, rest).filter(|_| !has_password(context));
    if let Some(node) = written {
        context.policies.settings.push(node);
        context.guard();
    } else {
        close(site, context, directive);
    }
}

fn login_server(site: &mut Site, context: &mut Context, directive: &Directive, rest: &[String]) {
    if let Some(agent) = access::login_server(site, directive, rest) {
        context.agents.push(agent);
        context.guard();
    } else {
        close(site, context, directive);
    }
}

/// Converts settings of TLS; certificate files are read with the addresses.
fn tls(site: &mut Site, context: &mut Context, directive: &Directive) {
    if is_client_auth(directive) {
        context.is_closed = true;
        site.note(
            &directive.place,
            &directive.shown(),
            "write `tls { client-auth { ca-file … } }` in the listener; the routes answer 501 until then",
        );
    } else if directive.words.len() == 3 {
        for line in &directive.block {
            site.note(
                &line.place,
                &line.shown(),
                "write it in `tls` of the listener: see docs/reference/config.md",
            );
        }
    } else {
        other(site, context, directive);
    }
}

/// Handles a directive that changes no requests, or cannot be converted.
fn other(site: &mut Site, context: &mut Context, directive: &Directive) {
    match directive.name() {
        name if order::rank(name).is_some() || name.starts_with('@') => {}
        name if is_passive(name) => {
            site.note(&directive.place, &directive.shown(), advice(name));
        }
        _ => close(site, context, directive),
    }
}

/// Returns true if `rewrite * /prefix{uri}` is the only rewrite of an open block, apart from the
/// prefix that `handle_path` removes.
fn adds_prefix(context: &Context, directive: &Directive) -> bool {
    let is_first = matches!(
        context.policies.rewrite,
        None | Some(Rewrite::Strip(_) | Rewrite::Captures(_))
    );
    let is_open = !context.is_closed && !context.has_branches;
    is_first && is_open && added_prefix(directive).is_some()
}

/// Converts `rewrite * /prefix{uri}`, after the removal of the path of a `handle_path`.
fn add_prefix(context: &mut Context, directive: &Directive) {
    let has_captures = matches!(context.policies.rewrite, Some(Rewrite::Captures(_)));
    context.policies.rewrite = added_prefix(directive).map(|to| {
        if has_captures {
            return Rewrite::Captures(format!("{to}/$1"));
        }
        let stripped = context.stripped.as_deref().unwrap_or("/");
        Rewrite::Replace(stripped.to_owned(), to.to_owned())
    });
}

/// Notes a directive that could refuse requests, and closes the block.
fn close(site: &mut Site, context: &mut Context, directive: &Directive) {
    context.is_closed = true;
    let advice = format!(
        "{}; its routes answer 501 until then",
        advice(directive.name())
    );
    site.note(&directive.place, &directive.shown(), &advice);
}

fn has_password(context: &Context) -> bool {
    context
        .policies
        .settings
        .iter()
        .any(|it| it.is("basic-auth"))
}

/// Converts edits of request fields. A field that is not removed could be a forged identity, so a
/// failure closes the block.
fn request_header(site: &mut Site, context: &mut Context, directive: &Directive, rest: &[String]) {
    let field = rest.first().map(String::as_str).unwrap_or_default();
    // A third word makes it a replacement within the value.
    let node = edit(field, rest.get(1).map(String::as_str), Message::Request);
    if let Some(node) = node.filter(|_| rest.len() < 3) {
        context.policies.request_headers.push(node);
        return;
    }
    context.is_closed = true;
    site.note(
        &directive.place,
        &directive.shown(),
        "write `request-headers` in the policies; the routes answer 501 until then",
    );
}

fn headers(site: &mut Site, context: &mut Context, directive: &Directive, rest: &[String]) {
    let mut lines: Vec<Vec<String>> = Vec::new();
    if !rest.is_empty() {
        lines.push(rest.to_vec());
    }
    lines.extend(directive.block.iter().map(|line| line.words.clone()));
    for line in lines {
        let (Some(field), value) = (line.first(), line.get(1)) else {
            continue;
        };
        match edit(field, value.map(String::as_str), Message::Response) {
            Some(node) if line.len() < 3 => context.policies.response_headers.push(node),
            _ => site.note(
                &directive.place,
                &line.join(" "),
                "write `response-headers { set … }`: see docs/operate/headers.md for values",
            ),
        }
    }
}

fn content(site: &mut Site, addresses: &Addresses, mut inner: Context, directive: &Directive) {
    let name = directive.name();
    let first = directive.word(1);
    let is_target = name == "redir" && directive.words.len() < 3;
    let skipped = if matcher::is_matcher(first) && !is_target {
        2
    } else {
        1
    };
    let words = directive.words.get(skipped..).unwrap_or_default();
    inner.is_within_block |= matches!(name, "handle" | "handle_path" | "route");
    match name {
        "handle" | "route" => in_block(site, addresses, directive, &inner),
        "handle_path" => {
            strip(site, &mut inner, directive);
            in_block(site, addresses, directive, &inner);
        }
        _ => {
            let service = service(site, &mut inner, directive, name, words);
            push(site, addresses, inner, service);
        }
    }
}

/// Removes the path of a `handle_path` from requests. `/a*` also removes the beginning of a segment in
/// Caddy: `/ab/x` becomes `/b/x`.
fn strip(site: &mut Site, inner: &mut Context, directive: &Directive) {
    let stem = directive.word(1).strip_suffix('*');
    let (prefix, rewrite) = match (inner.conditions.paths.as_slice(), stem) {
        ([Path::Prefix(prefix)], _) => {
            let prefix = prefix.trim_end_matches('/').to_owned();
            (prefix.clone(), Rewrite::Strip(prefix))
        }
        ([Path::Regex(regex)], Some(stem)) if stem.starts_with('/') => {
            let captured = Path::Regex(format!("{regex}{REMAINING_PATH}"));
            inner.conditions.paths = vec![captured];
            (stem.to_owned(), Rewrite::Captures("/$1".to_owned()))
        }
        _ => return close(site, inner, directive),
    };
    inner.stripped = Some(prefix);
    inner.policies.rewrite = Some(rewrite);
}

/// Converts a `respond`.
fn response(site: &mut Site, directive: &Directive, words: &[String]) -> Service {
    let status = words.iter().find_map(|word| word.parse::<u16>().ok());
    let body = words.iter().find(|word| word.parse::<u16>().is_err());
    let status = status.unwrap_or(200);
    if !(200..600).contains(&status) || (300..400).contains(&status) || directive.has_block {
        site.note(
            &directive.place,
            &directive.shown(),
            "`respond` has a status of 2xx, 4xx or 5xx and a text; the route answers 501",
        );
        return Service::not_migrated();
    }
    Service::Respond {
        status,
        body: body.cloned(),
        content_type: None,
    }
}

fn service(
    site: &mut Site,
    inner: &mut Context,
    directive: &Directive,
    name: &str,
    words: &[String],
) -> Service {
    match name {
        "reverse_proxy" => proxy::read(site, directive, words, &mut inner.policies)
            .map_or_else(Service::not_migrated, Service::Upstream),
        "file_server" => {
            if words.iter().any(|word| word == "browse") {
                site.note(
                    &directive.place,
                    &directive.shown(),
                    "folders are never listed",
                );
            }
            let own = directive.block.iter().find(|it| it.name() == "root");
            let own = own.map(|it| it.word(1).to_owned());
            let Some(root) = own.or_else(|| inner.root.clone()) else {
                site.note(&directive.place, &directive.shown(), "write `root` for it");
                return Service::not_migrated();
            };
            if inner.policies.rewrite.take().is_some() {
                site.note(
                    &directive.place,
                    &directive.shown(),
                    "the whole path is the file's path in the folder: no prefix is removed",
                );
            }
            let index = directive.block.iter().find(|it| it.name() == "index");
            let index = index.map(|it| it.word(1).to_owned());
            Service::Static {
                root,
                index: index.filter(|it| !it.is_empty() && it != "index.html"),
                fallback: inner.fallback.clone(),
                precompressed: directive
                    .block
                    .iter()
                    .any(|it| it.name() == "precompressed"),
            }
        }
        "redir" => {
            let stripped = inner.stripped.as_deref().map(|prefix| Stripped {
                prefix,
                is_whole: !matches!(inner.conditions.paths.as_slice(), [Path::Regex(_)]),
            });
            redirects::read(site, directive, words, stripped).unwrap_or_else(Service::not_migrated)
        }
        "abort" => Service::refusal(403),
        "error" => {
            let status = words.iter().find_map(|it| it.parse().ok());
            let is_error = |status: &u16| (400..600).contains(status);
            Service::refusal(status.filter(is_error).unwrap_or(500))
        }
        "respond" => response(site, directive, words),
        _ => {
            site.note(
                &directive.place,
                &directive.shown(),
                "put a server that speaks HTTP before it; the route answers 501",
            );
            Service::not_migrated()
        }
    }
}

fn push(site: &mut Site, addresses: &Addresses, context: Context, service: Service) {
    let part = match context.conditions.paths.first() {
        Some(
            Path::Exact(text) | Path::Prefix(text) | Path::Beginning(text) | Path::Regex(text),
        ) => text.trim_end_matches(REMAINING_PATH).to_owned(),
        None => String::new(),
    };
    let host = addresses.hosts.first().map_or("site", String::as_str);
    let name = site.route_name(&format!("{} {part}", host.replace('*', "any")));
    // The text may be the content that the check protects.
    let is_answer = matches!(
        service,
        Service::Redirect { .. } | Service::Respond { status: 400.., .. }
    );
    let service = if context.is_closed && !is_answer {
        Service::not_migrated()
    } else {
        service
    };
    let mut route = Route::new(name, service);
    route.listeners.clone_from(&addresses.listeners);
    route.hosts.clone_from(&addresses.hosts);
    route.policies = context.policies;
    if !matches!(route.service, Service::Upstream(_)) {
        route.policies.request_headers.clear();
        route.policies.rewrite = None;
    }
    let has_pages = matches!(
        route.service,
        Service::Respond {
            status: 400..,
            body: None,
            ..
        }
    );
    match route.service {
        // Caddy evaluates redirects before checks.
        Service::Redirect { .. } => route.policies.settings.clear(),
        Service::Respond { .. } => {
            let is_kept = |it: &Node| it.is("basic-auth") || (has_pages && it.is("error-pages"));
            route.policies.settings.retain(is_kept);
            route.agents = context.agents;
        }
        Service::Upstream(_) | Service::Static { .. } => route.agents = context.agents,
    }
    route.priority = context.priority;
    context.conditions.write(&mut route);
    let is_refusal = matches!(route.service, Service::Respond { status: 400.., .. });
    if is_refusal || context.has_guarded_paths {
        // Caddy compares paths case-insensitively.
        route.paths = route.paths.iter().map(without_case).collect();
    }
    site.push_route(route);
}

fn without_case(path: &Path) -> Path {
    Path::Regex(match path {
        Path::Exact(path) => format!("(?i)^{}$", escaped(path)),
        Path::Prefix(path) | Path::Beginning(path) => format!("(?i)^{}", escaped(path)),
        Path::Regex(regex) => format!("(?i){regex}"),
    })
}
