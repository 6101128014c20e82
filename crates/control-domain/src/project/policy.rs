//! A project's policy: approval by a second person, refusal of warnings, freezes.

mod freeze;

pub use freeze::{Freeze, Freezes};

use crate::access::refusal::Refusal;
use crate::named::named;
use control_wire::UserId;
use jiff::Timestamp;

named! {
    /// Condition for approval of another bundle by a second person; each rule is stricter than the
    /// ones before it.
    #[schema(as = ApprovalRuleName)]
    ApprovalRule {
        /// Only for rollouts that request it.
        None = "none",
        /// Also if the change is risky.
        Risky = "risky",
        /// Always.
        All = "all",
    }
}

/// Rules for all rollouts and assignments of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyRules {
    /// Condition for approval by a second person.
    pub approve: ApprovalRule,
    /// Refuses bundles with warnings.
    pub refuse_warnings: bool,
    /// Weekly times without changes.
    pub freezes: Freezes,
}

/// Rules in force, and a request for weaker ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectPolicy {
    /// Rules in force.
    pub rules: PolicyRules,
    /// Requested weaker rules that wait for a second administrator.
    pub weaker: Option<WeakerRules>,
}

/// Weaker rules requested by one administrator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeakerRules {
    /// Requested rules; they apply once another administrator requests the same.
    pub rules: PolicyRules,
    /// Administrator that requested them.
    pub asked_by: UserId,
}

/// Requested changes of the rules; `None` keeps the current value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyChange {
    /// Condition for approval by a second person.
    pub approve: Option<ApprovalRule>,
    /// Refuses bundles with warnings.
    pub refuse_warnings: Option<bool>,
    /// Weekly times without changes.
    pub freezes: Option<Freezes>,
}

impl Default for PolicyRules {
    fn default() -> Self {
        Self {
            approve: ApprovalRule::None,
            refuse_warnings: false,
            freezes: Freezes::default(),
        }
    }
}

