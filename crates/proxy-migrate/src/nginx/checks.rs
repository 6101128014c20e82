//! Directives that could refuse a request. If one is not converted, the content behind it answers
//! 501.

use super::parser::Directive;
use super::scope::{self, Scope};
use super::value::has_variables;
use super::{advice, listen};
use crate::work;
use std::collections::HashSet;

/// Directives of the rewrite phase: inner locations do not inherit them.
const REWRITE_PHASE: &[&str] = &["break", "if", "internal", "limit_except", "rewrite"];

/// Directives that refuse no requests.
const PASSIVE: &[&str] = &[
    "access_log",
    "alias",
    "autoindex",
    "break",
    "default_type",
    "directio",
    "error_log",
    "error_page",
    "expires",
    "if_modified_since",
    "include",
    "index",
    "internal",
    "location",
    "merge_slashes",
    "mirror",
    "return",
    "rewrite",
    "root",
    "server",
    "server_name",
    "set",
    "stub_status",
    "try_files",
    "types",
    "underscores_in_headers",
    "upstream",
    "userid",
];

/// Name prefixes of directives that refuse no requests.
const PASSIVE_FAMILIES: &[&str] = &[
    "absolute_redirect",
    "add_",
    "aio",
    "brotli",
    "charset",
    "chunked_",
    "client_",
    "etag",
    "fastcgi_",
    "grpc_",
    "gzip",
    "http2",
    "http3",
    "ignore_invalid_headers",
    "keepalive_",
    "large_client_header_buffers",
    "limit_conn",
    "limit_rate",
    "limit_req",
    "lingering_",
    "log_",
    "map",
    "max_ranges",
    "memcached_",
    "more_",
    "open_file_cache",
    "output_buffers",
    "port_in_redirect",
    "postpone_output",
    "proxy_",
    "quic_",
    "real_ip_",
    "recursive_error_pages",
    "reset_timedout_connection",
    "resolver",
    "scgi_",
    "send",
    "server_name_in_redirect",
    "server_tokens",
    "set_real_ip_from",
    "ssi",
    "ssl",
    "sub_filter",
    "tcp_",
    "uwsgi_",
    "zstd",
];

/// Name prefixes of directives of the block `http` that may refuse requests; further ones of modules declare
/// memory, variables and files.
const REFUSING_FAMILIES: &[&str] = &[
    "access_by",
    "app_protect",
    "js_access",
    "modsecurity",
    "rewrite_by",
    "server_rewrite_by",
    "ssl_certificate_by",
    "ssl_client_hello_by",
    "testcookie",
    "wallarm",
];

/// Maximum number of checks that a scope may disable.
const MAX_SWITCHED_OFF: usize = 64;

/// Checks that were converted.
pub(super) struct Written {
    /// `auth_basic`.
    pub(super) password: bool,
    /// `auth_request`.
    pub(super) login: bool,
}

/// Requests for which a check is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answered {
    /// Requests for content: all checks apply.
    Content,
    /// Requests that `return` or `rewrite` answers, before the access phase.
    Early,
}

/// The first directive of a scope that could refuse requests and was not converted.
pub(super) fn unwritten<'d>(
    scope: &Scope<'d>,
    written: &Written,
    answered: Answered,
) -> Option<&'d Directive> {
    let mut overridden: HashSet<&str> = HashSet::new();
    for depth in (0..scope.depth()).rev() {
        let is_own = depth + 1 == scope.depth();
        let could_refuse = |directive: &Directive| match depth {
            0 => is_check(&directive.name),
            1 => !is_passive(directive) && condition_host(directive).is_none(),
            _ => !is_passive(directive),
        };
        for directive in scope.selected(depth, could_refuse) {
            work::step();
            let name = &*directive.name;
            // Directives of the rewrite phase apply to the server and to their own location.
            let holds = depth == 1 || is_own || !REWRITE_PHASE.contains(&name);
            let is_written = match name {
                "auth_basic" => written.password,
                "auth_request" => written.login,
                _ => false,
            };
            let is_late = answered == Answered::Early && is_of_access_phase(name);
            if !holds || is_written || is_late || overridden.contains(name) {
                continue;
            }
            let is_off = directive.word(0) == Some("off") && name != PASSES_FIELDS;
            if !is_off || overridden.len() >= MAX_SWITCHED_OFF {
                return Some(directive);
            }
            overridden.insert(name);
        }
    }
    None
}

/// `off` keeps the client's header fields from the upstream, which may be forged identities.
const PASSES_FIELDS: &str = "proxy_pass_request_headers";

/// Returns true if a block, or a block in it, may refuse requests: by networks, a status, or a
/// directive that is not known to refuse nothing.
pub(super) fn has_checks(block: &[Directive]) -> bool {
    block.iter().any(|directive| {
        let is_refusal = match &*directive.name {
            "allow" | "deny" | "internal" => true,
            "return" => directive
                .word(0)
                .is_some_and(|it| it.starts_with(['4', '5'])),
            _ => !is_passive(directive),
        };
        is_refusal || has_checks(directive.children())
    })
}

