//! Converts middlewares to policies of a route. If one is not migrated, its routers answer 501.

mod access;
mod draft;
mod headers;
mod paths;
mod traffic;

pub(super) use draft::{Agents, Draft};

use super::configuration::Configuration;
use super::document::Entry;
use crate::site::Site;
use draft::{Middleware, Unwritten};

/// Maximum number of middlewares per router, including those in chains.
const MAX_MIDDLEWARES: usize = 256;

/// Migrates middlewares in order to policies of `draft`; returns true if all of them were migrated.
pub(super) fn apply(
    site: &mut Site,
    configuration: &Configuration<'_>,
    draft: &mut Draft<'_>,
    router: &Entry,
    references: &[&str],
) -> bool {
    let mut is_whole = true;
    for reference in references {
        draft.count += 1;
        if draft.count > MAX_MIDDLEWARES {
            site.note(
                &router.place(),
                &router.key,
                "its chains have too many middlewares; its routes answer 501",
            );
            return false;
        }
        let Some(entry) = configuration.middlewares.get(reference) else {
            site.note(
                &router.place(),
                &format!("{}: middleware {reference}", router.key),
                "no file has the middleware; its routes answer 501",
            );
            is_whole = false;
            continue;
        };
        let kinds = entry.value.entries();
        for kind in kinds {
            if kind.key.eq_ignore_ascii_case("chain") {
                let inner = kind.value.texts_of("middlewares");
                is_whole &= apply(site, configuration, draft, router, &inner);
                continue;
            }
            let middleware = Middleware {
                name: &entry.key,
                kind,
            };
            if let Err(Unwritten(advice)) = migrate(site, draft, middleware) {
                is_whole = false;
                let advice = format!("{advice}; the routers that use it answer 501 until then");
                let shown = format!("{}: {}", entry.key, kind.key);
                site.note(&kind.place(), &shown, &advice);
            }
        }
        if kinds.is_empty() {
            is_whole = false;
            site.note(
                &entry.place(),
                &entry.key,
                "it has no kind; its routes answer 501",
            );
        }
    }
    is_whole
}

/// Migrates one middleware.
///
/// # Errors
/// It has no counterpart; with advice.
fn migrate(
    site: &mut Site,
    draft: &mut Draft<'_>,
    middleware: Middleware<'_>,
) -> Result<(), Unwritten> {
    // A redirect answers before later middlewares, but later checks must be migrated as well.
    match middleware.kind.key.to_ascii_lowercase().as_str() {
        "basicauth" => access::basic_auth(draft, middleware),
        "forwardauth" => access::forward_auth(site, draft, middleware),
        "ipallowlist" | "ipwhitelist" => access::allow_list(site, draft, middleware),
        "headers" => headers::edit(site, draft, middleware),
        "stripprefix" => paths::strip(draft, middleware),
        "addprefix" => paths::add(draft, middleware),
        "replacepath" => paths::replace(draft, middleware),
        "redirectscheme" => paths::redirect_scheme(draft, middleware),
        "redirectregex" => paths::redirect_regex(site, draft, middleware),
        "compress" => {
            traffic::compress(site, draft, middleware);
            Ok(())
        }
        "ratelimit" => traffic::rate_limit(site, draft, middleware),
        "retry" => {
            traffic::retry(draft, middleware);
            Ok(())
        }
        "buffering" => {
            traffic::buffering(site, draft, middleware);
            Ok(())
        }
        "circuitbreaker" => {
            traffic::circuit_breaker(site, draft, middleware);
            Ok(())
        }
        "errors" => {
            middleware.note(
                site,
                "",
                "responses of an upstream pass as they are; the proxy's own errors are JSON or HTML by `service-type`",
            );
            Ok(())
        }
        "contenttype" | "grpcweb" => Ok(()),
        "digestauth" => Err(Unwritten("write `basic-auth`, or an agent")),
        "inflightreq" => Err(Unwritten("write `limits { max-connections-per-route … }`")),
        "stripprefixregex" | "replacepathregex" => Err(Unwritten(
            "write `rewrite { path-from-regex … }` in a route with `path-regex`",
        )),
        "passtlsclientcert" => Err(Unwritten(
            "write `request-headers { set … \"{tls_client_subject}\" }`",
        )),
        "plugin" => Err(Unwritten("run it as an agent")),
        _ => Err(Unwritten("it is not known here")),
    }
}
