//! Trees of nodes in which aliases are replaced: the reader's tree, and the tree of a text.

use super::alias::Argument;
use crate::kdl::{Entry, Name, Node, Span};

/// A node with its entries and its block.
pub(crate) trait Tree: Clone {
    fn name(&self) -> &str;
    /// The place of the name; empty for the tree of a text.
    fn span(&self) -> Span;
    /// The place of a property's name.
    fn property_span(&self, name: &str) -> Span;
    /// The arguments and properties.
    fn arguments(&self) -> Vec<Argument>;
    fn has_block(&self) -> bool;
    /// The nodes of the block.
    fn children(&self) -> &[Self];
    fn child_mut(&mut self, index: usize) -> Option<&mut Self>;
    fn set_name(&mut self, name: &str);
    fn set_arguments(&mut self, arguments: Vec<Argument>);
    /// Removes a node of the block.
    fn remove_child(&mut self, index: usize) -> Option<Self>;
    /// Removes a property, as a node of its name and value.
    fn remove_property(&mut self, name: &str) -> Option<Self>;
    /// Adds a node to the block, which is created if missing.
    fn insert(&mut self, child: Self);
    /// The node `name { self }`.
    fn nest(self, name: &str) -> Self;
    /// A node without a block, at the place of `near`.
    fn setting(name: &str, arguments: Vec<Argument>, near: &Self) -> Self;
}

impl Tree for Node {
    fn name(&self) -> &str {
        &self.name.text
    }

    fn span(&self) -> Span {
        self.name.span
    }

    fn property_span(&self, name: &str) -> Span {
        let mut names = self.entries.iter().filter_map(|entry| entry.name.as_ref());
        let named = names.find(|it| *it.text == *name);
        named.map_or(self.name.span, |it| it.span)
    }

    fn arguments(&self) -> Vec<Argument> {
        let argument = |entry: &Entry| Argument {
            name: entry.name.as_ref().map(|name| name.text.clone()),
            value: entry.value.clone(),
        };
        self.entries.iter().map(argument).collect()
    }

    fn has_block(&self) -> bool {
        self.children.is_some()
    }

    fn children(&self) -> &[Self] {
        self.children.as_deref().unwrap_or_default()
    }

    fn child_mut(&mut self, index: usize) -> Option<&mut Self> {
        self.children.as_mut()?.get_mut(index)
    }

    fn set_name(&mut self, name: &str) {
        self.name.text = name.into();
    }

    fn set_arguments(&mut self, arguments: Vec<Argument>) {
        let spans: Vec<_> = self.entries.iter().map(|entry| entry.span).collect();
        let last = spans.last().copied().unwrap_or(self.name.span);
        let entry = |(index, argument): (usize, Argument)| Entry {
            name: argument.name.map(|text| Name {
                text,
                span: self.name.span,
            }),
            annotation: None,
            value: argument.value,
            span: spans.get(index).copied().unwrap_or(last),
        };
        self.entries = arguments.into_iter().enumerate().map(entry).collect();
    }

    fn remove_child(&mut self, index: usize) -> Option<Self> {
        let children = self.children.as_mut()?;
        (index < children.len()).then(|| children.remove(index))
    }

    fn remove_property(&mut self, name: &str) -> Option<Self> {
        let is_named = |entry: &Entry| entry.name.as_ref().is_some_and(|it| *it.text == *name);
        let index = self.entries.iter().position(is_named)?;
        let mut entry = self.entries.remove(index);
        let name = entry.name.take()?;
        Some(Self {
            annotation: None,
            head: name.span.to(entry.span),
            block: entry.span,
            name,
            entries: vec![entry],
            children: None,
        })
    }

    fn insert(&mut self, child: Self) {
        self.children.get_or_insert_default().push(child);
    }

    fn nest(self, name: &str) -> Self {
        let span = self.name.span;
        Self {
            annotation: None,
            name: Name {
                text: name.into(),
                span,
            },
            entries: Vec::new(),
            head: span,
            block: span,
            children: Some(vec![self]),
        }
    }

    fn setting(name: &str, arguments: Vec<Argument>, near: &Self) -> Self {
        let span = near.name.span;
        let mut node = Self {
            annotation: None,
            name: Name {
                text: name.into(),
                span,
            },
            entries: Vec::new(),
            head: span,
            block: span,
            children: None,
        };
        node.set_arguments(arguments);
        node
    }
}
