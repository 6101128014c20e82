//! Names that occur in many records, in their escaped form.

use super::escape;

/// The names of the routes, or of the targets of one upstream, escaped once for all records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EscapedFields {
    // One buffer for all names, because there may be as many names as routes.
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

/// A route, or an upstream with its target, in the form of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EscapedField<'a>(pub(super) &'a [u8]);

impl EscapedFields {
    /// The routes `ids`, in their order.
    pub fn from_routes<'a>(ids: impl IntoIterator<Item = &'a str>) -> Self {
        let mut phrases = Self::default();
        for id in ids {
            phrases.push("\",\"route\":\"", id);
            phrases.end();
        }
        phrases
    }

    /// The targets of the upstream `name`, each a `host:port`, in their order.
    pub fn from_targets<'a>(name: &str, targets: impl IntoIterator<Item = &'a str>) -> Self {
        let mut phrases = Self::default();
        for target in targets {
            phrases.push("\",\"upstream\":\"", name);
            phrases.push("\",\"target\":\"", target);
            phrases.end();
        }
        phrases
    }

    /// The upstream `name` without a target, at index 0.
    pub fn from_upstream(name: &str) -> Self {
        let mut phrases = Self::default();
        phrases.push("\",\"upstream\":\"", name);
        phrases.end();
        phrases
    }

    /// The name at this index.
    #[inline]
    pub fn get(&self, position: usize) -> Option<EscapedField<'_>> {
        let end = *self.ends.get(position)?;
        let before = position.checked_sub(1);
        let start = before.and_then(|before| self.ends.get(before));
        let bytes = self.bytes.get(start.copied().unwrap_or_default()..end)?;
        Some(EscapedField(bytes))
    }

    /// `key` closes the string before it and opens the next.
    fn push(&mut self, key: &str, name: &str) {
        self.bytes.extend_from_slice(key.as_bytes());
        escape::push(&mut self.bytes, name.as_bytes());
    }

    fn end(&mut self) {
        self.ends.push(self.bytes.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_position_has_its_own() {
        let routes = EscapedFields::from_routes(["a", "", "\"c\""]);
        let targets = EscapedFields::from_targets("u", ["h:1", "h:2"]);

        let text = |phrase: Option<EscapedField<'_>>| String::from_utf8(phrase?.0.to_vec()).ok();
        assert_eq!(text(routes.get(0)).unwrap(), r#"","route":"a"#);
        assert_eq!(text(routes.get(1)).unwrap(), r#"","route":""#);
        assert_eq!(text(routes.get(2)).unwrap(), r#"","route":"\"c\""#);
        let second = r#"","upstream":"u","target":"h:2"#;
        assert_eq!(text(targets.get(1)).unwrap(), second);
        let upstream = EscapedFields::from_upstream("u");
        assert_eq!(text(upstream.get(0)).unwrap(), r#"","upstream":"u"#);
        assert_eq!((routes.get(3), targets.get(2)), (None, None));
        assert_eq!(EscapedFields::default().get(0), None);
    }
}
