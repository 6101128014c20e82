//! A field of a block: a property or a node.

use super::decoder::Decoder;
use crate::diagnostic::Diagnostic;
use crate::diagnostic_code::DiagnosticCode;
use crate::kdl::{Entry, Node, Span, Value};
use proxy_model::registry::Raw;
use proxy_model::{FileId, Place};

#[derive(Clone, Copy, Debug)]
pub(super) struct Field<'t> {
    /// The setting's path in the registry.
    pub(super) path: &'static str,
    pub(super) file: FileId,
    pub(super) written: Written<'t>,
}

/// The syntax of a field.
#[derive(Clone, Copy, Debug)]
pub(super) enum Written<'t> {
    /// `name=value`.
    Property(&'t Entry),
    /// `name value … { … }`.
    Node(&'t Node),
}

/// The two texts of a field such as `header "A" "B"`.
#[derive(Clone, Debug)]
pub(super) struct TextPair {
    pub(super) first: String,
    pub(super) second: String,
    /// The place of a fault of the pair.
    pub(super) place: Place,
}

/// A value and its place.
pub(super) type Found<'t> = (&'t Value, Place);

impl<'t> Field<'t> {
    /// A field for a node that the registry does not list.
    pub(super) fn from_node(file: FileId, node: &'t Node) -> Self {
        Self {
            path: "",
            file,
            written: Written::Node(node),
        }
    }

    /// The name as written, which may be an alias.
    pub(super) fn name(&self) -> &'t str {
        match self.written {
            Written::Property(entry) => entry.name.as_ref().map_or("", |name| &name.text),
            Written::Node(node) => &node.name.text,
        }
    }

    /// The place of the name.
    pub(super) fn place(&self, d: &Decoder<'_, '_>) -> Place {
        let span = match self.written {
            Written::Property(entry) => entry.name.as_ref().map_or(entry.span, |name| name.span),
            Written::Node(node) => node.name.span,
        };
        d.place(self.file, span)
    }

    pub(super) fn node(&self) -> Option<&'t Node> {
        match self.written {
            Written::Property(_) => None,
            Written::Node(node) => Some(node),
        }
    }

    /// The values of a setting that takes only values. Reports any other entry, and a setting
    /// without values; the result is then `None`.
    pub(super) fn values(&self, d: &mut Decoder<'t, '_>) -> Option<Vec<Found<'t>>> {
        let node = match self.written {
            Written::Property(entry) => return self.value(d, entry).map(|found| vec![found]),
            Written::Node(node) => node,
        };
        let name = &node.name.text;
        let wrong = match (&node.children, node.entries.is_empty()) {
            (Some(_), _) => Some((
                DiagnosticCode::UnexpectedBlock,
                "takes a value, not a block",
            )),
            (None, true) => Some((DiagnosticCode::MissingValue, "has no value")),
            (None, false) => None,
        };
        if let Some((code, what)) = wrong {
            let place = self.place(d);
            d.fault(code, place, format!("`{name}` {what}"));
            return None;
        }
        if let Some(annotation) = node.annotation {
            self.annotated(d, annotation);
        }
        let entries = node.entries.iter().map(|entry| match &entry.name {
            None => self.value(d, entry),
            Some(property) => {
                let place = d.place(self.file, property.span);
                let message = format!("`{name}` takes a value, not properties");
                d.fault(DiagnosticCode::UnexpectedValue, place, message);
                None
            }
        });
        // Collected before the check, so that the faults of all entries are found.
        let found: Vec<Option<Found<'t>>> = entries.collect();
        found.into_iter().collect()
    }

    /// The value of an entry, with or without a name. Reports a type annotation.
    pub(super) fn value(&self, d: &mut Decoder<'_, '_>, entry: &'t Entry) -> Option<Found<'t>> {
        if let Some(annotation) = entry.annotation {
            self.annotated(d, annotation);
            return None;
        }
        Some((&entry.value, d.place(self.file, entry.span)))
    }

    /// The node of a block; reports a property.
    pub(super) fn as_block(&self, d: &mut Decoder<'_, '_>) -> Option<(FileId, &'t Node)> {
        let Some(node) = self.node() else {
            let place = self.place(d);
            d.fault(
                DiagnosticCode::WrongType,
                place,
                format!("`{}` is a block, not a value", self.name()),
            );
            return None;
        };
        if let Some(annotation) = node.annotation {
            self.annotated(d, annotation);
        }
        Some((self.file, node))
    }

    fn annotated(&self, d: &mut Decoder<'_, '_>, annotation: Span) {
        let place = d.place(self.file, annotation);
        let message = "settings know their own types; leave the annotation out";
        d.push(Diagnostic::new(
            DiagnosticCode::UnexpectedAnnotation,
            place,
            message,
        ));
    }
}

/// A value in the registry's form.
pub(super) fn raw(value: &Value) -> Raw<'_> {
    match value {
        Value::Text(text) => Raw::Text(text),
        Value::Integer(number) => Raw::Integer(*number),
        Value::Decimal(number) => Raw::Decimal(*number),
        Value::Flag(flag) => Raw::Flag(*flag),
        Value::Null => Raw::Null,
    }
}
