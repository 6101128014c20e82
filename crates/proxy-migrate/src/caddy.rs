//! Caddyfiles.

mod address;
mod error_pages;
mod matcher;
mod order;
mod parser;
mod proxy;
mod site_block;
mod value;

use crate::migrated::SyntaxError;
use crate::site::Site;
use crate::source::Source;
use parser::Directive;

/// Reads a Caddyfile.
pub(crate) fn read(source: &Source) -> Result<Site, SyntaxError> {
    let mut site = Site::default();
    for block in parser::parse(source)? {
        if block.words.is_empty() {
            options(&mut site, &block);
        } else {
            site_block::read(&mut site, &block);
        }
    }
    site.shorten_listeners();
    Ok(site)
}

/// The block of global options.
fn options(site: &mut Site, block: &Directive) {
    for option in &block.block {
        let advice = match option.name() {
            "email" | "acme_ca" | "acme_dns" | "auto_https" | "on_demand_tls" | "local_certs" => {
                "certificates are files here: write `tls { cert-file …; key-file … }` in the listener"
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