impl PolicyRules {
    /// Checks that nodes may now be ordered to run a bundle with `warnings` warnings; `None` if
    /// they were not counted.
    ///
    /// # Errors
    ///
    /// [`Refusal::Frozen`], [`Refusal::Warnings`] or [`Refusal::UnknownWarnings`].
    pub fn check(&self, warnings: Option<usize>, now: Timestamp) -> Result<(), Refusal> {
        if let Some(until) = self.freezes.end(now) {
            return Err(Refusal::Frozen { until });
        }
        match warnings {
            None if self.refuse_warnings => Err(Refusal::UnknownWarnings),
            Some(warnings) if self.refuse_warnings && warnings > 0 => {
                Err(Refusal::Warnings(warnings))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The rules with a change applied.
    fn changed(&self, change: PolicyChange) -> Self {
        let PolicyChange {
            approve,
            refuse_warnings,
            freezes,
        } = change;
        Self {
            approve: approve.unwrap_or(self.approve),
            refuse_warnings: refuse_warnings.unwrap_or(self.refuse_warnings),
            freezes: freezes.unwrap_or_else(|| self.freezes.clone()),
        }
    }

    /// Returns true if these rules refuse everything that `other` refuses.
    fn is_as_strict_as(&self, other: &Self) -> bool {
        let approve = other.approve <= self.approve;
        let warnings = self.refuse_warnings || !other.refuse_warnings;
        approve && warnings && self.freezes.cover(&other.freezes)
    }
}

impl ProjectPolicy {
    /// Applies a request for other rules by `person`. Stricter rules apply at once. While rollouts
    /// need two persons, so do weaker rules: otherwise one person could lift the rules for a
    /// moment.
    pub(crate) fn ask(self, change: PolicyChange, person: UserId) -> Self {
        let rules = self.rules.changed(change);
        let is_asked_before = self
            .weaker
            .is_some_and(|weaker| weaker.rules == rules && weaker.asked_by != person);
        let is_free = self.rules.approve == ApprovalRule::None;
        if is_free || is_asked_before || rules.is_as_strict_as(&self.rules) {
            return Self {
                rules,
                weaker: None,
            };
        }
        Self {
            weaker: Some(WeakerRules {
                rules,
                asked_by: person,
            }),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn approve(rule: ApprovalRule) -> PolicyChange {
        PolicyChange {
            approve: Some(rule),
            ..PolicyChange::default()
        }
    }

    fn freeze(text: &str) -> PolicyChange {
        let freezes = Freezes::parse([text]).unwrap();
        PolicyChange {
            freezes: Some(freezes),
            ..PolicyChange::default()
        }
    }

    #[test]
    fn a_weaker_rule_needs_two_persons() {
        let [ann, bob] = [1, 2].map(|id| UserId(Uuid::from_u128(id)));
        let strict = ProjectPolicy::default().ask(approve(ApprovalRule::All), ann);
        assert_eq!(strict.rules.approve, ApprovalRule::All);
        let asked = strict.clone().ask(approve(ApprovalRule::None), ann);
        assert_eq!(asked.rules.approve, ApprovalRule::All);
        let again = asked.clone().ask(approve(ApprovalRule::None), ann);
        assert_eq!(again, asked);
        // A different weaker rule is a new request.
        let other = asked.clone().ask(approve(ApprovalRule::Risky), bob);
        assert_eq!(other.rules.approve, ApprovalRule::All);
        let lifted = asked.clone().ask(approve(ApprovalRule::None), bob);
        assert_eq!(lifted, ProjectPolicy::default());
        let withdrawn = asked.ask(approve(ApprovalRule::All), bob);
        assert_eq!(withdrawn, strict, "withdrawn");
    }

    #[test]
    fn a_freeze_is_lifted_by_one_person_only_where_one_may_roll_out() {
        let [ann, bob] = [1, 2].map(|id| UserId(Uuid::from_u128(id)));
        let alone = ProjectPolicy::default().ask(freeze("Fri 16:00-Mon 08:00"), ann);
        let shorter = alone.clone().ask(freeze("Sat 00:00-Sun 00:00"), ann);
        assert_eq!(shorter.weaker, None);
        assert_ne!(shorter.rules, alone.rules);
        let both = alone.ask(approve(ApprovalRule::All), ann);
        let asked = both.clone().ask(freeze("Sat 00:00-Sun 00:00"), ann);
        assert_eq!(asked.rules, both.rules);
        let lifted = asked.ask(freeze("Sat 00:00-Sun 00:00"), bob);
        assert_eq!(lifted.weaker, None);
        assert_ne!(lifted.rules, both.rules);
        let longer = lifted.clone().ask(freeze("Fri 00:00-Mon 00:00"), ann);
        assert_eq!(longer.weaker, None, "stricter ones hold at once");
    }

    #[test]
    fn warnings_and_freezes_refuse_by_the_rules_of_the_policy() {
        let monday: Timestamp = "2026-11-23T12:00:00Z".parse().unwrap();
        let saturday: Timestamp = "2026-11-28T12:00:00Z".parse().unwrap();
        let free = PolicyRules::default();
        assert_eq!(free.check(Some(3), saturday), Ok(()));
        assert_eq!(free.check(None, saturday), Ok(()));
        let strict = PolicyRules {
            refuse_warnings: true,
            freezes: Freezes::parse(["Fri 16:00-Mon 08:00"]).unwrap(),
            ..free
        };
        assert_eq!(strict.check(Some(0), monday), Ok(()));
        assert_eq!(strict.check(None, monday), Err(Refusal::UnknownWarnings));
        assert_eq!(strict.check(Some(3), monday), Err(Refusal::Warnings(3)));
        let until = "2026-11-30T08:00:00Z".parse().unwrap();
        assert_eq!(
            strict.check(Some(0), saturday),
            Err(Refusal::Frozen { until })
        );
    }
}
