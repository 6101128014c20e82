//! Kinds of forged responses: wrapping, signatures, conditions, parser.

use crate::fixture::{ACS, REQUEST, SP, now};
use control_sso::saml::{Claims, Expected, IdpKey, SamlError, Solicited, accept};
use control_testkit::{SamlAnswer, SamlProvider};
use jiff::SignedDuration;

const ISSUER: &str = "https://idp.test";

struct Battery {
    provider: SamlProvider,
    keys: [IdpKey; 1],
}

impl Battery {
    fn new() -> Self {
        let provider = SamlProvider::new(ISSUER);
        let keys = [IdpKey::from_base64(&provider.certificate).unwrap()];
        Self { provider, keys }
    }

    fn unsigned(&self) -> String {
        self.provider.unsigned(&answer())
    }

    fn sign(&self, xml: &str) -> String {
        self.provider.sign(xml, "_assertion")
    }

    fn accept(&self, xml: &str) -> Result<Claims, SamlError> {
        self.accept_as(xml, Solicited::Request(REQUEST))
    }

    fn accept_as(&self, xml: &str, solicited: Solicited<'_>) -> Result<Claims, SamlError> {
        let expected = Expected {
            idp_entity_id: Some(ISSUER),
            sp_entity_id: SP,
            acs_url: ACS,
            solicited,
        };
        accept(xml.as_bytes(), &self.keys, &expected, now())
    }
}

fn answer() -> SamlAnswer<'static> {
    SamlAnswer {
        sp_entity_id: SP,
        acs_url: ACS,
        request_id: Some(REQUEST),
        name_id: "alice",
        attributes: &[("groups", &["staff"])],
        suffix: "",
        now: now(),
    }
}

/// Returns the element with this name, including its contents.
fn element<'a>(xml: &'a str, name: &str) -> &'a str {
    let start = xml.find(&format!("<{name}")).unwrap();
    let end = format!("</{name}>");
    let length = xml[start..].find(&end).unwrap() + end.len();
    &xml[start..start + length]
}

#[test]
fn the_untouched_response_is_accepted() {
    let battery = Battery::new();
    let whole = battery.sign(&battery.unsigned());
    let claims = battery.accept(&whole).unwrap();
    assert_eq!(
        (claims.name_id.as_str(), claims.attribute("groups")),
        ("alice", &["staff".to_owned()][..])
    );
    let response_signed = battery.provider.sign(&battery.unsigned(), "_response");
    assert_eq!(battery.accept(&response_signed).unwrap(), claims);
    let both = battery.provider.sign(&whole, "_response");
    assert_eq!(battery.accept(&both).unwrap(), claims);
}

#[test]
fn wrapped_assertions_are_refused() {
    let battery = Battery::new();
    let whole = battery.sign(&battery.unsigned());
    let signed = element(&whole, "saml:Assertion");
    let unsigned = battery.unsigned();
    let forged = element(&unsigned, "saml:Assertion")
        .replace("_assertion", "_evil")
        .replace("alice", "admin");
    let signature = element(signed, "ds:Signature");
    let extension = |text: &str| format!("<samlp:Extensions>{text}</samlp:Extensions>");
    let cases = [
        // XSW 1 and 2: a forged response around or before the signed one.
        whole.replace(signed, &format!("{forged}{signed}")),
        whole.replace(signed, &format!("{signed}{forged}")),
        // XSW 3 to 6: the signed assertion below the forged one, or vice versa.
        whole.replace(
            signed,
            &forged.replace("</saml:Issuer>", &format!("</saml:Issuer>{signed}")),
        ),
        whole.replace(
            signed,
            &forged.replace("</saml:Assertion>", &format!("{signed}</saml:Assertion>")),
        ),
        whole.replace(
            signed,
            &signed.replace("</saml:Assertion>", &format!("{forged}</saml:Assertion>")),
        ),
        // XSW 7 and 8: the signed assertion in extensions, or in an object of the signature.
        whole.replace(signed, &format!("{}{forged}", extension(signed))),
        whole.replace(
            signed,
            &forged.replace(
                "</saml:Issuer>",
                &format!(
                    "</saml:Issuer>{}",
                    signature.replace(
                        "</ds:Signature>",
                        &format!("<ds:Object>{signed}</ds:Object></ds:Signature>")
                    )
                ),
            ),
        ),
        // A forged assertion with the signature of the genuine one, under the genuine ID or its
        // own.
        whole.replace(
            signed,
            &forged.replace("</saml:Issuer>", &format!("</saml:Issuer>{signature}")),
        ),
        whole.replace(
            signed,
            &forged
                .replace("_evil", "_assertion")
                .replace("</saml:Issuer>", &format!("</saml:Issuer>{signature}")),
        ),
        // An element that another namespace hides.
        whole.replace(
            signed,
            &format!("{signed}<x:Assertion xmlns:x=\"urn:x\">{forged}</x:Assertion>"),
        ),
        whole.replace(
            signed,
            &format!("<x:Advice xmlns:x=\"urn:x\">{signed}</x:Advice>{forged}"),
        ),
        // A response within the response.
        format!(
            "<samlp:Response xmlns:samlp=\"urn:oasis:names:tc:SAML:2.0:protocol\" Version=\"2.0\">{whole}</samlp:Response>"
        ),
    ];
    for (number, case) in cases.iter().enumerate() {
        let refused = battery.accept(case);
        assert!(refused.is_err(), "{number}: {refused:?}\n{case}");
    }
}

