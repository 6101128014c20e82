//! Users and passwords.

use crate::policies::RequestRate;
use crate::registry::kind::{Block, Pair};
use crate::registry::spec::{DefaultValue, Repeatable, Unset};
use crate::registry::table::{block, file, flag, pair, settings, text, written};
use crate::registry::text::{Text, Written};
use crate::registry::word::Flag;
use std::path::PathBuf;

const BY: &str = "proxy-server";

/// The minimum text of a quoted string: a challenge has it between quotes.
pub(super) fn realm(text: &str) -> Result<String, String> {
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
    match text {
        "" => Err("it is empty".to_owned()),
        text if text.bytes().all(is_plain) => Ok(text.to_owned()),
        _ => Err("only printable ASCII, without quotes and backslashes".to_owned()),
    }
}

settings! {
    /// Admits only users with a name and a password: the `Basic` scheme of HTTP. All other requests
    /// are answered 401, reason `credentials_missing` or `credentials_invalid`. Correct credentials
    /// are cached for a minute, as a keyed digest in memory, so that their hash is not computed for
    /// each request. Preflight requests of `cors` need none.
    BASIC_AUTH: Block, Unset = block("routes.route.policies.basic-auth")
        .optional("no password is needed")
        .also(&["routes.route"])
        .enforced(BY, "users_of_the_list_and_of_the_file_are_admitted");
    /// The name shown in browsers' password dialogs.
    BASIC_REALM: Text<String>, DefaultValue<Written<String>> = text(
        "routes.route.policies.basic-auth.realm",
        "printable ASCII",
        "Wiki",
        realm,
    )
    .or(written("restricted", || "restricted".to_owned()))
    .enforced(BY, "a_request_without_credentials_is_challenged");
    /// A user, and the hash of the password: bcrypt (`htpasswd -nB ann`), which reads the first 72 bytes of
    /// a password, or Argon2. Passwords in clear, MD5 and SHA are refused.
    BASIC_USER: Pair, Repeatable = pair(
        "routes.route.policies.basic-auth.user",
        "a name and the hash of a password",
        "\"ann\" \"$2y$04$abcdefghijklmnopqrstuu5Eib6dQmcaRkU2y9cEEtmnhcGHVBJfm\"",
    )
    .many()
    .enforced(BY, "users_of_the_list_and_of_the_file_are_admitted");
    /// Files of users as Apache's `htpasswd -B` writes them: `user:hash`, one a line, and at least one. They are
    /// read at start and at each reload.
    BASIC_USERS_FILE: Text<PathBuf>, Repeatable =
        file("routes.route.policies.basic-auth.users-file", "a file of users", "users.htpasswd")
            .many()
            .enforced(BY, "a_reload_reads_files_of_users_again");
    /// Wrong passwords of one client, by its address (IPv6 by /64), before further ones are answered 429, reason
    /// `credential_attempts`, until the rate allows the next. Credentials that the same client proved within
    /// the last minute still pass.
    BASIC_ATTEMPTS: Text<RequestRate>, DefaultValue<Written<RequestRate>> = text(
        "routes.route.policies.basic-auth.attempts",
        "a rate",
        "10/min",
        |text| text.parse::<RequestRate>().map_err(str::to_owned),
    )
    .or(written("10/min", || RequestRate { events: 10, period_secs: 60 }))
    .enforced(BY, "guessing_is_limited_for_each_client");
    /// Forwards the credentials to the upstream. Agents never receive them.
    BASIC_FORWARD: Flag, DefaultValue<bool> = flag("routes.route.policies.basic-auth.forward-credentials")
        .or(false)
        .enforced(BY, "the_password_is_forwarded_only_if_the_route_is_configured_to");
}
