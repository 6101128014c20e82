//! Configurations of other servers, written as KDL.
//!
//! [`migrate`] carries over the common subset: listeners, names, certificates, upstreams, files, redirects, header
//! fields, rewrites, networks, times, sizes, rates. Everything else is listed with its place and a way to do without
//! it. A request for content that could not be converted is answered 501, so that no other route takes it.

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

/// A server with a configuration that can be migrated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// `nginx.conf`, or a file of servers.
    Nginx,
    /// Caddyfile, as of Caddy 2.
    Caddy,
    /// `haproxy.cfg`.
    Haproxy,
    /// A static configuration of Traefik, or a dynamic one, in YAML or TOML.
    Traefik,
}

/// Size of the header fields of a request that fit into the buffer of `HAProxy`.
const HAPROXY_HEADER_BYTES: u64 = 15 << 10;
/// Size of the header fields for servers that accept more than clients send: the limit of nginx.
const HEADER_BYTES: u64 = 32 << 10;

/// Migrates a configuration. `included` gives the files of an `include` or an `errorfile` for its pattern as written:
/// `None` if they are not there, so that directives are missing. A pattern with a wildcard may fit no file.
///
/// # Errors
///
/// The first place where the text is not of the language.
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
        // Its own limits are written.
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