/// Returns true if a directive of the block `http` refuses requests of servers that inherit it.
pub(super) fn is_inherited_check(directive: &Directive) -> bool {
    matches!(&*directive.name, "allow" | "deny") || is_check(&directive.name)
}

/// Returns true if a directive has no effect on requests that `return` answers.
fn is_of_access_phase(name: &str) -> bool {
    let is_check = name.starts_with("auth_") || name.starts_with("access_by");
    is_check || matches!(name, "limit_except" | "satisfy" | PASSES_FIELDS)
}

/// Returns true if a directive of the block `http` refuses requests.
fn is_check(name: &str) -> bool {
    let is_check = name.starts_with("auth_") && name != "auth_basic_user_file";
    is_check
        || is_edit_of_fields(name)
        || name == PASSES_FIELDS
        || REFUSING_FAMILIES
            .iter()
            .any(|family| name.starts_with(family))
        || name == "ssl_verify_client"
}

/// Returns true if a directive of another module edits the client's header fields, which may be
/// forged identities.
fn is_edit_of_fields(name: &str) -> bool {
    matches!(name, "more_clear_input_headers" | "more_set_input_headers")
}

/// Returns true if a directive of a server or location refuses no requests.
pub(super) fn is_passive(directive: &Directive) -> bool {
    let name = &*directive.name;
    match name {
        "ssl_verify_client" => return false,
        PASSES_FIELDS => return directive.word(0) != Some("off"),
        "ssl_reject_handshake" => return directive.word(0) == Some("off"),
        _ if is_edit_of_fields(name) => return false,
        "auth_basic_user_file" | "auth_request_set" | "auth_jwt_key_file" => return true,
        "if" => return is_passive_condition(directive),
        "include" => return advice::is_known_file(directive),
        "satisfy" => return directive.word(0) == Some("all"),
        _ => {}
    }
    scope::is_inherited(name)
        || listen::is_listener_directive(name)
        || listen::is_client_timeout(name)
        || PASSIVE.contains(&name)
        || PASSIVE_FAMILIES
            .iter()
            .any(|family| name.starts_with(family))
        || (advice::is_not_needed(name) && !is_check(name))
}

/// Returns true if a condition only edits header fields, answers CORS preflights, or redirects
/// between `http` and `https`.
fn is_passive_condition(directive: &Directive) -> bool {
    let condition = condition(directive);
    let is_of_method = condition.starts_with("($request_method=OPTIONS")
        || condition.starts_with("($request_method~");
    let is_preflight = is_of_method && condition.contains("OPTIONS");
    let is_of_tls = matches!(&*condition, "($scheme=https)" | "($https=on)");
    let is_of_plain = PLAIN.contains(&&*condition);
    let edits = |child: &Directive| match (&*child.name, child.word(0)) {
        ("add_header" | "access_log" | "expires" | "set", _) => true,
        ("return", Some("200" | "204")) => is_preflight,
        ("return", Some("301" | "302" | "307" | "308")) => {
            is_of_tls || (is_of_plain && is_of_https(child))
        }
        _ => false,
    };
    directive.children().iter().all(edits)
}

/// Conditions that hold for requests without TLS, without quotes and spaces.
const PLAIN: &[&str] = &[
    "($scheme=http)",
    "($scheme!=https)",
    "($https=)",
    "($https!=on)",
];

/// Condition of an `if`, without quotes and spaces.
fn condition(directive: &Directive) -> String {
    let is_part = |c: &char| !(c.is_whitespace() || matches!(c, '"' | '\''));
    directive.words.concat().chars().filter(is_part).collect()
}

/// Returns true if an answer leads to `https`.
fn is_of_https(answer: &Directive) -> bool {
    let mut words = answer.words.iter();
    words.any(|word| word.starts_with("https://"))
}

/// The `return` of `if ($scheme = http) { return 301 https://… }`.
pub(super) fn redirect_of_plain(directive: &Directive) -> Option<&Directive> {
    let is_condition = directive.name == "if" && PLAIN.contains(&&*condition(directive));
    let answer = directive.children().iter().find(|it| it.name == "return")?;
    let is_redirect = is_condition && is_of_https(answer) && is_passive_condition(directive);
    is_redirect.then_some(answer)
}

/// Host of `if ($host = name) { return … }`, as written by certbot.
pub(super) fn condition_host(directive: &Directive) -> Option<&str> {
    let [variable, operator, host] = directive.words.as_slice() else {
        return None;
    };
    let is_host = directive.name == "if" && variable == "($host" && operator == "=";
    let host = host.strip_suffix(')').filter(|_| is_host)?;
    let returns = directive.children().iter().any(|it| it.name == "return");
    (returns && !has_variables(host)).then_some(host)
}
