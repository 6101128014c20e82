//! Inheritance: a directive holds in inner blocks unless they have one of its name.

use super::parser::Directive;

/// The blocks around a place, the innermost last.
#[derive(Clone)]
pub(super) struct Scope<'d> {
    blocks: Vec<&'d [Directive]>,
}

/// Directives that are read from the scope of a location.
const INHERITED: &[&str] = &[
    "add_header",
    "allow",
    "client_max_body_size",
    "deny",
    "error_page",
    "gzip",
    "gzip_comp_level",
    "gzip_min_length",
    "gzip_static",
    "gzip_types",
    "index",
    "limit_req",
    "limit_req_zone",
    "proxy_connect_timeout",
    "proxy_hide_header",
    "proxy_read_timeout",
    "proxy_send_timeout",
    "proxy_set_header",
    "proxy_ssl_name",
    "proxy_ssl_trusted_certificate",
    "proxy_ssl_verify",
    "root",
    "ssl_certificate",
    "ssl_certificate_key",
    "ssl_protocols",
];

pub(super) fn is_inherited(name: &str) -> bool {
    INHERITED.contains(&name)
}

impl<'d> Scope<'d> {
    pub(super) fn new(block: &'d [Directive]) -> Self {
        Self {
            blocks: vec![block],
        }
    }

    pub(super) fn within(&self, block: &'d [Directive]) -> Self {
        let mut blocks = self.blocks.clone();
        blocks.push(block);
        Self { blocks }
    }

    /// The directives of a name in the innermost block that has one.
    pub(super) fn all(&self, name: &str) -> Vec<&'d Directive> {
        let of = |block: &&'d [Directive]| -> Vec<&'d Directive> {
            block.iter().filter(|it| it.name == name).collect()
        };
        let mut found = self.blocks.iter().rev().map(of);
        found.find(|found| !found.is_empty()).unwrap_or_default()
    }

    /// The rules `allow` and `deny` of the innermost block that has one, in their order.
    pub(super) fn rules_of_access(&self) -> Vec<&'d Directive> {
        let of = |block: &&'d [Directive]| -> Vec<&'d Directive> {
            let rules = block.iter();
            rules
                .filter(|it| matches!(&*it.name, "allow" | "deny"))
                .collect()
        };
        let mut found = self.blocks.iter().rev().map(of);
        found.find(|found| !found.is_empty()).unwrap_or_default()
    }

    /// The last directive of a name in the innermost block that has one.
    pub(super) fn last(&self, name: &str) -> Option<&'d Directive> {
        self.all(name).last().copied()
    }

    /// The first word of the last directive of a name.
    pub(super) fn word(&self, name: &str) -> Option<&'d str> {
        self.last(name)?.word(0)
    }

    /// The directives of a name in the outermost block.
    pub(super) fn outermost(&self, name: &str) -> Vec<&'d Directive> {
        let outermost = self.blocks.first().copied().unwrap_or_default();
        outermost.iter().filter(|it| it.name == name).collect()
    }

    /// The blocks, the outermost first.
    pub(super) fn blocks(&self) -> &[&'d [Directive]] {
        &self.blocks
    }

    /// The innermost block.
    pub(super) fn innermost(&self) -> &'d [Directive] {
        self.blocks.last().copied().unwrap_or_default()
    }
}
