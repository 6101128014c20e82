//! KDL nodes and their serialization.

/// A KDL node with serialized arguments and a block.
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

    /// A setting with a string.
    pub(crate) fn text(name: &str, value: &str) -> Self {
        Self::new(name).arg(value)
    }

    /// A setting with a number.
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

    /// Adds a string in which braces are literal.
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

    /// Adds an argument that is already serialized.
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

    /// The node, or `None` if it has no arguments.
    pub(crate) fn with_arguments(self) -> Option<Self> {
        (!self.arguments.is_empty()).then_some(self)
    }

    /// Returns true if the node has this name.
    pub(crate) fn is(&self, name: &str) -> bool {
        self.name == name
    }

    /// The first argument in its serialized form.
    pub(crate) fn first(&self) -> Option<&str> {
        self.arguments.first().map(String::as_str)
    }

    /// Returns true if the block has a node with this name.
    pub(crate) fn holds(&self, name: &str) -> bool {
        self.children.iter().any(|child| child.name == name)
    }

    pub(crate) fn has_children(&self) -> bool {
        !self.children.is_empty()
    }

    /// Number of arguments and nodes, including those of the block.
    pub(crate) fn size(&self) -> usize {
        1 + self.arguments.len() + self.children.iter().map(Self::size).sum::<usize>()
    }

    /// Writes the node, indented by `depth`.
    pub(crate) fn write(&self, depth: usize, text: &mut String) {
        let indent = "    ".repeat(depth);
        text.push_str(&indent);
        text.push_str(&self.name);
        for argument in &self.arguments {
            text.push(' ');
            text.push_str(argument);
        }
        if self.children.is_empty() {
            // `tls` is enabled by its presence, even with an empty block.
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

/// Returns true if a character may be written literally: neither a control character nor one that
/// changes the direction of text.
pub(crate) fn is_written(c: char) -> bool {
    let is_mark = matches!(
        c,
        '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}'
    );
    !(c.is_control() || is_mark)
}
