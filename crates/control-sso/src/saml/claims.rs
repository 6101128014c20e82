//! Claims of a verified response; checks of issuer, audience, recipient, request and times.

use super::document::{ASSERTION, PROTOCOL, attribute, children, only, parse, text, value};
use super::error::SamlError;
use super::signature::Signed;
use aws_lc_rs::digest;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jiff::{SignedDuration, Timestamp};
use roxmltree::{Document, Node};

/// Maximum tolerated difference between the clocks of provider and this service.
const MAX_SKEW: SignedDuration = SignedDuration::from_secs(60);
/// Maximum validity of an assertion after its issue: used assertions must be remembered that long.
const MAX_VALIDITY: SignedDuration = SignedDuration::from_hours(1);
const MAX_NAME_ID_CHARS: usize = 256;
const SUCCESS: &str = "urn:oasis:names:tc:SAML:2.0:status:Success";
const BEARER: &str = "urn:oasis:names:tc:SAML:2.0:cm:bearer";
const TRANSIENT: &str = "urn:oasis:names:tc:SAML:2.0:nameid-format:transient";

/// Values that the response must have.
#[derive(Clone, Copy, Debug)]
pub struct Expected<'a> {
    /// Entity ID of the identity provider; `None` if only its certificate is known.
    pub idp_entity_id: Option<&'a str>,
    /// Entity ID of the service provider.
    pub sp_entity_id: &'a str,
    /// URL of the assertion consumer service.
    pub acs_url: &'a str,
    /// Request that the response must answer.
    pub solicited: Solicited<'a>,
}

/// Whether a response answers a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Solicited<'a> {
    /// The response must answer the request with this ID.
    Request(&'a str),
    /// The response must answer no request: the sign-in began at the identity provider, which the
    /// connection permits.
    Unsolicited,
}

/// Claims of an identity provider about a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claims {
    /// Entity ID of the identity provider.
    pub issuer: String,
    /// ID of the assertion.
    pub assertion_id: String,
    /// Identifier of the user at the provider, 1 to 256 characters. Transient identifiers are
    /// refused.
    pub name_id: String,
    /// Format of `name_id`; empty if unspecified.
    pub name_id_format: String,
    /// Attributes with their values, in document order; values of equally named attributes are
    /// merged.
    pub attributes: Vec<(String, Vec<String>)>,
    /// Time of expiry, with the permitted clock skew. The assertion is invalid at it and later.
    pub not_on_or_after: Timestamp,
    /// End of the session at the provider; `None` if the provider does not say.
    pub session_not_on_or_after: Option<Timestamp>,
    /// `AuthnInstant`: time when the user authenticated at the provider.
    pub authenticated_at: Option<Timestamp>,
}

impl Claims {
    /// Values of an attribute; empty if it is missing.
    pub fn attribute(&self, name: &str) -> &[String] {
        let found = self.attributes.iter().find(|(own, _)| own == name);
        found.map_or(&[], |(_, values)| values.as_slice())
    }

    /// Key under which a used assertion is remembered: SHA-256 of issuer and assertion ID,
    /// Base64-URL.
    pub fn replay_key(&self) -> String {
        let text = [self.issuer.as_str(), "\n", &self.assertion_id].concat();
        URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, text.as_bytes()))
    }
}

/// Reads claims from signed bytes only. The unsigned envelope can cause a refusal, and nothing
/// else.
pub(super) fn read(
    envelope: &Document<'_>,
    signed: &Signed,
    expected: &Expected<'_>,
    now: Timestamp,
) -> Result<Claims, SamlError> {
    check_response(envelope.root_element(), expected)?;
    let response_text = signed.response.as_deref().map(utf8).transpose()?;
    let response = response_text.map(parse).transpose()?;
    let assertion_text = signed.assertion.as_deref().map(utf8).transpose()?;
    let own = assertion_text.map(parse).transpose()?;
    let assertion = match (&response, &own) {
        (_, Some(own)) => own.root_element(),
        (Some(response), None) => {
            only(response.root_element(), ASSERTION, "Assertion").ok_or(SamlError::Assertions)?
        }
        (None, None) => return Err(SamlError::Unsigned),
    };
    let claims = read_assertion(assertion, expected, now)?;
    let issuers = children(envelope.root_element(), ASSERTION, "Issuer");
    let is_other = |issuer: &Node<'_, '_>| value(*issuer).as_ref() != Some(&claims.issuer);
    if issuers.iter().any(is_other) {
        return Err(SamlError::Issuer);
    }
    Ok(claims)
}

