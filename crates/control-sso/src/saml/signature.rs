//! Verification of signatures of one fixed form: any other element or attribute value is an error.

use super::canonical::canonicalize;
use super::document::{
    ASSERTION, DSIG, EXC_C14N, PROTOCOL, attribute, children, only_elements, value,
};
use super::error::SamlError;
use super::idp_key::IdpKey;
use aws_lc_rs::{constant_time, digest};
use base64::{Engine, engine::general_purpose::STANDARD};
use roxmltree::{Document, Node};

const ENVELOPED: &str = "http://www.w3.org/2000/09/xmldsig#enveloped-signature";
const MAX_PREFIXES: usize = 16;

/// Canonical bytes covered by verified signatures: the only source of claims.
#[derive(Debug)]
pub(super) struct Signed {
    /// The response, if it is signed.
    pub(super) response: Option<Vec<u8>>,
    /// The assertion, if it is signed separately.
    pub(super) assertion: Option<Vec<u8>>,
}

/// Verifies every signature of a response; at least one must cover the assertion.
pub(super) fn verify(document: &Document<'_>, keys: &[IdpKey]) -> Result<Signed, SamlError> {
    let response = document.root_element();
    let is_response = response.has_tag_name((PROTOCOL, "Response"));
    if !is_response || attribute(response, "Version") != Some("2.0") {
        return Err(SamlError::NotAResponse);
    }
    let assertion = only_assertion(response)?;
    let parents = [response, assertion];
    // By local name, so that a signature in another namespace is refused as well.
    let mut signatures = response
        .descendants()
        .filter(|node| node.is_element() && node.tag_name().name() == "Signature");
    let is_stray = signatures.any(|node| {
        let is_placed = node
            .parent()
            .is_some_and(|parent| parents.contains(&parent));
        node.tag_name().namespace() != Some(DSIG) || !is_placed
    });
    if is_stray {
        return Err(SamlError::SignaturePlace);
    }
    let signed = Signed {
        response: signed_bytes(response, keys)?,
        assertion: signed_bytes(assertion, keys)?,
    };
    if signed.response.is_none() && signed.assertion.is_none() {
        return Err(SamlError::Unsigned);
    }
    Ok(signed)
}

/// The single assertion. Searched by local name in every namespace and at every depth, so that no
/// second one is hidden.
fn only_assertion<'a, 'i>(response: Node<'a, 'i>) -> Result<Node<'a, 'i>, SamlError> {
    let elements = || response.descendants().skip(1).filter(Node::is_element);
    let encrypted = ["EncryptedAssertion", "EncryptedID", "EncryptedAttribute"];
    if elements().any(|node| encrypted.contains(&node.tag_name().name())) {
        return Err(SamlError::Encrypted);
    }
    if elements().any(|node| node.tag_name().name() == "Response") {
        return Err(SamlError::Assertions);
    }
    let mut found = elements().filter(|node| node.tag_name().name() == "Assertion");
    let only = found.next().filter(|_| found.next().is_none());
    only.filter(|node| node.has_tag_name((ASSERTION, "Assertion")))
        .filter(|node| node.parent() == Some(response))
        .ok_or(SamlError::Assertions)
}

/// Canonical bytes of `target` without its signature; `None` if it has no signature. Verifies the
/// signature first: bytes without a valid signature are not even canonicalized.
fn signed_bytes(target: Node<'_, '_>, keys: &[IdpKey]) -> Result<Option<Vec<u8>>, SamlError> {
    let signature = match children(target, DSIG, "Signature").as_slice() {
        [] => return Ok(None),
        [one] => *one,
        _ => return Err(SamlError::SignaturePlace),
    };
    let parts = parts_of(signature)?;
    let (info, made) = match parts.as_slice() {
        [info, made] => (*info, *made),
        // The key in the document is ignored.
        [info, made, key] if key.has_tag_name((DSIG, "KeyInfo")) => (*info, *made),
        _ => return Err(SamlError::SignatureForm("children of Signature")),
    };
    let info = SignedInfo::read(expect(info, "SignedInfo")?)?;
    let made = base64(expect(made, "SignatureValue")?, "SignatureValue")?;
    info.check_signature(keys, &made)?;
    info.referenced(target, signature).map(Some)
}

/// Parts of a `SignedInfo`, with exactly one `Reference` and two transforms.
struct SignedInfo<'a, 'i> {
    element: Node<'a, 'i>,
    own_prefixes: Vec<&'a str>,
    algorithm: &'a str,
    uri: &'a str,
    prefixes: Vec<&'a str>,
    digest: &'static digest::Algorithm,
    digest_value: Vec<u8>,
}

impl<'a, 'i> SignedInfo<'a, 'i> {
    fn read(element: Node<'a, 'i>) -> Result<Self, SamlError> {
        let parts = parts_of(element)?;
        let [method, algorithm, reference] = parts.as_slice() else {
            let form = "SignedInfo without exactly one Reference";
            return Err(SamlError::SignatureForm(form));
        };
        let own_prefixes = exclusive_prefixes(expect(*method, "CanonicalizationMethod")?)?;
        let algorithm = expect(*algorithm, "SignatureMethod")?;
        check_empty(algorithm)?;
        let algorithm = attribute(algorithm, "Algorithm").unwrap_or_default();
        if !is_strong(algorithm) {
            return Err(SamlError::Algorithm);
        }
        let reference = expect(*reference, "Reference")?;
        let parts = parts_of(reference)?;
        let [transforms, method, digest_value] = parts.as_slice() else {
            return Err(SamlError::SignatureForm("children of Reference"));
        };
        let method = expect(*method, "DigestMethod")?;
        check_empty(method)?;
        Ok(Self {
            element,
            own_prefixes,
            algorithm,
            uri: attribute(reference, "URI").unwrap_or_default(),
            prefixes: transformed_prefixes(expect(*transforms, "Transforms")?)?,
            digest: digest_of(method)?,
            digest_value: base64(expect(*digest_value, "DigestValue")?, "DigestValue")?,
        })
    }

