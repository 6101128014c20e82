//! The `routes` block.

pub mod answers;

use super::kind::Block;
use super::number::Integer;
use super::spec::{DefaultValue, MachinePart, Repeatable, Required, Spec, Unset, row};
use super::table::{block, choice, file, flag, named, settings, word, words};
use super::text::{Text, Written};
use super::word::{Choice, ChoiceWord, Flag};
use crate::route::{BuiltinHandler, ServiceType};
use std::path::PathBuf;

const PRIORITIES: &[(&str, i32)] = &[
    ("low", 10),
    ("normal", 50),
    ("high", 100),
    ("critical", 1_000),
];

const SERVICE_TYPES: &[ChoiceWord<ServiceType>] = &[
    word(
        "api",
        ServiceType::Api,
        "an upstream; errors of the proxy are JSON",
    ),
    word(
        "web",
        ServiceType::Web,
        "an upstream; errors of the proxy are HTML pages",
    ),
    word(
        "builtin",
        ServiceType::Builtin,
        "the proxy itself; requires `builtin-handler`",
    ),
    word(
        "static",
        ServiceType::Static,
        "files of a folder; requires `static-files`",
    ),
];

pub(super) const HANDLERS: &[ChoiceWord<BuiltinHandler>] = &[
    word(
        "health",
        BuiltinHandler::Health,
        "`{\"status\":\"healthy\"}`",
    ),
    word(
        "ready",
        BuiltinHandler::Ready,
        "200 when the proxy accepts traffic, else 503",
    ),
    word(
        "status",
        BuiltinHandler::Status,
        "version, uptime and reloads",
    ),
    word(
        "metrics",
        BuiltinHandler::Metrics,
        "metrics in Prometheus text format",
    ),
    word("not-found", BuiltinHandler::NotFound, "404"),
    word(
        "welcome",
        BuiltinHandler::Welcome,
        "a page that confirms that the proxy runs",
    ),
];

const fn priority() -> Spec<Integer<i32>, Required> {
    row(
        "routes.route.priority",
        Integer {
            least: -1_000_000,
            greatest: 1_000_000,
            unit: "",
            words: PRIORITIES,
        },
    )
}

settings! {
    /// A route: match conditions, service and policies.
    ROUTE: Block, Repeatable = named("routes.route", "an id")
        .many()
        .enforced("proxy-plan", "an_exact_path_matches_only_itself");
    /// Routes of higher priority are matched first. `low` is 10, `normal` 50, `high` 100,
    /// `critical` 1000. At equal priority the host decides, then the path, then the number of
    /// further conditions, then the order of the file.
    PRIORITY: Integer<i32>, DefaultValue<i32> = priority()
        .or(50)
        .enforced("proxy-routing", "the_higher_priority_wins_whatever_the_order_and_the_path");
    /// Names of the route's listeners: `listeners "http" "admin"`. Counts as one
    /// condition more among routes of the same host and path.
    LISTENERS: Text<String>, Repeatable = words("routes.route.listeners", "a listener's name", "http")
        .many()
        .enforced("proxy-server", "a_route_takes_requests_of_its_listeners_only");
    /// The upstream that requests are forwarded to.
    UPSTREAM: Text<String>, Unset = words("routes.route.upstream", "an upstream's name", "app")
        .optional("the route is `builtin` or `static`")
        .enforced("proxy-pipeline", "the_request_target_is_forwarded_unchanged");
    /// The kind of service, and the format of the proxy's own errors.
    SERVICE_TYPE: Choice<ServiceType>, Unset = choice("routes.route.service-type", SERVICE_TYPES)
        .optional("an upstream; errors of the proxy are HTML for clients that prefer it, else JSON")
        .enforced("proxy-pipeline", "api_routes_send_errors_in_json_whatever_the_client_accepts");
    /// The built-in handler. Requires `service-type "builtin"`.
    BUILTIN_HANDLER: Choice<BuiltinHandler>, Unset =
        choice("routes.route.builtin-handler", HANDLERS)
            .optional("the route is not `builtin`")
            .enforced("proxy-pipeline", "the_health_handler_answers_healthy");
    /// Serves the files of a folder. Requires `service-type "static"`.
    STATIC_FILES: Block, Unset = block("routes.route.static-files")
        .optional("the route is not `static`")
        .enforced("proxy-files", "a_file_is_sent_with_its_type_and_validators");
    /// The folder; a request's whole path is the file's path in it. Files outside it are never
    /// sent, not even through symbolic links, nor are names with a leading dot, except
    /// `/.well-known/`. A file that cannot be read within 30 seconds is answered 504.
    STATIC_ROOT: Text<PathBuf>, Required =
        file("routes.route.static-files.root", "a folder", "/srv/www")
            .names(MachinePart::Folder)
            .enforced("proxy-files", "nothing_outside_the_root_is_sent");
    /// The file sent for a folder; folders are never listed.
    STATIC_INDEX: Text<String>, DefaultValue<Written<String>> =
        words("routes.route.static-files.index", "a file name", "index.html")
            .or(super::table::written("index.html", || "index.html".to_owned()))
            .enforced("proxy-files", "a_folder_is_answered_by_its_index");
    /// The file, relative to the root, sent for paths that match no file, as single-page
    /// applications require.
    STATIC_FALLBACK: Text<String>, Unset =
        words("routes.route.static-files.fallback", "a file name", "index.html")
            .optional("such paths are answered 404")
            .enforced("proxy-files", "the_fallback_answers_for_paths_that_name_no_file");
    /// Sends the `.br`, `.zst` and `.gz` variants of a file to clients that accept them, unless a
    /// variant is more than a second older than the file.
    STATIC_PRECOMPRESSED: Flag, DefaultValue<bool> = flag("routes.route.static-files.precompressed")
        .or(false)
        .enforced("proxy-files", "precompressed_files_are_sent_to_clients_that_accept_them");
    /// Agents that decide about each request, in this order.
    AGENTS: Text<String>, Repeatable = words("routes.route.agents", "an agent's name", "waf")
        .many()
        .enforced("proxy-pipeline", "edits_of_agents_reach_the_next_agent_and_the_target_in_order");
}
