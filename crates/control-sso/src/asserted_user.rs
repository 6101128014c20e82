//! A user as asserted by an identity provider, in one type for both protocols.

use crate::group_claims::GROUPS;
use crate::oidc::IdToken;
use crate::saml::Claims;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Attribute that Entra ID sends instead of groups if there are more than 150.
const GROUPS_LINK: &str = "http://schemas.microsoft.com/claims/groups.link";
const EMAIL: &[&str] = &[
    "email",
    "mail",
    "urn:oid:0.9.2342.19200300.100.1.3",
    "urn:mace:dir:attribute-def:mail",
    "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/emailaddress",
];
const NAME: &[&str] = &[
    "displayName",
    "name",
    "urn:oid:2.16.840.1.113730.3.1.241",
    "http://schemas.microsoft.com/identity/claims/displayname",
    "cn",
    "urn:oid:2.5.4.3",
    "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/name",
];
/// Maximum length of an address: RFC 5321, section 4.5.3.1.3 limits a path with its brackets to 256
/// bytes.
const MAX_EMAIL_BYTES: usize = 254;
const EMAIL_FORMAT: &str = "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress";

/// A user as asserted by an identity provider. `issuer` and `subject` identify the user; the rest
/// may change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssertedUser {
    /// Issuer (OIDC) or entity ID (SAML) of the provider.
    pub issuer: String,
    /// Permanent identifier of the user at the provider.
    pub subject: String,
    /// E-mail address, unless the provider marks it as unverified; at most 254 bytes without
    /// control characters.
    pub email: Option<String>,
    /// Display name.
    pub name: Option<String>,
    /// The user's groups.
    pub groups: Groups,
    /// End of the session at the provider; `None` if the provider does not say.
    pub session_ends_at: Option<Timestamp>,
    /// Time when the user authenticated at the provider; `None` if the provider does not say.
    #[serde(default)]
    pub authenticated_at: Option<Timestamp>,
}

/// The groups that an identity provider asserts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Groups {
    /// There is no attribute or claim with a known name for groups.
    Absent,
    /// Names of groups (GUIDs with Entra ID), in the provider's order.
    Listed(Vec<String>),
    /// The provider sent a link instead of too many groups. The link is not followed.
    Link,
}

impl From<IdToken> for AssertedUser {
    fn from(token: IdToken) -> Self {
        let claims = &token.claims;
        let is_denied = matches!(claims.get("email_verified"), Some(Value::Bool(false)))
            || claims.get("email_verified").and_then(Value::as_str) == Some("false");
        let email = text(claims, "email").filter(|text| !is_denied && is_address(text));
        let name = ["name", "preferred_username"];
        let name = name.iter().find_map(|name| text(claims, name));
        Self {
            email,
            name,
            groups: groups_of_claims(claims),
            authenticated_at: token.authenticated_at(),
            issuer: token.issuer,
            subject: token.subject,
            session_ends_at: None,
        }
    }
}

impl From<Claims> for AssertedUser {
    fn from(claims: Claims) -> Self {
        let first = |names: &[&str]| {
            let mut found = names.iter().map(|name| claims.attribute(name));
            found.find_map(|values| values.first().cloned())
        };
        let is_name = claims.name_id_format == EMAIL_FORMAT;
        let email = first(EMAIL).or_else(|| is_name.then(|| claims.name_id.clone()));
        Self {
            email: email.filter(|text| is_address(text)),
            name: first(NAME),
            groups: groups_of_attributes(&claims),
            issuer: claims.issuer,
            subject: claims.name_id,
            session_ends_at: claims.session_not_on_or_after,
            authenticated_at: claims.authenticated_at,
        }
    }
}

/// Checks an address before it is stored, also with refused sign-ins: no control characters, since
/// databases refuse NUL, and limited in length.
fn is_address(text: &str) -> bool {
    text.len() <= MAX_EMAIL_BYTES && !text.chars().any(char::is_control)
}

