//! Middlewares that rewrite paths or redirect.

use super::draft::{Draft, Middleware, Unwritten};
use crate::kdl::Node;
use crate::site::{Path, Policies, Rewrite, Service, Site};

const REWRITE: Unwritten = Unwritten("write `rewrite` in the route's policies");
const REDIRECT: Unwritten = Unwritten("write `redirect` in a route");

pub(super) fn strip(draft: &mut Draft<'_>, middleware: Middleware<'_>) -> Result<(), Unwritten> {
    let prefixes = middleware.settings().texts_of("prefixes");
    let [prefix] = prefixes.as_slice() else {
        return Err(REWRITE);
    };
    let prefix = prefix.trim_end_matches('/');
    let policies = &mut draft.route.policies;
    if policies.rewrite.is_some() || !prefix.starts_with('/') {
        return Err(REWRITE);
    }
    policies.rewrite = Some(Rewrite::Strip(prefix.to_owned()));
    let field = Node::text("set", "X-Forwarded-Prefix").raw(prefix);
    policies.request_headers.push(field);
    Ok(())
}

pub(super) fn add(draft: &mut Draft<'_>, middleware: Middleware<'_>) -> Result<(), Unwritten> {
    let prefix = middleware.settings().text_of("prefix").unwrap_or_default();
    let prefix = prefix.trim_end_matches('/').to_owned();
    if !prefix.starts_with('/') {
        return Err(REWRITE);
    }
    let rewrite = &mut draft.route.policies.rewrite;
    *rewrite = Some(match rewrite.take() {
        None => Rewrite::Replace("/".to_owned(), prefix),
        Some(Rewrite::Strip(from)) => Rewrite::Replace(from, prefix),
        Some(Rewrite::Path(path)) => Rewrite::Path(format!("{prefix}{path}")),
        Some(Rewrite::Replace(..) | Rewrite::Captures(_)) => return Err(REWRITE),
    });
    Ok(())
}

pub(super) fn replace(draft: &mut Draft<'_>, middleware: Middleware<'_>) -> Result<(), Unwritten> {
    let path = middleware.settings().text_of("path").unwrap_or_default();
    let policies = &mut draft.route.policies;
    if policies.rewrite.is_some() || !path.starts_with('/') || path.contains('?') {
        return Err(REWRITE);
    }
    policies.rewrite = Some(Rewrite::Path(path.to_owned()));
    let field = Node::text("set", "X-Replaced-Path").arg("{path}");
    policies.request_headers.push(field);
    Ok(())
}

/// Redirects requests with another scheme; a listener has a single scheme.
pub(super) fn redirect_scheme(
    draft: &mut Draft<'_>,
    middleware: Middleware<'_>,
) -> Result<(), Unwritten> {
    let settings = middleware.settings();
    let scheme = settings.text_of("scheme").unwrap_or_default();
    let own = if draft.is_tls { "https" } else { "http" };
    let default_port = match scheme {
        "https" => "443",
        "http" => "80",
        _ => return Err(REDIRECT),
    };
    if settings
        .text_of("port")
        .is_some_and(|it| it != default_port)
    {
        return Err(Unwritten("write `redirect` with a URL that has the port"));
    }
    if scheme != own {
        answer(draft, scheme.to_owned(), None, settings.is_on("permanent"));
    }
    Ok(())
}

/// Makes the route redirect its requests, unless an earlier middleware answers them.
fn answer(
    draft: &mut Draft<'_>,
    to: String,
    replace_prefix: Option<(String, String)>,
    is_permanent: bool,
) {
    if draft.is_answered {
        return;
    }
    draft.is_answered = true;
    draft.route.service = Service::Redirect {
        to: Some(to),
        status: if is_permanent { 301 } else { 302 },
        replace_prefix,
    };
}

