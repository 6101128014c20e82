//! Middlewares that admit or refuse requests.

use super::draft::{Draft, Middleware, Unwritten};
use crate::kdl::Node;
use crate::site::{Site, Upstream};
use crate::traefik::url::Url;
use std::net::IpAddr;

pub(super) fn basic_auth(
    draft: &mut Draft<'_>,
    middleware: Middleware<'_>,
) -> Result<(), Unwritten> {
    let settings = middleware.settings();
    if draft.has_users {
        return Err(Unwritten("a route has one `basic-auth`"));
    }
    let mut node = Node::new("basic-auth").child(Node::text(
        "realm",
        settings.text_of("realm").unwrap_or("traefik"),
    ));
    let (users, file) = (settings.texts_of("users"), settings.text_of("usersFile"));
    if users.is_empty() && file.is_none() {
        return Err(Unwritten("it names no users"));
    }
    for user in users {
        let known = user.split_once(':').filter(|(_, hash)| is_known_hash(hash));
        let Some((name, hash)) = known else {
            return Err(Unwritten(
                "passwords are hashes of bcrypt or Argon2: make them by `htpasswd -nB`, in `basic-auth`",
            ));
        };
        node = node.child(Node::text("user", name).raw(hash));
    }
    node = node.children(file.map(|file| Node::text("users-file", file)));
    if !settings.is_on("removeHeader") {
        node = node.child(crate::write::flag("forward-credentials"));
    }
    if let Some(field) = settings.text_of("headerField") {
        let user = Node::text("set", field).arg("{user}");
        draft.route.policies.request_headers.push(user);
    }
    draft.has_users = true;
    draft.route.policies.settings.push(node);
    Ok(())
}

fn is_known_hash(hash: &str) -> bool {
    let kinds = ["$2a$", "$2b$", "$2y$", "$argon2"];
    kinds.iter().any(|kind| hash.starts_with(kind))
}

/// Converts `forwardAuth` to an agent.
pub(super) fn forward_auth(
    site: &mut Site,
    draft: &mut Draft<'_>,
    middleware: Middleware<'_>,
) -> Result<(), Unwritten> {
    let settings = middleware.settings();
    let unknown = [
        "authResponseHeadersRegex",
        "authSigninURL",
        "forwardBody",
        "headerField",
        "preserveRequestMethod",
        "addAuthCookiesToResponse",
    ];
    if middleware.first_of(&unknown).is_some() {
        return Err(Unwritten(
            "write an agent with `protocol \"forward-auth\"`: see docs/operate/access.md",
        ));
    }
    let url = settings.text_of("address").and_then(Url::parse);
    let url = url.filter(|url| url.scheme != "h2c" && !url.path.contains('?'));
    let Some(url) = url else {
        return Err(Unwritten(
            "write an agent with `protocol \"forward-auth\"`, an upstream and a path without a query",
        ));
    };
    let name = middleware.name;
    if draft.agents.names.insert(name.to_owned()) {
        let upstream = upstream(site, middleware, &url);
        let path = if url.path.is_empty() { "/" } else { url.path };
        let fields = settings.texts_of("authResponseHeaders");
        let host = url.host();
        let is_name = host.parse::<IpAddr>().is_err() && host.contains('.');
        let node = Node::text("agent", name)
            .child(Node::text("upstream", &upstream))
            .child(Node::text("protocol", "forward-auth"))
            .child(Node::text("request-path", path))
            .children(is_name.then(|| Node::text("request-host", host)))
            .children(Node::new("copy-headers").args(fields).with_arguments())
            .child(Node::text("failure-mode", "closed"));
        draft.agents.nodes.push(node);
        if settings.get("authRequestHeaders").is_some() {
            middleware.note(site, "authRequestHeaders", "the agent gets every field");
        }
    }
    if !draft.route.agents.iter().any(|it| it == name) {
        draft.route.agents.push(name.to_owned());
    }
    Ok(())
}

/// Upstream of a login server.
fn upstream(site: &mut Site, middleware: Middleware<'_>, url: &Url<'_>) -> String {
    let mut tls = Vec::new();
    if let Some(settings) = middleware.settings().get("tls") {
        tls.extend(
            settings
                .text_of("ca")
                .map(|file| Node::text("ca-file", file)),
        );
        let files = settings.text_of("cert").zip(settings.text_of("key"));
        tls.extend(
            files.into_iter().flat_map(|(cert, key)| {
                [Node::text("cert-file", cert), Node::text("key-file", key)]
            }),
        );
        if settings.is_on("insecureSkipVerify") {
            middleware.note(
                site,
                "insecureSkipVerify",
                "the certificate is verified here: write `tls { ca-file … }`",
            );
        }
    }
    let upstream = Upstream {
        targets: vec![(url.target(), 1)],
        tls: (url.scheme == "https").then_some(tls),
        ..Upstream::default()
    };
    if let Some(same) = site.upstream_like(&upstream) {
        return same;
    }
    let name = site.upstream_name(middleware.name);
    site.upstreams.push(Upstream {
        name: name.clone(),
        ..upstream
    });
    name
}

pub(super) fn allow_list(
    site: &mut Site,
    draft: &mut Draft<'_>,
    middleware: Middleware<'_>,
) -> Result<(), Unwritten> {
    let settings = middleware.settings();
    if settings.get("ipStrategy").is_some_and(|it| !it.is_empty()) {
        return Err(Unwritten(
            "write `allow`, and the proxies before it in `trusted-proxies` of the listener",
        ));
    }
    let networks = settings.texts_of("sourceRange");
    if networks.is_empty() || !draft.route.policies.allow.is_empty() {
        return Err(Unwritten(
            "a route has one list: write `allow` in its policies",
        ));
    }
    let networks = networks.into_iter().map(str::to_owned);
    draft.route.policies.allow.extend(networks);
    if settings.get("rejectStatusCode").is_some() {
        middleware.note(site, "rejectStatusCode", "other clients are answered 403");
    }
    Ok(())
}