fn utf8(bytes: &[u8]) -> Result<&str, SamlError> {
    std::str::from_utf8(bytes).map_err(|_| SamlError::Xml)
}

fn check_response(response: Node<'_, '_>, expected: &Expected<'_>) -> Result<(), SamlError> {
    let status = only(response, PROTOCOL, "Status")
        .and_then(|status| only(status, PROTOCOL, "StatusCode"))
        .and_then(|code| attribute(code, "Value"));
    if status != Some(SUCCESS) {
        return Err(SamlError::Status);
    }
    if attribute(response, "Destination").is_some_and(|own| own != expected.acs_url) {
        return Err(SamlError::Destination);
    }
    let issuers = children(response, ASSERTION, "Issuer");
    let is_foreign = |issuer: &Node<'_, '_>| {
        let own = value(*issuer);
        own.is_none()
            || expected
                .idp_entity_id
                .is_some_and(|id| own.as_deref() != Some(id))
    };
    if issuers.iter().any(is_foreign) {
        return Err(SamlError::Issuer);
    }
    check_in_response_to(attribute(response, "InResponseTo"), expected.solicited)
}

/// A solicited response must name the request; an unsolicited response must name none.
fn check_in_response_to(named: Option<&str>, solicited: Solicited<'_>) -> Result<(), SamlError> {
    let wanted = match solicited {
        Solicited::Request(id) => Some(id),
        Solicited::Unsolicited => None,
    };
    (named == wanted)
        .then_some(())
        .ok_or(SamlError::InResponseTo)
}

fn read_assertion(
    assertion: Node<'_, '_>,
    expected: &Expected<'_>,
    now: Timestamp,
) -> Result<Claims, SamlError> {
    if attribute(assertion, "Version") != Some("2.0") {
        return Err(SamlError::Missing("version 2.0"));
    }
    let id = attribute(assertion, "ID").ok_or(SamlError::Missing("an ID"))?;
    let issuer = only(assertion, ASSERTION, "Issuer").and_then(value);
    let issuer = issuer
        .filter(|own| expected.idp_entity_id.is_none_or(|id| own == id))
        .ok_or(SamlError::Issuer)?;
    let conditions = only(assertion, ASSERTION, "Conditions");
    let conditions = conditions.ok_or(SamlError::Missing("Conditions"))?;
    let condition_end = check_conditions(conditions, expected.sp_entity_id, now)?;
    let subject = only(assertion, ASSERTION, "Subject").ok_or(SamlError::Missing("a Subject"))?;
    let confirmation_end = check_confirmations(subject, expected, now)?;
    let (name_id, name_id_format) = read_name(subject)?;
    let (session_end, authenticated_at) = check_statement(assertion, now)?;
    let issued =
        attribute(assertion, "IssueInstant").ok_or(SamlError::Missing("an IssueInstant"))?;
    let issued = time(issued)?;
    if now + MAX_SKEW < issued {
        return Err(SamlError::Early);
    }
    let end = condition_end
        .min(confirmation_end)
        .min(issued + MAX_VALIDITY);
    if end + MAX_SKEW <= now {
        return Err(SamlError::Expired);
    }
    Ok(Claims {
        issuer,
        assertion_id: id.to_owned(),
        name_id,
        name_id_format,
        attributes: attributes(assertion)?,
        not_on_or_after: end + MAX_SKEW,
        session_not_on_or_after: session_end,
        authenticated_at,
    })
}

fn read_name(subject: Node<'_, '_>) -> Result<(String, String), SamlError> {
    let name = only(subject, ASSERTION, "NameID").ok_or(SamlError::Missing("a NameID"))?;
    let format = attribute(name, "Format").unwrap_or_default();
    if format == TRANSIENT {
        let lacks = "a NameID that stays the same: its format is `transient`";
        return Err(SamlError::Missing(lacks));
    }
    // A name with white space at an end is refused instead of trimmed: it could belong to another
    // user.
    let fits = |text: &String| text.trim() == text && text.chars().count() <= MAX_NAME_ID_CHARS;
    let lacks = "a NameID of 1 to 256 characters without white space at its ends";
    let text = text(name).filter(fits).ok_or(SamlError::Missing(lacks))?;
    Ok((text, format.to_owned()))
}

