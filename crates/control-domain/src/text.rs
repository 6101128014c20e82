//! Validated texts: names and e-mail addresses.

use crate::access::refusal::Refusal;
use std::fmt;

const MAX_NAME_CHARS: usize = 100;
const MAX_EMAIL_BYTES: usize = 254;

/// A display name: 1 to 100 characters, visible ones or inner spaces.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name(String);

/// An e-mail address in lower case: one `@`, at most 254 bytes, no spaces or invisible characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Email(String);

impl Name {
    /// Parses a name; a refusal names `field`.
    ///
    /// # Errors
    ///
    /// [`Refusal::Invalid`] if the text is not a name.
    pub fn parse(field: &'static str, text: &str) -> Result<Self, Refusal> {
        let length = text.chars().count();
        if length == 0 || MAX_NAME_CHARS < length {
            return Err(Refusal::invalid(field, "needs 1 to 100 characters"));
        }
        if text.trim() != text || text.chars().any(is_hidden) {
            let reason = "has control or invisible characters, or a space at an end";
            return Err(Refusal::invalid(field, reason));
        }
        Ok(Self(text.to_owned()))
    }

    /// A name from the database, not validated again.
    pub fn stored(text: String) -> Self {
        Self(text)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Email {
    /// Parses an address and converts it to lower case, so that no two users differ by case alone.
    ///
    /// # Errors
    ///
    /// [`Refusal::Invalid`] if the text is not an address.
    pub fn parse(field: &'static str, text: &str) -> Result<Self, Refusal> {
        let wrong = || Refusal::invalid(field, "is not an e-mail address");
        let (user, domain) = text.split_once('@').ok_or_else(wrong)?;
        let is_invisible = |c: char| c.is_whitespace() || is_hidden(c) || is_joiner(c);
        let bad = user.is_empty() || domain.is_empty() || domain.contains('@');
        if bad || text.len() > MAX_EMAIL_BYTES || text.contains(is_invisible) {
            return Err(wrong());
        }
        Ok(Self(text.to_lowercase()))
    }

    /// An address from the database, not validated again.
    pub fn stored(text: String) -> Self {
        Self(text)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Returns true for invisible characters, and for characters that change how neighbouring text is
/// displayed; joiners in the spelling of words are permitted.
fn is_hidden(c: char) -> bool {
    let hidden = matches!(
        c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
            | '\u{180e}' | '\u{3164}' | '\u{ffa0}' | '\u{1d173}'..='\u{1d17a}' | '\u{200b}' | '\u{200e}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
    );
    hidden || c.is_control()
}

/// Joiners and variation selectors: invisible, but part of the spelling of words and emoji.
fn is_joiner(c: char) -> bool {
    matches!(
        c,
        '\u{180b}'..='\u{180f}' | '\u{200c}'..='\u{200d}' | '\u{fe00}'..='\u{fe0f}'
            | '\u{e0100}'..='\u{e01ef}'
    )
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Email {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_short_and_visible() {
        for good in ["a", "Ünïcode 1", &"x".repeat(100)] {
            assert!(Name::parse("name", good).is_ok(), "{good}");
        }
        let invisible = [
            "\u{200b}",
            "\u{3164}",
            "a\u{202e}b",
            "a\u{2028}b",
            "\u{feff}a",
        ];
        let wrong = ["", " a", "a ", "a\nb", &"x".repeat(101)];
        for bad in wrong.into_iter().chain(invisible) {
            assert!(Name::parse("name", bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn an_email_address_has_two_parts_and_is_lower_case() {
        let email = Email::parse("email", "Ann@Example.com").unwrap();
        assert_eq!(email.as_str(), "ann@example.com");
        for bad in [
            "",
            "a",
            "@b",
            "a@",
            "a@b@c",
            "a b@c",
            "a\u{200b}@b",
            "a\u{200d}@b",
            "a\u{202e}@b",
            "a@b\u{3164}",
            &format!("a@{}", "b".repeat(254)),
        ] {
            assert!(Email::parse("email", bad).is_err(), "{bad:?}");
        }
    }
}