#[test]
fn changed_missing_and_weak_signatures_are_refused() {
    let battery = Battery::new();
    let unsigned = battery.unsigned();
    let whole = battery.sign(&unsigned);
    let signature = element(&whole, "ds:Signature");
    let foreign = SamlProvider::new(ISSUER).sign(&unsigned, "_assertion");
    let value = element(&whole, "ds:SignatureValue");
    let form = SamlError::SignatureForm;
    let cases = [
        (unsigned.clone(), SamlError::Unsigned),
        (foreign, SamlError::Signature),
        (whole.replace("alice", "admin"), SamlError::Digest),
        (whole.replace("staff", "admins"), SamlError::Digest),
        (
            whole.replace(value, "<ds:SignatureValue>AAAA</ds:SignatureValue>"),
            SamlError::Signature,
        ),
        (whole.replace(value, ""), form("children of Signature")),
        (
            whole.replace(signature, &signature.repeat(2)),
            SamlError::SignaturePlace,
        ),
        (
            whole.replace("more#ecdsa-sha256", "more#hmac-sha256"),
            SamlError::Algorithm,
        ),
        (
            whole.replace("xmldsig-more#ecdsa-sha256", "xmldsig#rsa-sha1"),
            SamlError::Algorithm,
        ),
        (
            whole.replace("more#ecdsa-sha256", "more#rsa-sha256"),
            SamlError::Signature,
        ),
        (
            whole.replace("xmlenc#sha256", "xmldsig#sha1"),
            SamlError::Algorithm,
        ),
        (whole.replace("#_assertion", ""), SamlError::Signature),
        (
            whole.replace("#enveloped-signature", "#base64"),
            form("the first transform is not enveloped-signature"),
        ),
        (
            whole.replace("xml-exc-c14n#\"", "xml-exc-c14n#WithComments\""),
            form("another canonicalization than exclusive without comments"),
        ),
        (
            whole
                .replace("<ds:Signature ", "<ds:Signature2 ")
                .replace("</ds:Signature>", "</ds:Signature2>"),
            SamlError::Unsigned,
        ),
        (
            whole.replace("http://www.w3.org/2000/09/xmldsig#\"", "urn:x\""),
            SamlError::SignaturePlace,
        ),
    ];
    for (case, expected) in cases {
        assert_eq!(battery.accept(&case), Err(expected), "{case}");
    }
}

#[test]
fn a_signature_over_another_reference_is_refused() {
    let battery = Battery::new();
    // The provider signs only the subject's issuer, and the attacker moves that signature to the
    // assertion.
    let unsigned = battery.unsigned().replace(
        "<saml:Subject>",
        "<saml:Subject ID=\"_subject\"><saml:Issuer>x</saml:Issuer>",
    );
    let signed = battery.provider.sign(&unsigned, "_subject");
    let signature = element(&signed, "ds:Signature").to_owned();
    let moved = signed.replace(&signature, "").replacen(
        "</saml:Issuer><saml:Subject",
        &format!("</saml:Issuer>{signature}<saml:Subject"),
        1,
    );
    let form = SamlError::SignatureForm("a Reference to another element than the signed one");
    assert_eq!(battery.accept(&moved), Err(form));
    assert_eq!(battery.accept(&signed), Err(SamlError::SignaturePlace));
}

const NAME: &str = "a NameID of 1 to 256 characters without white space at its ends";