/// `SessionNotOnOrAfter` and `AuthnInstant` of the first statement.
fn check_statement(
    assertion: Node<'_, '_>,
    now: Timestamp,
) -> Result<(Option<Timestamp>, Option<Timestamp>), SamlError> {
    let statements = children(assertion, ASSERTION, "AuthnStatement");
    let statement = statements.first();
    let statement = statement.ok_or(SamlError::Missing("an AuthnStatement"))?;
    let end = attribute(*statement, "SessionNotOnOrAfter");
    let end = end.map(time).transpose()?;
    if end.is_some_and(|end| end + MAX_SKEW <= now) {
        return Err(SamlError::Expired);
    }
    let instant = attribute(*statement, "AuthnInstant");
    Ok((end, instant.and_then(|text| time(text).ok())))
}

fn check_conditions(
    conditions: Node<'_, '_>,
    sp_entity_id: &str,
    now: Timestamp,
) -> Result<Timestamp, SamlError> {
    let end = check_times(conditions, now)?;
    let mut is_for_us = false;
    for condition in conditions.children().filter(Node::is_element) {
        if condition.tag_name().namespace() != Some(ASSERTION) {
            return Err(SamlError::Condition);
        }
        match condition.tag_name().name() {
            "AudienceRestriction" => {
                let audiences = children(condition, ASSERTION, "Audience");
                let mut audiences = audiences.into_iter().filter_map(value);
                if !audiences.any(|own| own == sp_entity_id) {
                    return Err(SamlError::Audience);
                }
                is_for_us = true;
            }
            // Satisfied: every assertion is used once, and none is passed on.
            "OneTimeUse" | "ProxyRestriction" => {}
            _ => return Err(SamlError::Condition),
        }
    }
    if !is_for_us {
        return Err(SamlError::Audience);
    }
    Ok(end.unwrap_or(Timestamp::MAX - MAX_SKEW))
}

/// Checks `NotBefore` and `NotOnOrAfter`; returns the latter.
fn check_times(node: Node<'_, '_>, now: Timestamp) -> Result<Option<Timestamp>, SamlError> {
    let start = attribute(node, "NotBefore").map(time).transpose()?;
    let end = attribute(node, "NotOnOrAfter").map(time).transpose()?;
    if start.is_some_and(|start| now + MAX_SKEW < start) {
        return Err(SamlError::Early);
    }
    if end.is_some_and(|end| end + MAX_SKEW <= now) {
        return Err(SamlError::Expired);
    }
    Ok(end)
}

/// End of the first matching confirmation (SAML profiles, section 4.1.4.2).
fn check_confirmations(
    subject: Node<'_, '_>,
    expected: &Expected<'_>,
    now: Timestamp,
) -> Result<Timestamp, SamlError> {
    let mut last = SamlError::Confirmation;
    for confirmation in children(subject, ASSERTION, "SubjectConfirmation") {
        if attribute(confirmation, "Method") != Some(BEARER) {
            continue;
        }
        let Some(data) = only(confirmation, ASSERTION, "SubjectConfirmationData") else {
            continue;
        };
        match check_confirmation(data, expected, now) {
            Ok(end) => return Ok(end),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn check_confirmation(
    data: Node<'_, '_>,
    expected: &Expected<'_>,
    now: Timestamp,
) -> Result<Timestamp, SamlError> {
    if attribute(data, "Recipient") != Some(expected.acs_url) {
        return Err(SamlError::Confirmation);
    }
    let end = check_times(data, now)?.ok_or(SamlError::Confirmation)?;
    check_in_response_to(attribute(data, "InResponseTo"), expected.solicited)?;
    Ok(end)
}

/// Merges the values of equally named attributes: Keycloak can send an attribute per group.
fn attributes(assertion: Node<'_, '_>) -> Result<Vec<(String, Vec<String>)>, SamlError> {
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    let statements = children(assertion, ASSERTION, "AttributeStatement");
    let all = statements
        .into_iter()
        .flat_map(|statement| children(statement, ASSERTION, "Attribute"));
    for own in all {
        let name = attribute(own, "Name").ok_or(SamlError::Missing("an attribute's name"))?;
        let values = children(own, ASSERTION, "AttributeValue");
        let values = values.into_iter().filter_map(text);
        match found.iter_mut().find(|(other, _)| other == name) {
            Some((_, all)) => all.extend(values),
            None => found.push((name.to_owned(), values.collect())),
        }
    }
    Ok(found)
}

fn time(text: &str) -> Result<Timestamp, SamlError> {
    let time: Timestamp = text.parse().map_err(|_| SamlError::Condition)?;
    // Leaves room at both ends, so that adding a skew cannot overflow.
    let max = Timestamp::MAX - SignedDuration::from_hours(24);
    Ok(time.clamp(Timestamp::UNIX_EPOCH, max))
}
