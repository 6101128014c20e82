//! A SAML identity provider that signs any response of a test.
#![expect(clippy::expect_used, reason = "a test may stop, and says why")]

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use base64::{Engine, engine::general_purpose::STANDARD};
use control_sso::saml::canonicalize;
use jiff::{SignedDuration, Timestamp};
use rcgen::{CertificateParams, KeyPair};
use roxmltree::Document;

const PROTOCOL: &str = "urn:oasis:names:tc:SAML:2.0:protocol";
const ASSERTION: &str = "urn:oasis:names:tc:SAML:2.0:assertion";
const DSIG: &str = "http://www.w3.org/2000/09/xmldsig#";
const EXC_C14N: &str = "http://www.w3.org/2001/10/xml-exc-c14n#";
const VALIDITY: SignedDuration = SignedDuration::from_mins(5);

/// An identity provider with a P-256 key.
#[derive(Debug)]
pub struct SamlProvider {
    /// Its entity ID.
    pub entity_id: String,
    /// Its certificate as DER in Base64.
    pub certificate: String,
    key: EcdsaKeyPair,
}

/// The contents of a response. IDs are `_response` and `_assertion` with `suffix`.
#[derive(Clone, Debug)]
pub struct SamlAnswer<'a> {
    /// The service provider's entity ID.
    pub sp_entity_id: &'a str,
    /// The assertion consumer service URL.
    pub acs_url: &'a str,
    /// The ID of the request, if one is answered.
    pub request_id: Option<&'a str>,
    /// The user.
    pub name_id: &'a str,
    /// Attributes.
    pub attributes: &'a [(&'a str, &'a [&'a str])],
    /// Distinguishes the IDs of several responses.
    pub suffix: &'a str,
    /// The time of issue; the assertion is valid for five minutes.
    pub now: Timestamp,
}