fn text(claims: &Map<String, Value>, name: &str) -> Option<String> {
    let text = claims.get(name)?.as_str()?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Groups from claims. Entra ID refers to another source of the claim if there are more than 200
/// groups (OpenID Connect Core, section 5.6.2).
fn groups_of_claims(claims: &Map<String, Value>) -> Groups {
    let mut listed = None;
    for name in GROUPS {
        let names: &[Value] = match claims.get(*name) {
            Some(Value::Array(names)) => names,
            Some(one @ Value::String(_)) => std::slice::from_ref(one),
            _ => continue,
        };
        let names = names.iter().filter_map(Value::as_str).map(str::to_owned);
        listed.get_or_insert_with(Vec::new).extend(names);
    }
    let elsewhere = claims
        .get("_claim_names")
        .and_then(|names| names.get("groups"));
    let has_groups = claims.get("hasgroups").and_then(Value::as_bool);
    if elsewhere.is_some() || has_groups == Some(true) {
        return Groups::Link;
    }
    listed.map_or(Groups::Absent, Groups::Listed)
}

fn groups_of_attributes(claims: &Claims) -> Groups {
    let has = |name: &str| claims.attributes.iter().any(|(own, _)| own == name);
    if has(GROUPS_LINK) {
        return Groups::Link;
    }
    if !GROUPS.iter().any(|name| has(name)) {
        return Groups::Absent;
    }
    let names = GROUPS.iter().flat_map(|name| claims.attribute(name));
    Groups::Listed(names.cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn claims(value: &Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn groups_come_from_the_known_claims_and_a_link_is_not_a_list() {
        let listed =
            |names: &[&str]| Groups::Listed(names.iter().map(|name| (*name).to_owned()).collect());
        let cases = [
            (json!({}), Groups::Absent),
            (json!({"groups": ["a", "b"]}), listed(&["a", "b"])),
            (json!({"groups": "a"}), listed(&["a"])),
            (json!({"groups": []}), listed(&[])),
            (json!({"groups": 7}), Groups::Absent),
            (
                json!({"roles": ["r"], "groups": ["a"]}),
                listed(&["a", "r"]),
            ),
            (json!({"_claim_names": {"groups": "src1"}}), Groups::Link),
            (json!({"hasgroups": true}), Groups::Link),
            (json!({"hasgroups": false}), Groups::Absent),
        ];
        for (value, expected) in cases {
            assert_eq!(groups_of_claims(&claims(&value)), expected, "{value}");
        }
    }

    #[test]
    fn the_time_of_authentication_is_a_number_of_seconds() {
        for (value, expected) in [
            (json!({}), None),
            (json!({"auth_time": 1_700_000_000}), Some(1_700_000_000)),
            (json!({"auth_time": 1_700_000_000.9}), Some(1_700_000_000)),
            (json!({"auth_time": "1700000000"}), Some(1_700_000_000)),
            (json!({"auth_time": "yesterday"}), None),
            (json!({"auth_time": i64::MAX}), None),
            (json!({"auth_time": null}), None),
        ] {
            let token = IdToken {
                issuer: "https://idp.test".to_owned(),
                subject: "1".to_owned(),
                claims: claims(&value),
            };
            let found = AssertedUser::from(token).authenticated_at;
            assert_eq!(found.map(Timestamp::as_second), expected, "{value}");
        }
    }

    #[test]
    fn an_unverified_address_is_ignored() {
        let cases = [
            (json!({"email": "a@b.test"}), Some("a@b.test")),
            (
                json!({"email": "a@b.test", "email_verified": true}),
                Some("a@b.test"),
            ),
            (json!({"email": "a@b.test", "email_verified": false}), None),
            (
                json!({"email": "a@b.test", "email_verified": "false"}),
                None,
            ),
            (json!({"email": ["a@b.test"]}), None),
            (json!({"email": "a\u{0}@b.test"}), None),
            (
                json!({"email": format!("a@{}", "b".repeat(MAX_EMAIL_BYTES))}),
                None,
            ),
        ];
        for (value, expected) in cases {
            let token = IdToken {
                issuer: "https://idp.test".to_owned(),
                subject: "1".to_owned(),
                claims: claims(&value),
            };
            let user = AssertedUser::from(token);
            assert_eq!(user.email.as_deref(), expected, "{value}");
        }
    }
}
