//! Converts configurations of other servers to KDL.
//!
//! [`migrate`] converts the common subset: listeners, names, certificates, upstreams, files,
//! redirects, header fields, rewrites, networks, timeouts, sizes, rates. Everything else is noted
//! with its place and an alternative. If content cannot be converted, its route answers 501, so
//! that no other route gets its requests.

mod caddy;
mod cursor;
mod haproxy;
mod index;
mod kdl;
mod migrated;
mod nginx;
mod site;
mod source;
#[cfg(test)]
mod tests;
mod tests_block;
mod traefik;
mod units;
mod work;
mod write;

pub use migrated::{Migrated, NotMigrated, Place, SyntaxError};
pub use source::Source;

/// Format of the configuration to migrate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// `nginx.conf`, or a file with `server` blocks.
    Nginx,
    /// Caddyfile, as of Caddy 2.
    Caddy,
    /// `haproxy.cfg`.
    Haproxy,
    /// Static or dynamic configuration of Traefik, in YAML or TOML.
    Traefik,
}

/// Maximum size of a request's header fields in `HAProxy`'s buffer.
const HAPROXY_HEADER_BYTES: u64 = 15 << 10;
/// Maximum size of header fields for servers with larger limits than clients use; equal to nginx's.
const HEADER_BYTES: u64 = 32 << 10;

/// Migrates a configuration. `included` returns the files for the pattern of an `include` or
/// `errorfile`, as written; `None` if they are missing, which leaves out directives. A pattern with
/// a wildcard may match no file.
///
/// # Errors
///
/// The first place with a syntax error.
pub fn migrate(
    language: Language,
    source: &Source,
    included: &dyn Fn(&str) -> Option<Vec<Source>>,
) -> Result<Migrated, SyntaxError> {
    let source = &Source {
        name: source.name.clone(),
        text: source.text.trim_start_matches('\u{feff}').to_owned(),
    };
    let mut site = match language {
        Language::Nginx => nginx::read(source, included)?,
        Language::Caddy => caddy::read(source)?,
        Language::Haproxy => haproxy::read(source, included)?,
        Language::Traefik => traefik::read(source, included)?,
    };
    match language {
        // nginx's own limits are converted.
        Language::Nginx => {}
        Language::Haproxy => site.raise_limits(HAPROXY_HEADER_BYTES),
        Language::Caddy | Language::Traefik => site.raise_limits(HEADER_BYTES),
    }
    if site.is_full() {
        return Err(SyntaxError {
            place: Place {
                file: source.name.clone(),
                line: 1,
            },
            message: "the routes would have more than 1 000 000 conditions: hosts and header fields of a \
                      server count for each of its locations"
                .to_owned(),
        });
    }
    Ok(write::write(site, &source.name))
}
