//! Inheritance: inner blocks inherit a directive unless they have one with the same name.

use super::parser::Directive;
use crate::work;
use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// The blocks around a place, innermost last.
#[derive(Clone)]
pub(super) struct Scope<'d> {
    blocks: Vec<Rc<Block<'d>>>,
}

/// Directives of a block by name, indexed because many locations look into the same block.
struct Block<'d> {
    directives: &'d [Directive],
    named: HashMap<&'d str, Vec<&'d Directive>>,
    /// `allow` and `deny` in order.
    access: Vec<&'d Directive>,
    selected: OnceCell<Vec<&'d Directive>>,
    zones: OnceCell<HashMap<String, &'d Directive>>,
}

impl<'d> Block<'d> {
    fn new(directives: &'d [Directive]) -> Self {
        let mut named: HashMap<&str, Vec<&Directive>> = HashMap::new();
        let mut access = Vec::new();
        for directive in directives {
            work::step();
            named.entry(&directive.name).or_default().push(directive);
            if matches!(&*directive.name, "allow" | "deny") {
                access.push(directive);
            }
        }
        Self {
            directives,
            named,
            access,
            selected: OnceCell::new(),
            zones: OnceCell::new(),
        }
    }

    fn all(&self, name: &str) -> &[&'d Directive] {
        work::step();
        self.named.get(name).map_or(&[], Vec::as_slice)
    }
}

/// Directives that locations may inherit.
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
    "proxy_cache",
    "proxy_cache_background_update",
    "proxy_cache_bypass",
    "proxy_cache_convert_head",
    "proxy_cache_key",
    "proxy_cache_lock",
    "proxy_cache_lock_age",
    "proxy_cache_lock_timeout",
    "proxy_cache_max_range_offset",
    "proxy_cache_methods",
    "proxy_cache_min_uses",
    "proxy_cache_revalidate",
    "proxy_cache_use_stale",
    "proxy_cache_valid",
    "proxy_connect_timeout",
    "proxy_hide_header",
    "proxy_ignore_headers",
    "proxy_no_cache",
    "proxy_read_timeout",
    "proxy_redirect",
    "proxy_send_timeout",
    "proxy_set_header",
    "proxy_ssl_name",
    "proxy_ssl_trusted_certificate",
    "proxy_ssl_verify",
    "real_ip_header",
    "real_ip_recursive",
    "root",
    "set_real_ip_from",
    "ssl_certificate",
    "ssl_certificate_key",
    "ssl_protocols",
];

pub(super) fn is_inherited(name: &str) -> bool {
    INHERITED.contains(&name)
}

impl<'d> Scope<'d> {
    /// Directives of each block, outermost first.
    pub(super) fn blocks(&self) -> impl Iterator<Item = &'d [Directive]> {
        self.blocks.iter().map(|block| block.directives)
    }

    pub(super) fn new(block: &'d [Directive]) -> Self {
        Self {
            blocks: vec![Rc::new(Block::new(block))],
        }
    }

    pub(super) fn within(&self, block: &'d [Directive]) -> Self {
        let mut blocks = self.blocks.clone();
        blocks.push(Rc::new(Block::new(block)));
        Self { blocks }
    }

    /// Directives with a name, from the innermost block that has one.
    pub(super) fn all(&self, name: &str) -> &[&'d Directive] {
        let mut found = self.blocks.iter().rev().map(|block| block.all(name));
        found.find(|found| !found.is_empty()).unwrap_or_default()
    }

    /// `allow` and `deny` in order, from the innermost block that has one.
    pub(super) fn rules_of_access(&self) -> &[&'d Directive] {
        let mut found = self.blocks.iter().rev().map(|block| &*block.access);
        found.find(|found| !found.is_empty()).unwrap_or_default()
    }

    /// Last directive with a name, from the innermost block that has one.
    pub(super) fn last(&self, name: &str) -> Option<&'d Directive> {
        self.all(name).last().copied()
    }

    /// First word of the last directive with a name.
    pub(super) fn word(&self, name: &str) -> Option<&'d str> {
        self.last(name)?.word(0)
    }

    /// Returns true if the directive in effect for a name is outside of all servers.
    pub(super) fn is_outermost(&self, name: &str) -> bool {
        let inner = self.blocks.iter().skip(1);
        inner.map(|block| block.all(name)).all(<[_]>::is_empty)
    }

    /// The `limit_req_zone` with a name, which `name_of` extracts from the directive.
    pub(super) fn zone(
        &self,
        wanted: &str,
        name_of: impl Fn(&Directive) -> Option<String>,
    ) -> Option<&'d Directive> {
        let outermost = self.blocks.first()?;
        let zones = outermost.zones.get_or_init(|| {
            let mut zones = HashMap::new();
            for directive in outermost.all("limit_req_zone") {
                if let Some(name) = name_of(directive) {
                    zones.entry(name).or_insert(*directive);
                }
            }
            zones
        });
        zones.get(wanted).copied()
    }

    /// Directives of the outermost block.
    pub(super) fn outermost(&self) -> impl Iterator<Item = &'d Directive> {
        self.blocks
            .first()
            .into_iter()
            .flat_map(|block| block.directives)
    }

    /// Number of blocks.
    pub(super) fn depth(&self) -> usize {
        self.blocks.len()
    }

    /// First directive of each name that `is_selected` accepts, in the block at `depth`. The result
    /// is computed once per block.
    pub(super) fn selected(
        &self,
        depth: usize,
        is_selected: impl Fn(&Directive) -> bool,
    ) -> &[&'d Directive] {
        let Some(block) = self.blocks.get(depth) else {
            return &[];
        };
        block.selected.get_or_init(|| {
            let mut names: HashSet<&str> = HashSet::new();
            let selected = block.directives.iter().filter(|it| is_selected(it));
            selected.filter(|it| names.insert(&it.name)).collect()
        })
    }

    /// Directives of the innermost block.
    pub(super) fn innermost(&self) -> &'d [Directive] {
        self.blocks.last().map_or(&[], |block| block.directives)
    }
}