/// Parts of the response with their replacement, and the violated rule.
const CONDITIONS: &[(&str, &str, SamlError)] = &[
    (
        "<saml:Audience>https://controld.test",
        "<saml:Audience>https://other.test",
        SamlError::Audience,
    ),
    (
        "saml:AudienceRestriction>",
        "saml:OneTimeUse>",
        SamlError::Audience,
    ),
    (
        "saml:AudienceRestriction>",
        "saml:Unknown>",
        SamlError::Condition,
    ),
    (
        "Recipient=\"https://controld.test",
        "Recipient=\"https://other.test",
        SamlError::Confirmation,
    ),
    ("cm:bearer", "cm:holder-of-key", SamlError::Confirmation),
    (
        "Destination=\"https://controld.test",
        "Destination=\"https://other.test",
        SamlError::Destination,
    ),
    (
        "<saml:Issuer>https://idp.test",
        "<saml:Issuer>https://evil.test",
        SamlError::Issuer,
    ),
    (
        "InResponseTo=\"_request-1\"",
        "InResponseTo=\"_request-2\"",
        SamlError::InResponseTo,
    ),
    (" InResponseTo=\"_request-1\"", "", SamlError::InResponseTo),
    ("status:Success", "status:Responder", SamlError::Status),
    (
        "persistent",
        "transient",
        SamlError::Missing("a NameID that stays the same: its format is `transient`"),
    ),
    ("alice", "", SamlError::Missing(NAME)),
    ("NotBefore=\"", "NotBefore=\"2", SamlError::Condition),
    (
        "saml:AuthnStatement",
        "saml:Statement",
        SamlError::Missing("an AuthnStatement"),
    ),
    (
        "Version=\"2.0\"",
        "Version=\"1.1\"",
        SamlError::NotAResponse,
    ),
];

#[test]
fn every_condition_is_checked_in_the_signed_part() {
    let battery = Battery::new();
    for (part, other, expected) in CONDITIONS {
        let xml = battery.unsigned();
        let changed = xml.replace(part, other);
        assert_ne!(changed, xml, "{part}");
        let refused = battery.accept(&battery.sign(&changed));
        assert_eq!(refused, Err(*expected), "{part} -> {other}");
    }
}

#[test]
fn names_are_compared_to_the_letter() {
    let battery = Battery::new();
    let named = |name: &str| {
        let changed = battery.unsigned().replace(">alice<", &format!(">{name}<"));
        battery.accept(&battery.sign(&changed))
    };
    assert_eq!(named("bob").unwrap().name_id, "bob");
    for name in [
        "alice\u{a0}",
        "\u{3000}alice",
        "alice ",
        "alice\t",
        "alice\u{85}",
    ] {
        assert_eq!(named(name), Err(SamlError::Missing(NAME)), "{name:?}");
    }
    let grouped = battery.unsigned().replace(">staff<", ">staff\u{a0}<");
    let accepted = battery.accept(&battery.sign(&grouped)).unwrap();
    let values: Vec<&String> = accepted
        .attributes
        .iter()
        .flat_map(|(_, all)| all)
        .collect();
    assert!(
        values.iter().any(|value| *value == "staff\u{a0}"),
        "{values:?}"
    );
}

#[test]
fn an_assertion_is_good_for_an_hour_after_its_issue() {
    let battery = Battery::new();
    let end = now() + SignedDuration::from_mins(5);
    let issued = |ago: SignedDuration| {
        let far = now() + SignedDuration::from_hours(8);
        let changed = battery
            .unsigned()
            .replace(
                &format!("IssueInstant=\"{}\"", now()),
                &format!("IssueInstant=\"{}\"", now() - ago),
            )
            .replace(
                &format!("NotOnOrAfter=\"{end}\""),
                &format!("NotOnOrAfter=\"{far}\""),
            );
        battery.accept(&battery.sign(&changed))
    };
    let hour = SignedDuration::from_hours(1);
    let minute = SignedDuration::from_mins(1);
    let accepted = issued(minute).unwrap();
    assert_eq!(accepted.not_on_or_after, now() - minute + hour + minute);
    assert_eq!(issued(hour + minute), Err(SamlError::Expired));
    assert_eq!(issued(-minute - minute), Err(SamlError::Early));
}

#[test]
fn an_end_is_compared_with_a_minute_of_difference() {
    let battery = Battery::new();
    let end = now() + SignedDuration::from_mins(5);
    let until = |text: &str| {
        let (before, after) = (
            format!("NotOnOrAfter=\"{end}\""),
            format!("NotOnOrAfter=\"{text}\""),
        );
        let changed = battery.unsigned().replace(&before, &after);
        battery.accept(&battery.sign(&changed)).map(drop)
    };
    let time = |offset: i64| (now() + SignedDuration::from_secs(offset)).to_string();
    assert_eq!(until(&time(-59)), Ok(()));
    assert_eq!(until(&time(-61)), Err(SamlError::Expired));
    assert_eq!(until("tomorrow"), Err(SamlError::Condition));
}

