//! The mapping of an identity provider's groups to roles.

use crate::access::Role;
use crate::access::refusal::Refusal;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Entry with the role of users without a mapped group.
const DEFAULT: &str = "default";
const FIELD: &str = "group_mapping";
const MAX_GROUPS: usize = 500;
const MAX_NAME_CHARS: usize = 256;

/// Roles by group; at most 500 groups with names of 1 to 256 characters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GroupMapping(BTreeMap<String, String>);

impl GroupMapping {
    /// Validates group names and roles.
    ///
    /// # Errors
    ///
    /// [`Refusal::Invalid`] if the mapping is empty or too large, or has an unknown role.
    pub fn parse(mapping: BTreeMap<String, String>) -> Result<Self, Refusal> {
        if !(1..=MAX_GROUPS).contains(&mapping.len()) {
            return Err(Refusal::invalid(FIELD, "needs 1 to 500 groups"));
        }
        let is_name = |name: &String| (1..=MAX_NAME_CHARS).contains(&name.chars().count());
        if !mapping.keys().all(is_name) {
            let reason = "has a group whose name has not 1 to 256 characters";
            return Err(Refusal::invalid(FIELD, reason));
        }
        if !mapping.values().all(|role| Role::from_name(role).is_some()) {
            let reason = "has a role other than admin, operator or reader";
            return Err(Refusal::invalid(FIELD, reason));
        }
        Ok(Self(mapping))
    }

    /// Highest role of the groups, or else the role of `default`; `None` without either.
    pub fn role(&self, groups: &[String]) -> Option<Role> {
        let mapped = groups.iter().filter_map(|group| self.role_of(group)).max();
        mapped.or_else(|| self.role_of(DEFAULT))
    }

    /// Group and role of each entry, in alphabetical order.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(group, role)| (group.as_str(), role.as_str()))
    }

    fn role_of(&self, group: &str) -> Option<Role> {
        Role::from_name(self.0.get(group)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(entries: &[(&str, &str)]) -> Result<GroupMapping, Refusal> {
        let entries = entries
            .iter()
            .map(|(group, role)| ((*group).to_owned(), (*role).to_owned()));
        GroupMapping::parse(entries.collect())
    }

    #[test]
    fn the_highest_role_of_several_groups_counts() {
        let with_default = mapping(&[
            ("ops", "operator"),
            ("root", "admin"),
            ("default", "reader"),
        ]);
        let with_default = with_default.unwrap();
        let without = mapping(&[("ops", "operator"), ("staff", "reader")]).unwrap();
        let cases = [
            (&with_default, &["ops"][..], Some(Role::Operator)),
            (&with_default, &["ops", "root", "other"], Some(Role::Admin)),
            (&with_default, &["other"], Some(Role::Reader)),
            (&with_default, &[], Some(Role::Reader)),
            (&without, &["staff", "ops"], Some(Role::Operator)),
            (&without, &["OPS"], None),
            (&without, &[], None),
        ];
        for (mapping, groups, expected) in cases {
            let groups: Vec<String> = groups.iter().map(|group| (*group).to_owned()).collect();
            assert_eq!(mapping.role(&groups), expected, "{groups:?}");
        }
    }

    #[test]
    fn a_mapping_has_groups_and_known_roles() {
        let long = "a".repeat(257);
        let bad = [
            &[][..],
            &[("", "reader")],
            &[(&long, "reader")],
            &[("ops", "owner")],
        ];
        for entries in bad {
            assert!(mapping(entries).is_err(), "{entries:?}");
        }
    }
}
