//! Edits of a document tree that keep every comment and the layout around them.

use kdl::{KdlDocument, KdlDocumentFormat, KdlEntryFormat, KdlIdentifier, KdlNode, KdlNodeFormat};
use std::mem;

/// The node `name { node }` on one line, with the spaces and comments of `node` around it.
pub(crate) fn nest(mut node: KdlNode, name: &str) -> KdlNode {
    let mut inner = layout(&node);
    let mut outer = KdlNodeFormat {
        leading: mem::replace(&mut inner.leading, " ".to_owned()),
        before_children: " ".to_owned(),
        terminator: mem::take(&mut inner.terminator),
        ..KdlNodeFormat::default()
    };
    let after = &mut inner.before_terminator;
    let own = if has_disabled_part(after) {
        after.trim_end().len()
    } else {
        0
    };
    outer.before_terminator = after.split_off(own);
    node.set_format(inner);
    let mut nest = KdlNode::new(name);
    nest.set_format(outer);
    nest.set_children(block_on_one_line(node));
    nest
}

/// Adds a block with the node `first` to a node without a block.
pub(crate) fn open_block(node: &mut KdlNode, mut first: KdlNode) {
    let mut format = layout(&first);
    " ".clone_into(&mut format.leading);
    first.set_format(format);
    let mut format = layout(node);
    if has_disabled_part(&format.before_terminator) {
        format.before_children = mem::take(&mut format.before_terminator);
    }
    if !format.before_children.ends_with(' ') {
        format.before_children.push(' ');
    }
    node.set_format(format);
    node.set_children(block_on_one_line(first));
}

/// Inserts a node at the beginning of a block, in a separate line if the first node has one.
pub(crate) fn insert_first(block: &mut KdlDocument, mut node: KdlNode) {
    let is_empty = block.nodes().is_empty();
    let mut format = layout(&node);
    " ".clone_into(&mut format.leading);
    edit_leading(block, 0, |following| {
        let lines = following
            .split_once('\n')
            .filter(|(line, _)| !is_empty && ends_with_its_line(line));
        if let Some((line, rest)) = lines {
            let newline = if line.ends_with('\r') { "\r\n" } else { "\n" };
            let indent = rest.rsplit('\n').next().unwrap_or_default();
            let indent = if indent.trim().is_empty() { indent } else { "" };
            format.leading = format!("{line}\n{indent}");
            *following = format!("{newline}{rest}");
        } else if is_empty && ends_with_its_line(following) {
            format.before_terminator.push(' ');
        } else {
            ";".clone_into(&mut format.terminator);
        }
    });
    node.set_format(format);
    block.nodes_mut().insert(0, node);
}

/// Appends a node to a document, on a line of its own.
pub(crate) fn append(document: &mut KdlDocument, mut node: KdlNode) {
    let mut format = layout(&node);
    format.leading = String::new();
    "\n".clone_into(&mut format.terminator);
    if let Some(last) = document.nodes_mut().last_mut()
        && !ends_line(last)
    {
        let mut end = layout(last);
        "\n".clone_into(&mut end.terminator);
        last.set_format(end);
    }
    node.set_format(format);
    document.nodes_mut().push(node);
}

