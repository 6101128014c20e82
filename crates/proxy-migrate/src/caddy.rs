//! Reads Caddyfiles.

mod access;
mod address;
mod advice;
mod automatic;
mod error_pages;
mod matcher;
mod order;
mod parser;
mod proxy;
mod redirects;
mod site_block;
mod value;

use crate::migrated::SyntaxError;
use crate::site::Site;
use crate::source::Source;
use access::Hidden;
use automatic::Automatic;
use parser::Directive;

/// Reads a Caddyfile.
pub(crate) fn read(source: &Source) -> Result<Site, SyntaxError> {
    let mut site = Site::default();
    let (blocks, sites): (Vec<_>, Vec<_>) = parser::parse(source)?
        .into_iter()
        .partition(|block| block.words.is_empty());
    let (imports, sites): (Vec<_>, Vec<_>) = sites
        .into_iter()
        .partition(|line| !line.has_block && line.name() == "import");
    for import in &imports {
        let advice = "files are not followed: convert each of them; their sites are missing";
        site.note(&import.place, &import.shown(), advice);
    }
    let hidden = Hidden::read(&blocks);
    let mut automatic = blocks.iter().find_map(Automatic::read);
    for block in &sites {
        site_block::read(&mut site, block, automatic.as_mut(), hidden);
    }
    let is_automatic = automatic.is_some_and(|it| it.has_certificates());
    for block in &blocks {
        options(&mut site, block, is_automatic);
    }
    site.shorten_listeners();
    Ok(site)
}

/// Notes global options that are not converted. Options for obtained certificates are written with
/// the sites.
fn options(site: &mut Site, block: &Directive, is_automatic: bool) {
    for option in &block.block {
        let advice = match option.name() {
            "email" | "acme_ca" if is_automatic => continue,
            "email" | "acme_ca" | "acme_dns" | "auto_https" | "on_demand_tls" | "local_certs" => {
                "write `tls { cert-file …; key-file … }` or `tls { acme … }` in the listener"
            }
            "admin" => "the admin interface is `admin { address … }`, on 127.0.0.1:9090 without it",
            "log" | "debug" => "write `observability { error-log { level … } }`",
            "order" => "nothing has to be ordered here",
            "servers" => "write `timeouts` and `trusted-proxies` in the listeners",
            _ => "not carried over; see docs/learn/coming-from/caddy.md",
        };
        site.note(&option.place, &option.shown(), advice);
    }
}
