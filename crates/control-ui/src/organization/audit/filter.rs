//! Filter of the audit log: its query parameters, and links that change one of them.

use crate::request::fields::Fields;
use control_app::AuditFilter;
use form_urlencoded::Serializer;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use uuid::Uuid;

/// Kinds of entries with a link: prefix of the action, and label.
const KINDS: [(&str, &str); 10] = [
    ("", "All kinds"),
    ("rollout.", "Rollouts"),
    ("bundle.", "Bundles"),
    ("node.", "Nodes"),
    ("session.", "Sign-ins"),
    ("member.", "Members"),
    ("project_role.", "Roles in projects"),
    ("api_key.", "API keys"),
    ("sso.", "Single sign-on"),
    ("signing_key.", "Signing keys"),
];
/// Periods with a link: days before today, and label.
const PERIODS: [(i64, &str); 3] = [(1, "Since yesterday"), (7, "7 days"), (30, "30 days")];

/// Filter of entries; absent fields admit all. Days are in UTC.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Filter {
    /// An action, or a prefix that ends in a dot.
    pub(super) action: Option<String>,
    pub(super) actor: Option<Uuid>,
    pub(super) subject: Option<Uuid>,
    pub(super) since: Option<Date>,
    pub(super) until: Option<Date>,
}

/// A link that changes one part of the filter and keeps the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) href: String,
    pub(super) label: String,
    pub(super) is_current: bool,
}

impl Filter {
    /// Parses the filter from a query; ignores invalid parts.
    pub(super) fn from_query(query: &Fields) -> Self {
        Self {
            action: query.given("action").map(str::to_owned),
            actor: query.get("actor").parse().ok(),
            subject: query.get("subject").parse().ok(),
            since: query.get("since").parse().ok(),
            until: query.get("until").parse().ok(),
        }
    }

    /// The filter in the store's form.
    pub(super) fn stored(&self) -> AuditFilter {
        let start = |day: Date| Some(day.to_zoned(TimeZone::UTC).ok()?.timestamp());
        AuditFilter {
            actor: self.actor,
            action: self.action.clone(),
            subject: self.subject,
            since: self.since.and_then(start),
            until: self.until.and_then(|day| start(day.tomorrow().ok()?)),
            ..AuditFilter::default()
        }
    }

    /// Query of the filter, such as `?action=…`; `?` without a part.
    pub(super) fn link(&self) -> String {
        self.link_before(None)
    }

    /// Link to the entries before this one.
    pub(super) fn link_before(&self, entry: Option<i64>) -> String {
        query([
            ("action", self.action.clone()),
            ("actor", self.actor.map(|id| id.to_string())),
            ("subject", self.subject.map(|id| id.to_string())),
            ("since", self.since.map(|day| day.to_string())),
            ("until", self.until.map(|day| day.to_string())),
            ("before", entry.map(|entry| entry.to_string())),
        ])
    }

    /// Query for the API's export, such as `?since=2026-11-20T00:00:00Z&…`; empty without a part.
    pub(super) fn export(&self) -> String {
        let stored = self.stored();
        let query = query([
            ("action", stored.action),
            ("actor", stored.actor.map(|id| id.to_string())),
            ("subject", stored.subject.map(|id| id.to_string())),
            ("since", stored.since.map(|at| at.to_string())),
            ("until", stored.until.map(|at| at.to_string())),
        ]);
        query.trim_end_matches('?').to_owned()
    }

    pub(super) fn kinds(&self) -> Vec<Choice> {
        let current = self.action.as_deref().unwrap_or_default();
        let kinds = KINDS.iter().map(|(action, label)| {
            let action = Some((*action).to_owned());
            let other = Self {
                action: action.clone(),
                ..self.clone()
            };
            Choice {
                href: other.link(),
                label: (*label).to_owned(),
                is_current: action.as_deref() == Some(current),
            }
        });
        kinds.collect()
    }

    pub(super) fn periods(&self, now: Timestamp) -> Vec<Choice> {
        let today = now.to_zoned(TimeZone::UTC).date();
        let choice = |since: Option<Date>, label: &str| {
            let other = Self {
                since,
                until: None,
                ..self.clone()
            };
            Choice {
                href: other.link(),
                label: label.to_owned(),
                is_current: other == *self,
            }
        };
        let mut choices = vec![choice(None, "All days")];
        choices.extend(PERIODS.iter().map(|(days, label)| {
            let first = today.checked_sub(Span::new().days(*days)).ok();
            choice(first, label)
        }));
        choices
    }

    /// Links that remove the restriction to an actor or a subject.
    pub(super) fn limits(&self, actor: &str, subject: &str) -> Vec<Choice> {
        let any_actor = Self {
            actor: None,
            ..self.clone()
        };
        let any_subject = Self {
            subject: None,
            ..self.clone()
        };
        let limits = [
            (self.actor, any_actor, format!("By {actor}")),
            (self.subject, any_subject, format!("Of {subject}")),
        ];
        let limits = limits.into_iter().filter(|(id, ..)| id.is_some());
        let limits = limits.map(|(_, other, label)| Choice {
            href: other.link(),
            label,
            is_current: true,
        });
        limits.collect()
    }
}

/// Query with the parameters that have a value; `?` without any.
fn query<const N: usize>(parameters: [(&str, Option<String>); N]) -> String {
    let mut query = Serializer::for_suffix("?".to_owned(), 1);
    for (name, value) in parameters {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            query.append_pair(name, &value);
        }
    }
    query.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(query: &str) -> Filter {
        Filter::from_query(&Fields::parse(query.as_bytes()))
    }

    #[test]
    fn a_link_changes_one_part_and_keeps_the_others() {
        let now: Timestamp = "2026-11-27T22:00:00Z".parse().unwrap();
        let of_week = filter("action=member.&since=2026-11-20");
        let kinds = of_week.kinds();
        assert_eq!(kinds[0].href, "?since=2026-11-20");
        assert_eq!(kinds[1].href, "?action=rollout.&since=2026-11-20");
        let periods = of_week.periods(now);
        let current = kinds
            .iter()
            .chain(&periods)
            .filter(|choice| choice.is_current);
        let current: Vec<&str> = current.map(|choice| choice.label.as_str()).collect();
        assert_eq!(current, ["Members", "7 days"]);
        assert_eq!(periods[0].href, "?action=member.");
        assert_eq!(
            of_week.link_before(Some(9)),
            "?action=member.&since=2026-11-20&before=9"
        );
        assert_eq!(Filter::default().link(), "?");
    }

    #[test]
    fn the_last_day_is_included_in_the_list_and_in_the_export() {
        let days = filter("since=2026-11-20&until=2026-11-20");
        let stored = days.stored();
        assert_eq!(stored.since, Some("2026-11-20T00:00:00Z".parse().unwrap()));
        assert_eq!(stored.until, Some("2026-11-21T00:00:00Z".parse().unwrap()));
        let export = "?since=2026-11-20T00%3A00%3A00Z&until=2026-11-21T00%3A00%3A00Z";
        assert_eq!(days.export(), export);
        assert_eq!(Filter::default().export(), "");
    }

    #[test]
    fn a_limit_to_one_actor_is_named_and_can_be_lifted() {
        let id = Uuid::from_u128(1);
        let own = filter(&format!("action=bundle.&actor={id}"));
        let limits = own.limits("Ann Brandt", "");
        assert_eq!(limits.len(), 1);
        assert_eq!(limits[0].label, "By Ann Brandt");
        assert_eq!(limits[0].href, "?action=bundle.");
    }
}
