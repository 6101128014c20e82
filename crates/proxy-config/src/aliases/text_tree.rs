//! The `kdl` crate's tree of a text, which keeps comments and layout.

use super::alias::Argument;
use super::tree::Tree;
use crate::kdl::document::edits::{
    append, insert_first, nest, open_block, remove_node, remove_property,
};
use crate::kdl::{Span, Value};
use kdl::{KdlEntry, KdlEntryFormat, KdlIdentifier, KdlNode, KdlNodeFormat, KdlValue};

impl Tree for KdlNode {
    fn name(&self) -> &str {
        self.name().value()
    }

    fn span(&self) -> Span {
        Span::default()
    }

    fn property_span(&self, _name: &str) -> Span {
        Span::default()
    }

    fn arguments(&self) -> Vec<Argument> {
        let argument = |entry: &KdlEntry| Argument {
            name: entry.name().map(|name| name.value().into()),
            value: value(entry.value()),
        };
        self.entries().iter().map(argument).collect()
    }

    fn has_block(&self) -> bool {
        self.children().is_some()
    }

    fn children(&self) -> &[Self] {
        self.children().map_or(&[], |block| block.nodes())
    }

    fn child_mut(&mut self, index: usize) -> Option<&mut Self> {
        self.children_mut().as_mut()?.nodes_mut().get_mut(index)
    }

    fn set_name(&mut self, name: &str) {
        self.set_name(name);
    }

    fn set_arguments(&mut self, arguments: Vec<Argument>) {
        self.entries_mut().clear();
        self.entries_mut()
            .extend(arguments.into_iter().map(kdl_entry));
    }

    fn remove_child(&mut self, index: usize) -> Option<Self> {
        let block = self.children_mut().as_mut()?;
        (index < block.nodes().len()).then(|| remove_node(block, index))
    }

    fn remove_property(&mut self, name: &str) -> Option<Self> {
        let is_named = |entry: &KdlEntry| entry.name().map(KdlIdentifier::value) == Some(name);
        let index = self.entries().iter().position(is_named)?;
        Some(remove_property(self, index, name))
    }

    fn insert(&mut self, child: Self) {
        let is_root = self.name().value().is_empty();
        match self.children_mut() {
            Some(block) if is_root => append(block, child),
            Some(block) => insert_first(block, child),
            None => open_block(self, child),
        }
    }

    fn nest(self, name: &str) -> Self {
        nest(self, name)
    }

    fn setting(name: &str, arguments: Vec<Argument>, _near: &Self) -> Self {
        let mut node = KdlNode::new(name);
        node.set_format(KdlNodeFormat::default());
        Tree::set_arguments(&mut node, arguments);
        node
    }
}

fn value(value: &KdlValue) -> Value {
    match value {
        KdlValue::String(text) => Value::Text(text.as_str().into()),
        KdlValue::Integer(number) => Value::Integer(*number),
        KdlValue::Float(number) => Value::Decimal(*number),
        KdlValue::Bool(flag) => Value::Flag(*flag),
        KdlValue::Null => Value::Null,
    }
}

fn kdl_entry(argument: Argument) -> KdlEntry {
    let (value, written) = match argument.value {
        Value::Text(text) => {
            let written = crate::kdl::quoted(&text);
            (KdlValue::String(text.into()), written)
        }
        Value::Integer(number) => (KdlValue::Integer(number), number.to_string()),
        Value::Decimal(number) => (KdlValue::Float(number), format!("{number:?}")),
        Value::Flag(flag) => (KdlValue::Bool(flag), format!("#{flag}")),
        Value::Null => (KdlValue::Null, "#null".to_owned()),
    };
    let mut entry = match argument.name {
        Some(name) => KdlEntry::new_prop(name.into_string(), value),
        None => KdlEntry::new(value),
    };
    entry.set_format(KdlEntryFormat {
        value_repr: written,
        leading: " ".to_owned(),
        ..KdlEntryFormat::default()
    });
    entry
}
