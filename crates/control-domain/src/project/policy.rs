//! A project's policy: when a second person has to approve.

use crate::named::named;
use control_wire::UserId;

named! {
    /// When a second person has to approve another bundle; each rule is stricter than those before it.
    #[schema(as = ApprovalRuleName)]
    ApprovalRule {
        /// Where a rollout asks for it.
        None = "none",
        /// Where the change is risky, too.
        Risky = "risky",
        /// Always.
        All = "all",
    }
}

/// Policy of all rollouts and assignments of a project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProjectPolicy {
    /// When a second person has to approve.
    pub approve: ApprovalRule,
    /// A weaker rule that waits for a second administrator.
    pub weaker: Option<WeakerRule>,
}

/// A weaker rule that one administrator asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WeakerRule {
    /// The rule, in force once another administrator asks for the same.
    pub approve: ApprovalRule,
    /// The administrator.
    pub asked_by: UserId,
}

impl Default for ProjectPolicy {
    fn default() -> Self {
        Self {
            approve: ApprovalRule::None,
            weaker: None,
        }
    }
}

impl ProjectPolicy {
    /// The policy after `person` asked for a rule. A stricter one holds at once; a weaker one needs two persons, or
    /// one could lift the rule for a moment.
    pub(crate) fn ask(self, approve: ApprovalRule, person: UserId) -> Self {
        let asked_before = self
            .weaker
            .is_some_and(|weaker| weaker.approve == approve && weaker.asked_by != person);
        if self.approve <= approve || asked_before {
            return Self {
                approve,
                weaker: None,
            };
        }
        Self {
            weaker: Some(WeakerRule {
                approve,
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

    #[test]
    fn a_weaker_rule_needs_two_persons() {
        let [ann, bob] = [1, 2].map(|id| UserId(Uuid::from_u128(id)));
        let strict = ProjectPolicy::default().ask(ApprovalRule::All, ann);
        assert_eq!(strict.approve, ApprovalRule::All);
        let asked = strict.ask(ApprovalRule::None, ann);
        assert_eq!(asked.approve, ApprovalRule::All);
        assert_eq!(asked.ask(ApprovalRule::None, ann), asked);
        // Another weaker rule is another wish.
        let other = asked.ask(ApprovalRule::Risky, bob);
        assert_eq!(other.approve, ApprovalRule::All);
        assert_eq!(asked.ask(ApprovalRule::None, bob), ProjectPolicy::default());
        assert_eq!(asked.ask(ApprovalRule::All, bob), strict, "withdrawn");
    }
}
