//! Classes of directives, and advice on alternatives.

use super::parser::Directive;

pub(super) fn advice(name: &str) -> &'static str {
    match name {
        "tls" => {
            "certificates are files here: write `tls { cert-file …; key-file … }` in the listener"
        }
        "basic_auth" | "basicauth" | "forward_auth" => "write `basic-auth`, or an agent",
        "header" | "encode" | "root" => "write it in the policies of the routes for the matcher",
        "rewrite" | "uri" => "write `rewrite` in the route's policies",
        "templates" | "push" | "vars" | "map" => "it is not offered",
        "import" => "write what it stands for",
        _ => "not carried over; see docs/learn/coming-from/caddy.md",
    }
}

/// Returns true if a directive neither refuses requests nor changes the path.
pub(super) fn is_passive(name: &str) -> bool {
    matches!(
        name,
        "acme_server"
            | "encode"
            | "fs"
            | "header"
            | "log_append"
            | "log_name"
            | "log_skip"
            | "map"
            | "method"
            | "metrics"
            | "push"
            | "skip_log"
            | "templates"
            | "tls"
            | "tracing"
            | "try_files"
            | "vars"
    )
}

/// Returns true if a block `tls` requests client certificates.
pub(super) fn is_client_auth(directive: &Directive) -> bool {
    directive.block.iter().any(|it| it.name() == "client_auth")
}

/// The prefix that `rewrite * /prefix{uri}` adds.
pub(super) fn added_prefix(directive: &Directive) -> Option<&str> {
    let prefix = directive.word(2).strip_suffix("{uri}")?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/-_.~".contains(c);
    let is_whole = prefix.starts_with('/') && !prefix.ends_with('/');
    (is_whole && prefix.chars().all(is_plain)).then_some(prefix)
}