impl SamlProvider {
    /// A provider with a new key.
    ///
    /// # Panics
    ///
    /// If no key can be made.
    pub fn new(entity_id: &str) -> Self {
        let key = KeyPair::generate().expect("a key is generated");
        let params = CertificateParams::default();
        let certificate = params.self_signed(&key).expect("a certificate");
        let pkcs8 = key.serialize_der();
        let signing = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &pkcs8);
        Self {
            entity_id: entity_id.to_owned(),
            certificate: STANDARD.encode(certificate.der()),
            key: signing.expect("the generated key is valid"),
        }
    }

    /// The certificate in PEM.
    pub fn certificate_pem(&self) -> String {
        format!(
            "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n",
            self.certificate
        )
    }

    /// The metadata that the provider publishes.
    pub fn metadata(&self, sso_url: &str) -> String {
        format!(
            "<md:EntityDescriptor xmlns:md=\"urn:oasis:names:tc:SAML:2.0:metadata\" entityID=\"{}\">\
             <md:IDPSSODescriptor protocolSupportEnumeration=\"{PROTOCOL}\"><md:KeyDescriptor>\
             <ds:KeyInfo xmlns:ds=\"{DSIG}\"><ds:X509Data><ds:X509Certificate>{}</ds:X509Certificate></ds:X509Data>\
             </ds:KeyInfo></md:KeyDescriptor><md:SingleSignOnService \
             Binding=\"urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect\" Location=\"{sso_url}\"/>\
             </md:IDPSSODescriptor></md:EntityDescriptor>",
            self.entity_id, self.certificate
        )
    }

    /// A response with a signed assertion.
    pub fn signed(&self, answer: &SamlAnswer<'_>) -> String {
        let id = format!("_assertion{}", answer.suffix);
        self.sign(&self.unsigned(answer), &id)
    }

    /// A response without a signature.
    pub fn unsigned(&self, answer: &SamlAnswer<'_>) -> String {
        let SamlAnswer {
            sp_entity_id,
            acs_url,
            request_id,
            name_id,
            attributes,
            suffix,
            now,
        } = answer;
        let end = *now + VALIDITY;
        let issuer = format!("<saml:Issuer>{}</saml:Issuer>", self.entity_id);
        let in_response_to =
            request_id.map_or(String::new(), |id| format!(" InResponseTo=\"{id}\""));
        let value = |value: &&str| format!("<saml:AttributeValue>{value}</saml:AttributeValue>");
        let attribute = |(name, values): &(&str, &[&str])| {
            let values: String = values.iter().map(value).collect();
            format!("<saml:Attribute Name=\"{name}\">{values}</saml:Attribute>")
        };
        let statement: String = attributes.iter().map(attribute).collect();
        format!(
            "<samlp:Response xmlns:samlp=\"{PROTOCOL}\" xmlns:saml=\"{ASSERTION}\" ID=\"_response{suffix}\" \
             Version=\"2.0\" IssueInstant=\"{now}\" Destination=\"{acs_url}\"{in_response_to}>{issuer}\
             <samlp:Status><samlp:StatusCode Value=\"urn:oasis:names:tc:SAML:2.0:status:Success\"/></samlp:Status>\
             <saml:Assertion ID=\"_assertion{suffix}\" Version=\"2.0\" IssueInstant=\"{now}\">{issuer}<saml:Subject>\
             <saml:NameID Format=\"urn:oasis:names:tc:SAML:2.0:nameid-format:persistent\">{name_id}</saml:NameID>\
             <saml:SubjectConfirmation Method=\"urn:oasis:names:tc:SAML:2.0:cm:bearer\">\
             <saml:SubjectConfirmationData NotOnOrAfter=\"{end}\" Recipient=\"{acs_url}\"{in_response_to}/>\
             </saml:SubjectConfirmation></saml:Subject><saml:Conditions NotBefore=\"{now}\" NotOnOrAfter=\"{end}\">\
             <saml:AudienceRestriction><saml:Audience>{sp_entity_id}</saml:Audience></saml:AudienceRestriction>\
             </saml:Conditions><saml:AuthnStatement AuthnInstant=\"{now}\"><saml:AuthnContext>\
             <saml:AuthnContextClassRef>urn:oasis:names:tc:SAML:2.0:ac:classes:Password\
             </saml:AuthnContextClassRef></saml:AuthnContext></saml:AuthnStatement>\
             <saml:AttributeStatement>{statement}</saml:AttributeStatement></saml:Assertion></samlp:Response>"
        )
    }

    /// `xml` with a signature of the element with this ID, after its issuer.
    ///
    /// # Panics
    ///
    /// If there is no such element.
    pub fn sign(&self, xml: &str, id: &str) -> String {
        let document = Document::parse(xml).expect("well-formed XML");
        let mut all = document.descendants();
        let target = all.find(|node| node.attribute("ID") == Some(id));
        let target = target.expect("an element with the ID");
        let digest = digest(&SHA256, &canonicalize(target, None, &[]));
        // In canonical form as written.
        let info = format!(
            "<ds:SignedInfo xmlns:ds=\"{DSIG}\"><ds:CanonicalizationMethod Algorithm=\"{EXC_C14N}\">\
             </ds:CanonicalizationMethod><ds:SignatureMethod \
             Algorithm=\"http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha256\"></ds:SignatureMethod>\
             <ds:Reference URI=\"#{id}\"><ds:Transforms>\
             <ds:Transform Algorithm=\"http://www.w3.org/2000/09/xmldsig#enveloped-signature\"></ds:Transform>\
             <ds:Transform Algorithm=\"{EXC_C14N}\"></ds:Transform></ds:Transforms>\
             <ds:DigestMethod Algorithm=\"http://www.w3.org/2001/04/xmlenc#sha256\"></ds:DigestMethod>\
             <ds:DigestValue>{}</ds:DigestValue></ds:Reference></ds:SignedInfo>",
            STANDARD.encode(digest)
        );
        let signature = self.key.sign(&SystemRandom::new(), info.as_bytes());
        let signature = STANDARD.encode(signature.expect("the signature is created"));
        let signature = format!(
            "<ds:Signature xmlns:ds=\"{DSIG}\">{info}<ds:SignatureValue>{signature}</ds:SignatureValue></ds:Signature>"
        );
        let mut children = target.children();
        let issuer = children.find(|node| node.has_tag_name((ASSERTION, "Issuer")));
        let place = issuer.expect("an issuer").range().end;
        let (before, after) = xml.split_at(place);
        [before, &signature, after].concat()
    }
}
