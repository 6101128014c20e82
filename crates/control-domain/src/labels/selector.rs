//! Label selectors: conditions on labels, such as `tier=edge,zone!=eu,canary,!spare`.

use crate::access::refusal::Refusal;

const MAX_CONDITIONS: usize = 16;

/// Conditions that must all hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector(Vec<LabelCondition>);

/// A condition on one label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LabelCondition {
    /// `name=value`
    Equals(String, String),
    /// `name!=value`: another value, or no such label.
    Differs(String, String),
    /// `name`: the label exists with any value.
    Exists(String),
    /// `!name`: there is no such label.
    Absent(String),
}

impl LabelSelector {
    /// Parses comma-separated conditions. A value cannot contain a comma.
    ///
    /// # Errors
    ///
    /// [`Refusal::Invalid`] for a condition without a name, and for more than 16.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let conditions: Option<Vec<LabelCondition>> =
            text.split(',').map(LabelCondition::parse).collect();
        let conditions = conditions.filter(|all| all.len() <= MAX_CONDITIONS);
        let form = "is not up to 16 of `name=value`, `name!=value`, `name` and `!name`, with commas between";
        conditions
            .map(Self)
            .ok_or(Refusal::invalid("selector", form))
    }

    /// A selector for one value of a label.
    pub fn equals(name: &str, value: &str) -> Self {
        let condition = LabelCondition::Equals(name.to_owned(), value.to_owned());
        Self(vec![condition])
    }

    /// A selector for nodes with another value of a label, or without the label.
    pub fn differs(name: &str, value: &str) -> Self {
        let condition = LabelCondition::Differs(name.to_owned(), value.to_owned());
        Self(vec![condition])
    }

    /// Joins the conditions of two selectors: all must hold.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// The conditions; a node's labels must meet all of them.
    pub fn conditions(&self) -> &[LabelCondition] {
        &self.0
    }
}

impl LabelCondition {
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let own = str::to_owned;
        let condition = if let Some((name, value)) = text.split_once("!=") {
            Self::Differs(own(name), own(value))
        } else if let Some((name, value)) = text.split_once('=') {
            Self::Equals(own(name), own(value))
        } else if let Some(name) = text.strip_prefix('!') {
            Self::Absent(own(name))
        } else {
            Self::Exists(own(text))
        };
        let (Self::Equals(name, _)
        | Self::Differs(name, _)
        | Self::Exists(name)
        | Self::Absent(name)) = &condition;
        let has_name = !name.is_empty() && !name.contains(['!', '=']);
        has_name.then_some(condition)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_is_parsed_into_its_conditions() {
        let own = str::to_owned;
        let read = LabelSelector::parse("tier=edge, zone!=eu,canary,!spare,empty=,a!=b=c").unwrap();
        let expected = [
            LabelCondition::Equals(own("tier"), own("edge")),
            LabelCondition::Differs(own("zone"), own("eu")),
            LabelCondition::Exists(own("canary")),
            LabelCondition::Absent(own("spare")),
            LabelCondition::Equals(own("empty"), String::new()),
            LabelCondition::Differs(own("a"), own("b=c")),
        ];
        assert_eq!(read.conditions(), expected);
        let many = vec!["a=b"; 17].join(",");
        for wrong in ["", "=eu", "!=eu", "!", "a=b,", "!!a", many.as_str()] {
            assert!(LabelSelector::parse(wrong).is_err(), "{wrong}");
        }
    }
}
