//! `timeout-secs` and `timeout-ms` of an upstream, succeeded by `request-secs` and `request-ms` of
//! its block `timeouts`.

use crate::kdl::document::edits::{insert_first, nest, open_block, remove_node, remove_property};
use kdl::{KdlDocument, KdlIdentifier, KdlNode};
use proxy_model::registry;

/// A note, with the offset of its setting.
type Note = (usize, String);

/// The setting of `timeouts` that succeeds a deprecated setting of an upstream.
pub(super) fn successor(name: &str) -> Option<&'static str> {
    let deprecated = registry::upstreams::TIMEOUT;
    deprecated.deprecated?;
    match name {
        "timeout-secs" => Some("request-secs"),
        "timeout-ms" => Some("request-ms"),
        _ => None,
    }
}

/// Replaces the deprecated settings of all upstreams, and returns a note for each.
pub(super) fn replace(document: &mut KdlDocument) -> Vec<Note> {
    let mut notes = Vec::new();
    for upstreams in named(document, "upstreams") {
        let blocks = upstreams.children_mut().iter_mut();
        for upstream in blocks.flat_map(|block| named(block, "upstream")) {
            replace_properties(upstream, &mut notes);
            if let Some(block) = upstream.children_mut() {
                replace_nodes(block, &mut notes);
            }
        }
    }
    notes
}

fn named<'d>(
    document: &'d mut KdlDocument,
    name: &'static str,
) -> impl Iterator<Item = &'d mut KdlNode> {
    let nodes = document.nodes_mut().iter_mut();
    nodes.filter(move |node| node.name().value() == name)
}

/// `upstream "u" timeout-secs=7 { … }`: the property goes, and its successor is the first in the
/// block.
fn replace_properties(upstream: &mut KdlNode, notes: &mut Vec<Note>) {
    let mut index = 0;
    while let Some(entry) = upstream.entries().get(index) {
        let name = entry.name().map(KdlIdentifier::value);
        let Some((name, nested)) = name.and_then(|name| Some((name, successor(name)?))) else {
            index += 1;
            continue;
        };
        let at = entry.span().offset();
        if upstream.children().is_some_and(states_timeout) {
            notes.push((at, format!("`{name}` is also set in the block; keep one")));
            index += 1;
            continue;
        }
        notes.push((at, format!("`{name}` became `timeouts {{ {nested} }}`")));
        let setting = remove_property(upstream, index, nested);
        put_property(upstream, setting);
    }
}

/// Returns true if an upstream's block has a timeout of requests, deprecated or not.
fn states_timeout(block: &KdlDocument) -> bool {
    let mut nodes = block.nodes().iter();
    nodes.any(|node| has_request(node) || successor(node.name().value()).is_some())
}

/// Returns true if a node is a `timeouts` with a timeout of requests.
fn has_request(node: &KdlNode) -> bool {
    let mut settings = node.iter_children().map(|node| node.name().value());
    is_timeouts(node) && settings.any(|name| matches!(name, "request-secs" | "request-ms"))
}

fn is_timeouts(node: &KdlNode) -> bool {
    node.name().value() == "timeouts" && node.children().is_some()
}

/// Writes a setting of `timeouts` into the block of an upstream that states no timeout.
fn put_property(upstream: &mut KdlNode, setting: KdlNode) {
    let Some(block) = upstream.children_mut() else {
        open_block(upstream, nest(setting, "timeouts"));
        return;
    };
    match block.nodes_mut().iter_mut().find(|node| is_timeouts(node)) {
        Some(timeouts) => insert_setting(timeouts, setting),
        None => insert_first(block, nest(setting, "timeouts")),
    }
}

fn insert_setting(timeouts: &mut KdlNode, setting: KdlNode) {
    if let Some(settings) = timeouts.children_mut() {
        insert_first(settings, setting);
    }
}

/// `timeout-secs 30` becomes `timeouts { request-secs 30 }`, or moves into an existing `timeouts`.
fn replace_nodes(block: &mut KdlDocument, notes: &mut Vec<Note>) {
    let mut index = 0;
    while let Some(node) = block.nodes().get(index) {
        let name = node.name().value().to_owned();
        let at = node.name().span().offset();
        let Some(nested) = successor(&name) else {
            index += 1;
            continue;
        };
        let timeouts = block.nodes().iter().position(is_timeouts);
        let is_stated = block.nodes().iter().any(has_request);
        let note = match timeouts {
            Some(_) if is_stated => {
                index += 1;
                format!("`{name}` and `timeouts` both say it; keep one")
            }
            Some(timeouts) => {
                move_node(block, index, timeouts, nested);
                format!("`{name}` moved into `timeouts`")
            }
            None => {
                wrap(block, index, nested);
                format!("`{name}` became `timeouts {{ {nested} }}`")
            }
        };
        notes.push((at, note));
    }
}

/// Moves the node at `index` into the block of the node at `timeouts`, named `nested` there.
fn move_node(block: &mut KdlDocument, index: usize, timeouts: usize, nested: &str) {
    let mut setting = remove_node(block, index);
    setting.set_name(nested);
    let shifted = timeouts - usize::from(index < timeouts);
    if let Some(timeouts) = block.nodes_mut().get_mut(shifted) {
        insert_setting(timeouts, setting);
    }
}

/// Puts the node at `index`, named `nested`, into a block `timeouts` in its place.
fn wrap(block: &mut KdlDocument, index: usize, nested: &str) {
    if let Some(node) = block.nodes_mut().get_mut(index) {
        node.set_name(nested);
        *node = nest(node.clone(), "timeouts");
    }
}
