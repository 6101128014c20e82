//! Distinguished names as text. [RFC 4514]

use std::fmt::Write as _;
use x509_parser::asn1_rs::{Any, Tag, ToDer};
use x509_parser::x509::{AttributeTypeAndValue, X509Name};

/// Maximum length of a name as text.
const MAX_BYTES: usize = 2_048;

/// Short names of attribute types, as in OpenSSL.
const SHORT_NAMES: &[(&str, &str)] = &[
    ("2.5.4.3", "CN"),
    ("2.5.4.4", "SN"),
    ("2.5.4.5", "serialNumber"),
    ("2.5.4.6", "C"),
    ("2.5.4.7", "L"),
    ("2.5.4.8", "ST"),
    ("2.5.4.9", "street"),
    ("2.5.4.10", "O"),
    ("2.5.4.11", "OU"),
    ("2.5.4.12", "title"),
    ("2.5.4.13", "description"),
    ("2.5.4.17", "postalCode"),
    ("2.5.4.41", "name"),
    ("2.5.4.42", "GN"),
    ("2.5.4.43", "initials"),
    ("2.5.4.44", "generationQualifier"),
    ("2.5.4.46", "dnQualifier"),
    ("2.5.4.65", "pseudonym"),
    ("2.5.4.97", "organizationIdentifier"),
    ("0.9.2342.19200300.100.1.1", "UID"),
    ("0.9.2342.19200300.100.1.25", "DC"),
    ("1.2.840.113549.1.9.1", "emailAddress"),
];

/// Formats a name like OpenSSL's `RFC2253`, which nginx uses for `$ssl_client_s_dn`: last part
/// first, separators in values escaped, and bytes other than printable ASCII as `\XX`. `None` above
/// 2 048 bytes, because a truncated name would be a different name.
pub(super) fn text(name: &X509Name<'_>) -> Option<String> {
    let mut text = String::new();
    let parts: Vec<_> = name.iter_rdn().collect();
    for part in parts.into_iter().rev() {
        let attributes: Vec<_> = part.iter().collect();
        let mut separator = ",";
        for attribute in attributes.into_iter().rev() {
            if !text.is_empty() {
                text.push_str(separator);
            }
            separator = "+";
            push_attribute(&mut text, attribute)?;
            if MAX_BYTES < text.len() {
                return None;
            }
        }
    }
    Some(text)
}

fn push_attribute(text: &mut String, attribute: &AttributeTypeAndValue<'_>) -> Option<()> {
    let kind = attribute.attr_type().to_id_string();
    let short = SHORT_NAMES.iter().find(|(known, _)| *known == kind);
    let value = short.and_then(|_| characters(attribute.attr_value()));
    text.push_str(short.map_or(&*kind, |(_, short)| short));
    text.push('=');
    if let Some(value) = value {
        push_escaped(text, &value);
        return Some(());
    }
    text.push('#');
    for byte in attribute.attr_value().to_der_vec().ok()? {
        // Writing into a String cannot fail.
        write!(text, "{byte:02X}").unwrap_or_default();
    }
    Some(())
}

/// Characters of a value; `None` if it is not a valid string.
fn characters(value: &Any<'_>) -> Option<String> {
    let bytes = value.data;
    match value.tag() {
        Tag::Utf8String
        | Tag::PrintableString
        | Tag::NumericString
        | Tag::Ia5String
        | Tag::VisibleString => Some(str::from_utf8(bytes).ok()?.to_owned()),
        // In practice, these strings are ISO 8859-1.
        Tag::T61String => Some(bytes.iter().map(|byte| char::from(*byte)).collect()),
        Tag::BmpString => {
            let (units, rest) = bytes.as_chunks::<2>();
            let units = units.iter().map(|unit| u16::from_be_bytes(*unit));
            let text = char::decode_utf16(units).collect::<Result<_, _>>().ok();
            text.filter(|_| rest.is_empty())
        }
        Tag::UniversalString => {
            let (units, rest) = bytes.as_chunks::<4>();
            let units = units.iter().map(|unit| u32::from_be_bytes(*unit));
            let text = units.map(char::from_u32).collect::<Option<_>>();
            text.filter(|_| rest.is_empty())
        }
        _ => None,
    }
}

fn push_escaped(text: &mut String, value: &str) {
    let last = value.len().saturating_sub(1);
    for (index, byte) in value.bytes().enumerate() {
        let is_special = match byte {
            b',' | b'+' | b'"' | b'\\' | b'<' | b'>' | b';' => true,
            b'#' => index == 0,
            b' ' => index == 0 || index == last,
            _ => false,
        };
        if is_special {
            text.push('\\');
        }
        if matches!(byte, b' '..=b'~') {
            text.push(char::from(byte));
        } else {
            // Writing into a String cannot fail.
            write!(text, "\\{byte:02X}").unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::certificate::leaf::subject;
    use rcgen::{CertificateParams, DistinguishedName, DnType, DnValue, KeyPair};

    fn subject_of(parts: Vec<(DnType, DnValue)>) -> Option<String> {
        let mut name = DistinguishedName::new();
        for (kind, value) in parts {
            name.push(kind, value);
        }
        let mut params = CertificateParams::default();
        params.distinguished_name = name;
        let key = KeyPair::generate().unwrap();
        subject(params.self_signed(&key).unwrap().der())
    }

    #[test]
    fn a_value_cannot_pass_for_several_parts() {
        let common = |text: &str| vec![(DnType::CommonName, DnValue::from(text))];
        for (value, expected) in [
            ("robot", r"CN=robot"),
            ("a, CN=admin", r"CN=a\, CN=admin"),
            ("a + O=admin", r"CN=a \+ O=admin"),
            (r#"a"b\c;d<e>"#, r#"CN=a\"b\\c\;d\<e\>"#),
            ("#lead #", r"CN=\#lead #"),
            (" sp ", r"CN=\ sp\ "),
            (" ", r"CN=\ "),
            ("", r"CN="),
            ("é\r\nX: 1\0", r"CN=\C3\A9\0D\0AX: 1\00"),
        ] {
            assert_eq!(subject_of(common(value)).as_deref(), Some(expected));
        }
    }

    #[test]
    fn rdns_are_in_reverse_order_and_unknown_types_are_numbers() {
        let parts = vec![
            (DnType::OrganizationName, DnValue::from("Example, Ltd")),
            (DnType::CustomDnType(vec![1, 2, 3, 4]), DnValue::from("x")),
            (DnType::CommonName, DnValue::from("robot")),
        ];
        assert_eq!(
            subject_of(parts).as_deref(),
            Some(r"CN=robot,1.2.3.4=#0C0178,O=Example\, Ltd")
        );
    }

    #[test]
    fn a_longer_name_has_no_text() {
        let long = |length| vec![(DnType::CommonName, DnValue::from("a".repeat(length)))];
        assert_eq!(subject_of(long(2_045)).unwrap().len(), 2_048);
        assert_eq!(subject_of(long(2_046)), None);
    }
}