#[test]
fn only_an_answer_to_no_request_is_unsolicited() {
    let battery = Battery::new();
    let answered = battery.sign(&battery.unsigned());
    assert_eq!(
        battery.accept_as(&answered, Solicited::Unsolicited),
        Err(SamlError::InResponseTo)
    );
    let unsolicited = battery.provider.signed(&SamlAnswer {
        request_id: None,
        ..answer()
    });
    assert!(
        battery
            .accept_as(&unsolicited, Solicited::Unsolicited)
            .is_ok()
    );
    assert_eq!(battery.accept(&unsolicited), Err(SamlError::InResponseTo));
}

#[test]
fn text_that_parsers_read_differently_is_refused() {
    let battery = Battery::new();
    let whole = battery.sign(&battery.unsigned());
    let cases = [
        (whole.replace("alice", "admin<!---->alice"), SamlError::Xml),
        (whole.replace("alice", "al<!-- -->ice"), SamlError::Xml),
        (whole.replace("alice", "<![CDATA[alice]]>"), SamlError::Xml),
        (whole.replace("alice", "al<?x?>ice"), SamlError::Xml),
        (
            format!(
                "<!DOCTYPE x [<!ENTITY e \"alice\">]>{}",
                whole.replace("alice", "&e;")
            ),
            SamlError::Xml,
        ),
        (
            format!("<!DOCTYPE x SYSTEM \"http://evil.test/x.dtd\">{whole}"),
            SamlError::Xml,
        ),
        (
            whole.replace("<saml:Subject>", "<saml:Subject ID=\"_assertion\">"),
            SamlError::DuplicateId,
        ),
        (
            whole.replace("<saml:Subject>", "<saml:Subject Id=\"_assertion\">"),
            SamlError::DuplicateId,
        ),
        (whole.replace("alice", "<b>alice</b>"), SamlError::Digest),
        (format!("{whole}{whole}"), SamlError::Xml),
        (
            whole.replace("samlp:Response", "samlp:LogoutResponse"),
            SamlError::NotAResponse,
        ),
        (
            whole.replace(":protocol\"", ":other\""),
            SamlError::NotAResponse,
        ),
    ];
    for (case, expected) in cases {
        assert_eq!(battery.accept(&case), Err(expected), "{case}");
    }
    assert_eq!(
        accept(
            b"\xff\xfe<",
            &battery.keys,
            &Expected {
                idp_entity_id: Some(ISSUER),
                sp_entity_id: SP,
                acs_url: ACS,
                solicited: Solicited::Unsolicited
            },
            now()
        ),
        Err(SamlError::Xml)
    );
}

/// Canonicalization writes the same bytes, so the signature stays valid.
#[test]
fn another_spelling_of_the_same_bytes_is_accepted() {
    let battery = Battery::new();
    let whole = battery.sign(&battery.unsigned());
    let genuine = battery.accept(&whole).unwrap();
    let spellings = [
        whole.replace("alice", "&#97;lice"),
        whole.replace("Version=\"2.0\"", "Version='2.0'"),
        whole.replace("<saml:Subject>", "<saml:Subject  >"),
        format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\r\n{whole}"),
    ];
    for spelling in spellings {
        assert_eq!(battery.accept(&spelling), Ok(genuine.clone()), "{spelling}");
    }
}

#[test]
fn claims_name_their_replay_key_and_end() {
    let battery = Battery::new();
    let claims = battery.accept(&battery.sign(&battery.unsigned())).unwrap();
    assert_eq!(
        claims.not_on_or_after,
        now() + SignedDuration::from_secs(360)
    );
    let other = battery.provider.signed(&SamlAnswer {
        suffix: "2",
        ..answer()
    });
    let other = battery.accept(&other).unwrap();
    assert_ne!(other.replay_key(), claims.replay_key());
    assert_eq!(claims.replay_key().len(), 43);
}

/// Limits apply before parsing: its time is quadratic in the number of attributes and namespaces.
#[test]
fn hostile_sizes_are_refused_quickly() {
    let battery = Battery::new();
    let numbered = |count: u32, text: &str| {
        let all = (0..count).map(|number| text.replace('#', &number.to_string()));
        all.collect::<String>()
    };
    let attributes = numbered(40_000, " a#=''");
    let namespaces = numbered(15_000, " xmlns:a#='b'");
    let children = "<a xmlns:z='y'/>".repeat(15_000);
    let cases = [
        format!("<a{attributes}/>"),
        format!("<a{namespaces}>{children}</a>"),
        "<a>".repeat(100_000),
        "<a/>".repeat(100_000),
        format!("<a>{}</a>", "<b/>".repeat(100_000)),
        " ".repeat(600_000),
    ];
    for case in cases {
        let refused = battery.accept(&case);
        assert!(
            matches!(refused, Err(SamlError::TooLarge | SamlError::Xml)),
            "{refused:?}"
        );
    }
}
