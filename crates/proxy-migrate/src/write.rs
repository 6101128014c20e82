//! Serializes a site.

mod usable;

use crate::kdl::{Node, is_written};
use crate::migrated::Migrated;
use crate::site::{
    Certificate, Listener, Path, Policies, Relay, Rewrite, Route, Service, Site, Upstream, escaped,
};
use crate::tests_block;
use std::fmt::Write as _;

/// Serializes a site, including tests of its routes.
pub(crate) fn write(mut site: Site, file: &str) -> Migrated {
    usable::make_usable(&mut site, file);
    let tests = tests_block::tests(&site);
    let Site {
        settings,
        listeners,
        routes,
        upstreams,
        agents,
        mut notes,
        ..
    } = site;
    notes.sort();
    notes.dedup();
    let mut blocks = settings;
    blocks.push(Node::new("agents").children(agents));
    blocks.push(Node::new("listeners").children(listeners.iter().map(listener)));
    blocks.push(Node::new("routes").children(routes.iter().map(route)));
    blocks.push(Node::new("upstreams").children(upstreams.iter().map(upstream)));
    blocks.push(Node::new("tests").children(tests));
    let mut text = String::new();
    for note in &notes {
        let comment = note.to_string().replace(|c| !is_written(c), " ");
        _ = writeln!(text, "// {comment}");
    }
    for block in blocks.iter().filter(|block| block.has_children()) {
        if !text.is_empty() {
            text.push('\n');
        }
        block.write(0, &mut text);
    }
    Migrated { text, notes }
}

fn listener(listener: &Listener) -> Node {
    let Listener {
        name,
        address,
        is_tls,
        http3,
        relay,
        certificates,
        tls,
        settings,
        timeouts,
    } = listener;
    let protocol = match relay {
        Some(Relay::Tcp) => Some("tcp"),
        Some(Relay::Passthrough) => Some("tls-passthrough"),
        None => is_tls.then_some("https"),
    };
    let mut node = Node::text("listener", name)
        .child(Node::text("address", address))
        .children(protocol.map(|protocol| Node::text("protocol", protocol)));
    if *is_tls {
        let mut certificates = certificates.iter();
        let first = certificates.next();
        let own = first.into_iter().flat_map(|Certificate { cert, key, .. }| {
            [Node::text("cert-file", cert), Node::text("key-file", key)]
        });
        let further = certificates.map(|Certificate { cert, key, names }| {
            let names = names.iter().map(|name| Node::text("server-name", name));
            Node::new("certificate")
                .child(Node::text("cert-file", cert))
                .child(Node::text("key-file", key))
                .children(names)
        });
        node = node.child(
            Node::new("tls")
                .children(own)
                .children(further)
                .children(tls.iter().cloned()),
        );
    }
    node = node.children(settings.iter().cloned());
    let excludes_http3 = relay.is_some()
        || settings.iter().any(|it| it.is("proxy-protocol"))
        || tls.iter().any(|it| it.is("max-version"));
    if *http3 && *is_tls && !excludes_http3 {
        node = node.child(flag("http3"));
    }
    with_block(node, "timeouts", timeouts)
}

fn route(route: &Route) -> Node {
    let Route {
        name,
        priority,
        listeners,
        hosts,
        paths,
        matches,
        service,
        agents,
        policies,
        sample_host: _,
    } = route;
    let mut node = Node::text("route", name);
    if let Some(priority) = priority {
        node = node.child(Node::number("priority", u64::from(*priority)));
    }
    if !listeners.is_empty() {
        node = node.child(Node::new("listeners").args(listeners.iter().map(String::as_str)));
    }
    let hosts = hosts.iter().map(|host| Node::text("host", host));
    let paths = paths.iter().map(|path| match path {
        Path::Exact(path) => Node::text("path", path),
        Path::Prefix(path) => Node::text("path-prefix", path),
        Path::Beginning(text) => Node::new("path-regex").raw(&format!("^{}", escaped(text))),
        Path::Regex(regex) => Node::new("path-regex").raw(regex),
    });
    let conditions: Vec<Node> = hosts.chain(paths).chain(matches.iter().cloned()).collect();
    node = with_block(node, "matches", &conditions);
    node = with_service(node, service);
    if !agents.is_empty() {
        node = node.child(Node::new("agents").args(agents.iter().map(String::as_str)));
    }
    with_block(node, "policies", &policy_nodes(policies))
}