/// Removes a node, with its line if nothing else is on it. Comments before and after it are kept.
pub(crate) fn remove_node(block: &mut KdlDocument, index: usize) -> KdlNode {
    let before = index.checked_sub(1).and_then(|at| block.nodes().get(at));
    let is_behind_line_end = before.is_some_and(ends_line);
    let mut node = block.nodes_mut().remove(index);
    let mut format = layout(&node);
    let leading = mem::take(&mut format.leading);
    let terminator = mem::take(&mut format.terminator);
    let after = if has_disabled_part(&format.before_terminator) {
        String::new()
    } else {
        mem::take(&mut format.before_terminator)
    };
    node.set_format(format);
    let (lines, indent) = leading.split_at(leading.rfind('\n').map_or(0, |newline| newline + 1));
    let begins_line = (is_behind_line_end || !lines.is_empty()) && indent.trim().is_empty();
    let is_blank = |c: char| c.is_whitespace() || c == '\\';
    let after = if after.chars().all(is_blank) {
        after.replace('\\', "")
    } else {
        after
    };
    let has_comment = !after.trim().is_empty() || terminator.starts_with("//");
    let kept = if has_comment {
        format!("{leading}{}{terminator}", after.trim_start())
    } else if terminator == ";" {
        leading.clone()
    } else if terminator.is_empty() {
        format!("{}{after}", leading.trim_end_matches([' ', '\t']))
    } else if begins_line {
        lines.to_owned()
    } else {
        format!("{}{terminator}", leading.trim_end_matches([' ', '\t']))
    };
    edit_leading(block, index, |following| {
        if terminator == ";" {
            *following = following.trim_start_matches(' ').to_owned();
        }
        following.insert_str(0, &kept);
    });
    node
}

/// Removes a property, and returns the node `name` with its value. Comments before it are kept.
pub(crate) fn remove_property(node: &mut KdlNode, index: usize, name: &str) -> KdlNode {
    let mut entry = node.entries_mut().remove(index);
    let format = entry.format().cloned().unwrap_or_default();
    let comments = format.leading.trim_end();
    if !comments.is_empty() {
        edit_following(node, index, |following| following.insert_str(0, comments));
    }
    entry.set_name(None::<KdlIdentifier>);
    entry.set_format(KdlEntryFormat {
        leading: " ".to_owned(),
        after_key: String::new(),
        after_eq: String::new(),
        ..format
    });
    let mut setting = KdlNode::new(name);
    setting.set_format(KdlNodeFormat::default());
    setting.entries_mut().push(entry);
    setting
}

fn block_on_one_line(node: KdlNode) -> KdlDocument {
    let mut block = KdlDocument::new();
    block.set_format(KdlDocumentFormat {
        trailing: " ".to_owned(),
        ..KdlDocumentFormat::default()
    });
    block.nodes_mut().push(node);
    block
}

fn layout(node: &KdlNode) -> KdlNodeFormat {
    node.format().cloned().unwrap_or_default()
}

/// Returns true if there is a value or a block commented out by `/-`, which must stay with its
/// node.
fn has_disabled_part(text: &str) -> bool {
    text.contains("/-")
}

/// Returns true if only spaces and a comment precede the end of the first line of `text`.
fn ends_with_its_line(text: &str) -> bool {
    let text = text.trim_start_matches([' ', '\t']);
    text.is_empty() || text.starts_with(['\r', '\n']) || text.starts_with("//")
}

fn ends_line(node: &KdlNode) -> bool {
    let format = node.format();
    format.is_some_and(|format| !matches!(&*format.terminator, "" | ";"))
}

/// Edits the text before the node at `index`, or at the end of a block with fewer nodes.
fn edit_leading(block: &mut KdlDocument, index: usize, edit: impl FnOnce(&mut String)) {
    if let Some(node) = block.nodes_mut().get_mut(index) {
        let mut format = layout(node);
        edit(&mut format.leading);
        node.set_format(format);
        return;
    }
    let format = block.format().cloned().unwrap_or_default();
    let mut trailing = format.leading + &format.trailing;
    edit(&mut trailing);
    block.set_format(KdlDocumentFormat {
        leading: String::new(),
        trailing,
    });
}

/// Edits the text before the entry at `index`, or after the last one.
fn edit_following(node: &mut KdlNode, index: usize, edit: impl FnOnce(&mut String)) {
    if let Some(entry) = node.entries_mut().get_mut(index) {
        let mut format = entry.format().cloned().unwrap_or_default();
        edit(&mut format.leading);
        entry.set_format(format);
        return;
    }
    let mut format = layout(node);
    if node.children().is_some() {
        edit(&mut format.before_children);
    } else {
        edit(&mut format.before_terminator);
    }
    node.set_format(format);
}
