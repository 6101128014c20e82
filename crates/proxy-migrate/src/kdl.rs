//! KDL nodes, and their text.

/// A node with arguments that are written already, and a block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Node {
    name: String,
    arguments: Vec<String>,
    children: Vec<Node>,
}

impl Node {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
    }

    /// A setting with one text.
    pub(crate) fn text(name: &str, value: &str) -> Self {
        Self::new(name).arg(value)
    }

    /// A setting with one number.
    pub(crate) fn number(name: &str, value: u64) -> Self {
        let mut node = Self::new(name);
        node.arguments.push(value.to_string());
        node
    }

    pub(crate) fn arg(mut self, value: &str) -> Self {
        self.arguments.push(quoted(value));
        self
    }

    pub(crate) fn args<'a>(self, values: impl IntoIterator<Item = &'a str>) -> Self {
        values.into_iter().fold(self, Self::arg)
    }

    /// A value in which braces stand for themselves.
    pub(crate) fn raw(mut self, value: &str) -> Self {
        let is_plain = value.chars().all(is_written) && !value.contains("\"#");
        let written = if value.contains(['{', '}']) && is_plain {
            format!("#\"{value}\"#")
        } else {
            quoted(value)
        };
        self.arguments.push(written);
        self
    }

    /// An argument that is written already.
    pub(crate) fn word(mut self, written: &str) -> Self {
        self.arguments.push(written.to_owned());
        self
    }

    pub(crate) fn child(mut self, child: Self) -> Self {
        self.children.push(child);
        self
    }

    pub(crate) fn children(mut self, children: impl IntoIterator<Item = Self>) -> Self {
        self.children.extend(children);
        self
    }

    /// The node, unless it has no arguments.
    pub(crate) fn with_arguments(self) -> Option<Self> {
        (!self.arguments.is_empty()).then_some(self)
    }

    /// Returns true if the node has this name.
    pub(crate) fn is(&self, name: &str) -> bool {
        self.name == name
    }

    /// The first argument, as it is written.
    pub(crate) fn first(&self) -> Option<&str> {
        self.arguments.first().map(String::as_str)
    }

    /// Returns true if a node of this name is in the block.
    pub(crate) fn holds(&self, name: &str) -> bool {
        self.children.iter().any(|child| child.name == name)
    }

    pub(crate) fn has_children(&self) -> bool {
        !self.children.is_empty()
    }

    /// Number of its arguments and those of its block, with the nodes themselves.
    pub(crate) fn size(&self) -> usize {
        1 + self.arguments.len() + self.children.iter().map(Self::size).sum::<usize>()
    }

    /// Writes the node at a depth of nesting.
    pub(crate) fn write(&self, depth: usize, text: &mut String) {
        let indent = "    ".repeat(depth);
        text.push_str(&indent);
        text.push_str(&self.name);
        for argument in &self.arguments {
            text.push(' ');
            text.push_str(argument);
        }
        if self.children.is_empty() {
            // A block without settings is a setting by its presence.
            if self.arguments.is_empty() && self.name == "tls" {
                text.push_str(" { }");
            }
        } else {
            text.push_str(" {\n");
            for child in &self.children {
                child.write(depth + 1, text);
            }
            text.push_str(&indent);
            text.push('}');
        }
        text.push('\n');
    }
}

fn quoted(value: &str) -> String {
    let mut written = String::from("\"");
    for c in value.chars() {
        match c {
            '"' => written.push_str("\\\""),
            '\\' => written.push_str("\\\\"),
            '\n' => written.push_str("\\n"),
            '\r' => written.push_str("\\r"),
            '\t' => written.push_str("\\t"),
            c if is_written(c) => written.push(c),
            _ => {}
        }
    }
    written.push('"');
    written
}

/// Returns true if a character may be written as it is: not a control character, and not one that
/// changes the direction of text.
pub(crate) fn is_written(c: char) -> bool {
    let is_mark = matches!(
        c,
        '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}'
    );
    !(c.is_control() || is_mark)
}