    fn check_signature(&self, keys: &[IdpKey], made: &[u8]) -> Result<(), SamlError> {
        let message = canonicalize(self.element, None, &self.own_prefixes);
        let is_made = keys
            .iter()
            .any(|key| key.verifies(self.algorithm, &message, made));
        is_made.then_some(()).ok_or(SamlError::Signature)
    }

    /// Canonical bytes that the reference covers. It must name the signature's parent by its `ID`.
    fn referenced(
        &self,
        target: Node<'_, '_>,
        signature: Node<'_, '_>,
    ) -> Result<Vec<u8>, SamlError> {
        let id = attribute(target, "ID").filter(|id| !id.is_empty());
        if id.is_none() || self.uri.strip_prefix('#') != id {
            let form = "a Reference to another element than the signed one";
            return Err(SamlError::SignatureForm(form));
        }
        let bytes = canonicalize(target, Some(signature.id()), &self.prefixes);
        let own = digest::digest(self.digest, &bytes);
        constant_time::verify_slices_are_equal(own.as_ref(), &self.digest_value)
            .map_err(|_| SamlError::Digest)?;
        Ok(bytes)
    }
}

/// Inclusive prefixes of the two transforms that the profile permits.
fn transformed_prefixes<'a>(transforms: Node<'a, '_>) -> Result<Vec<&'a str>, SamlError> {
    let steps = parts_of(transforms)?;
    let [enveloped, canonical] = steps.as_slice() else {
        let form = "other transforms than enveloped-signature and exclusive canonicalization";
        return Err(SamlError::SignatureForm(form));
    };
    let enveloped = expect(*enveloped, "Transform")?;
    check_empty(enveloped)?;
    if attribute(enveloped, "Algorithm") != Some(ENVELOPED) {
        let form = "the first transform is not enveloped-signature";
        return Err(SamlError::SignatureForm(form));
    }
    exclusive_prefixes(expect(*canonical, "Transform")?)
}

/// Inclusive prefixes of an element with exclusive canonicalization.
fn exclusive_prefixes<'a>(method: Node<'a, '_>) -> Result<Vec<&'a str>, SamlError> {
    if attribute(method, "Algorithm") != Some(EXC_C14N) {
        let form = "another canonicalization than exclusive without comments";
        return Err(SamlError::SignatureForm(form));
    }
    let list = match parts_of(method)?.as_slice() {
        [] => "",
        [list] if list.has_tag_name((EXC_C14N, "InclusiveNamespaces")) => {
            check_empty(*list)?;
            attribute(*list, "PrefixList").unwrap_or_default()
        }
        _ => return Err(SamlError::SignatureForm("parameters of a canonicalization")),
    };
    let prefixes: Vec<&str> = list.split_ascii_whitespace().collect();
    if MAX_PREFIXES < prefixes.len() {
        return Err(SamlError::TooLarge);
    }
    Ok(prefixes)
}

fn parts_of<'a, 'i>(node: Node<'a, 'i>) -> Result<Vec<Node<'a, 'i>>, SamlError> {
    only_elements(node).ok_or(SamlError::SignatureForm("text between elements"))
}

fn check_empty(node: Node<'_, '_>) -> Result<(), SamlError> {
    let is_empty = parts_of(node)?.is_empty();
    is_empty
        .then_some(())
        .ok_or(SamlError::SignatureForm("parameters of an algorithm"))
}

fn expect<'a, 'i>(node: Node<'a, 'i>, name: &'static str) -> Result<Node<'a, 'i>, SamlError> {
    let is_it = node.has_tag_name((DSIG, name));
    is_it
        .then_some(node)
        .ok_or(SamlError::SignatureForm("an unexpected element"))
}

fn is_strong(algorithm: &str) -> bool {
    let name = algorithm.strip_prefix("http://www.w3.org/2001/04/xmldsig-more#");
    let strong = [
        "rsa-sha256",
        "rsa-sha384",
        "rsa-sha512",
        "ecdsa-sha256",
        "ecdsa-sha384",
    ];
    name.is_some_and(|name| strong.contains(&name))
}

fn digest_of(method: Node<'_, '_>) -> Result<&'static digest::Algorithm, SamlError> {
    match attribute(method, "Algorithm") {
        Some("http://www.w3.org/2001/04/xmlenc#sha256") => Ok(&digest::SHA256),
        Some("http://www.w3.org/2001/04/xmldsig-more#sha384") => Ok(&digest::SHA384),
        Some("http://www.w3.org/2001/04/xmlenc#sha512") => Ok(&digest::SHA512),
        _ => Err(SamlError::Algorithm),
    }
}

fn base64(node: Node<'_, '_>, name: &'static str) -> Result<Vec<u8>, SamlError> {
    let text = value(node).ok_or(SamlError::SignatureForm(name))?;
    let text: String = text.split_ascii_whitespace().collect();
    let bytes = STANDARD.decode(text);
    bytes.map_err(|_| SamlError::SignatureForm(name))
}