/// Converts a redirect such as `^https?://www\.example\.com/(.*)` to `https://example.com/${1}`, as
/// in Traefik's documentation, and `^https://example\.com/a/(.*)` to `https://example.com/b/${1}`
/// for a router with these paths.
pub(super) fn redirect_regex(
    site: &mut Site,
    draft: &mut Draft<'_>,
    middleware: Middleware<'_>,
) -> Result<(), Unwritten> {
    let settings = middleware.settings();
    let regex = settings.text_of("regex").unwrap_or_default();
    let target = settings.text_of("replacement").unwrap_or_default();
    let (schemes, host, prefix) = urls_of(regex).ok_or(REDIRECT)?;
    let (origin, to) = replacement_of(target).ok_or(REDIRECT)?;
    let replace_prefix = if prefix.is_empty() && to.is_empty() {
        None
    } else if is_below(&draft.route.paths, &prefix) {
        let to = if to.is_empty() { "/" } else { to };
        Some((prefix, to.to_owned()))
    } else {
        return Err(REDIRECT);
    };
    let own = if draft.is_tls { "https" } else { "http" };
    if !schemes.contains(&own) || draft.is_answered {
        return Ok(());
    }
    let is_permanent = settings.is_on("permanent");
    let hosts = &draft.route.hosts;
    if hosts.iter().all(|it| *it == host) && !hosts.is_empty() {
        answer(draft, origin.to_owned(), replace_prefix, is_permanent);
        return Ok(());
    }
    let is_other = !hosts.is_empty() && !hosts.contains(&host);
    if is_other && !hosts.iter().any(|it| it.contains('*')) {
        return Ok(());
    }
    let mut route = draft.route.clone();
    route.name = site.route_name(&format!("{} {host}", route.name));
    route.hosts = vec![host];
    route.agents.clear();
    route.policies = Policies {
        allow: draft.route.policies.allow.clone(),
        ..Policies::default()
    };
    route.service = Service::Redirect {
        to: Some(origin.to_owned()),
        status: if is_permanent { 301 } else { 302 },
        replace_prefix,
    };
    draft.before.push(route);
    Ok(())
}

/// Returns true if all paths of a route are below a prefix.
fn is_below(paths: &[Path], prefix: &str) -> bool {
    let is_below = |path: &Path| match path {
        Path::Exact(path) | Path::Prefix(path) | Path::Beginning(path) => {
            let rest = path.strip_prefix(prefix);
            !prefix.is_empty() && rest.is_some_and(|rest| rest.starts_with('/'))
        }
        Path::Regex(_) => false,
    };
    !paths.is_empty() && paths.iter().all(is_below)
}

/// Origin and prefix of a replacement that ends with the first group.
fn replacement_of(target: &str) -> Option<(&str, &str)> {
    let mut ends = ["/${1}", "/$1"].iter();
    let bare = ends.find_map(|end| target.strip_suffix(end))?;
    let (scheme, rest) = bare.split_once("://")?;
    let path = rest.find('/').and_then(|at| rest.get(at..));
    let path = path.unwrap_or_default();
    let is_whole = matches!(scheme, "http" | "https") && !rest.contains('$');
    bare.strip_suffix(path)
        .filter(|_| is_whole)
        .map(|it| (it, path))
}

/// Schemes, host and prefix of an expression for URLs below a prefix of a host.
fn urls_of(regex: &str) -> Option<(&'static [&'static str], String, String)> {
    let rest = regex.strip_prefix('^').unwrap_or(regex);
    let (schemes, rest): (&[&str], &str) = if let Some(rest) = rest
        .strip_prefix("https?://")
        .or(rest.strip_prefix("http[s]?://"))
    {
        (&["http", "https"], rest)
    } else if let Some(rest) = rest.strip_prefix("http://") {
        (&["http"], rest)
    } else {
        (&["https"], rest.strip_prefix("https://")?)
    };
    let base = rest
        .strip_suffix("/(.*)")
        .or(rest.strip_suffix("/(.*)$"))
        .or(rest.strip_suffix("/?(.*)"))?;
    let base = base.replace("\\.", ".");
    let host = base.split('/').next().unwrap_or_default();
    let mut bytes = base.bytes();
    let is_plain = bytes.all(|b| b.is_ascii_alphanumeric() || b"-./_".contains(&b));
    let prefix = base.strip_prefix(host)?;
    let is_whole = is_plain && !host.is_empty() && !prefix.ends_with('/');
    is_whole.then(|| (schemes, host.to_ascii_lowercase(), prefix.to_owned()))
}