fn with_service(node: Node, service: &Service) -> Node {
    match service {
        Service::Upstream(name) => node.child(Node::text("upstream", name)),
        Service::Static {
            root,
            index,
            fallback,
            precompressed,
        } => {
            let mut files = Node::new("static-files").child(Node::text("root", root));
            let index = index.as_ref().map(|index| Node::text("index", index));
            let fallback = fallback.as_ref().map(|file| Node::text("fallback", file));
            files = files.children(index).children(fallback);
            if *precompressed {
                files = files.child(flag("precompressed"));
            }
            node.child(Node::text("service-type", "static"))
                .child(files)
        }
        Service::Redirect {
            to,
            status,
            replace_prefix,
        } => {
            let mut redirect = Node::new("redirect");
            redirect = redirect.args(to.as_deref());
            let replaced = replace_prefix.as_ref();
            redirect = redirect
                .children(replaced.map(|(from, to)| Node::text("replace-prefix", from).arg(to)));
            node.child(redirect.child(Node::number("status", u64::from(*status))))
        }
        Service::Respond {
            status,
            body,
            content_type,
        } => {
            let respond = Node::number("respond", u64::from(*status));
            let respond = match body {
                Some(body) => respond.raw(body),
                None => respond,
            };
            let media_type = content_type.iter();
            node.child(respond.children(media_type.map(|it| Node::text("content-type", it))))
        }
    }
}

fn policy_nodes(policies: &Policies) -> Vec<Node> {
    let Policies {
        request_headers,
        response_headers,
        timeouts,
        rewrite,
        keeps_location,
        allow,
        deny,
        settings,
    } = policies;
    let mut nodes = Vec::new();
    for (name, networks) in [("allow", allow), ("deny", deny)] {
        if !networks.is_empty() {
            nodes.push(Node::new(name).args(networks.iter().map(String::as_str)));
        }
    }
    nodes.extend(settings.iter().cloned());
    let rewrite = rewrite.as_ref().map(|rewrite| match rewrite {
        Rewrite::Strip(prefix) => Node::text("strip-prefix", prefix),
        Rewrite::Replace(from, to) => Node::text("replace-prefix", from).arg(to),
        Rewrite::Path(path) => Node::text("path", path),
        Rewrite::Captures(path) => Node::text("path-from-regex", path),
    });
    let location = keeps_location.then(|| Node::new("location").word("#false"));
    nodes.extend(rewrite.map(|rewrite| Node::new("rewrite").child(rewrite).children(location)));
    for (name, block) in [
        ("timeouts", timeouts),
        ("request-headers", request_headers),
        ("response-headers", response_headers),
    ] {
        if !block.is_empty() {
            nodes.push(Node::new(name).children(block.iter().cloned()));
        }
    }
    nodes
}

fn upstream(upstream: &Upstream) -> Node {
    let Upstream {
        name,
        targets,
        backups,
        settings,
        timeouts,
        tls,
        has_its_tls: _,
    } = upstream;
    // If all targets are backups, none is treated as one.
    let has_first = targets
        .iter()
        .any(|(address, _)| !backups.contains(address));
    let targets = targets.iter().map(|(address, weight)| {
        let mut target = Node::text("target", address);
        if *weight != 1 {
            target = target.child(Node::number("weight", *weight));
        }
        if has_first && backups.contains(address) {
            target = target.child(flag("backup"));
        }
        target
    });
    let node = Node::text("upstream", name)
        .children(targets)
        .children(settings.iter().cloned());
    let node = with_block(node, "timeouts", timeouts);
    match tls {
        Some(tls) => node.child(Node::new("tls").children(tls.iter().cloned())),
        None => node,
    }
}

fn with_block(node: Node, name: &str, children: &[Node]) -> Node {
    if children.is_empty() {
        return node;
    }
    node.child(Node::new(name).children(children.iter().cloned()))
}

/// A setting with the value `#true`.
pub(crate) fn flag(name: &str) -> Node {
    Node::new(name).word("#true")
}
