//! Rules for new passwords: length, a list of common ones, repetitions and sequences, the user's own words. No rules of
//! composition (NIST SP 800-63B, section 3.1.1.2).

use crate::password::Password;
use std::cmp::Ordering;
use std::ops::RangeInclusive;

const LENGTH_CHARS: RangeInclusive<usize> = 12..=256;
/// Sorted by bytes, one in a line, in lower case.
const COMMON: &str = include_str!("../assets/common-passwords.txt");
/// Minimum number of runs. In a run, each character is equal or next to the one before: `aaaa`, `1234`, `dcba`.
const MIN_RUNS: usize = 4;
/// Minimum length of a user's word to search for: `an` is in many good passwords.
const MIN_WORD_CHARS: usize = 3;
/// Letters and digits that must be left of a password without the user's own words.
const MIN_OTHER_CHARS: usize = 6;

/// Reason to refuse a new password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PasswordFault {
    /// Too short or too long.
    #[error("needs 12 to 256 characters")]
    Length,
    /// One of the 20 000 most common passwords.
    #[error("is one of the most common passwords")]
    Common,
    /// A shorter text several times, or few runs of equal or neighbouring characters.
    #[error("is a repetition or a sequence, such as abcabcabcabc or 123456789abc")]
    Repetitive,
    /// Little more than words that are known of the user.
    #[error("is derived from the address, the name or the organization")]
    Personal,
}

impl PasswordFault {
    /// The reason as a field of a request has it.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Length => "needs 12 to 256 characters",
            Self::Common => "is one of the most common passwords",
            Self::Repetitive => {
                "is a repetition or a sequence, such as abcabcabcabc or 123456789abc"
            }
            Self::Personal => "is derived from the address, the name or the organization",
        }
    }
}

impl Password {
    /// Checks that it may be a new password of the user that `known` describes: address, name,
    /// organization.
    ///
    /// # Errors
    ///
    /// The first rule that it breaks.
    pub fn check(&self, known: &[&str]) -> Result<(), PasswordFault> {
        if !LENGTH_CHARS.contains(&self.length()) {
            return Err(PasswordFault::Length);
        }
        let lower = zeroize::Zeroizing::new(self.reveal().to_lowercase());
        if is_common(&lower) {
            return Err(PasswordFault::Common);
        }
        if is_repetitive(&lower) {
            return Err(PasswordFault::Repetitive);
        }
        if is_personal(&lower, known) {
            return Err(PasswordFault::Personal);
        }
        Ok(())
    }
}

/// Binary search in the text itself: no copy of the list is made.
fn is_common(lower: &str) -> bool {
    let (mut from, mut to) = (0, COMMON.len());
    while from < to {
        let middle = usize::midpoint(from, to);
        let before = COMMON.as_bytes().get(from..middle).unwrap_or_default();
        let start = before.iter().rposition(|byte| *byte == b'\n');
        let start = start.map_or(from, |place| from + place + 1);
        let rest = COMMON.get(start..to).unwrap_or_default();
        let line = rest.split('\n').next().unwrap_or_default();
        match line.cmp(lower) {
            Ordering::Equal => return true,
            Ordering::Less => from = start + line.len() + 1,
            Ordering::Greater => to = start,
        }
    }
    false
}

/// Returns true for a text that is shorter than a password, twice or more (the last time perhaps in part), and for few
/// runs.
fn is_repetitive(lower: &str) -> bool {
    let characters: zeroize::Zeroizing<Vec<char>> =
        zeroize::Zeroizing::new(lower.chars().collect());
    let longest = (characters.len() / 2).min(*LENGTH_CHARS.start() - 1);
    let repeats = |period: usize| {
        let later = characters.iter().skip(period);
        characters
            .iter()
            .zip(later)
            .all(|(one, other)| one == other)
    };
    if (1..=longest).any(repeats) {
        return true;
    }
    let next = characters.iter().skip(1);
    let breaks = characters.iter().zip(next);
    let breaks = breaks.filter(|(one, next)| 1 < u32::from(**one).abs_diff(u32::from(**next)));
    breaks.count() + 1 < MIN_RUNS
}

fn is_personal(lower: &str, known: &[&str]) -> bool {
    let mut words: Vec<String> = known
        .iter()
        .flat_map(|text| text.split(|c: char| !c.is_alphanumeric()))
        .map(str::to_lowercase)
        .filter(|word| MIN_WORD_CHARS <= word.chars().count())
        .collect();
    // The longest first: `anna` must not leave an `a` behind where `ann` is a word, too.
    words.sort_by_key(|word| std::cmp::Reverse(word.len()));
    let mut rest = zeroize::Zeroizing::new(lower.to_owned());
    for word in &words {
        rest = zeroize::Zeroizing::new(rest.replace(word.as_str(), ""));
    }
    let others = rest.chars().filter(|c| c.is_alphanumeric());
    rest.len() < lower.len() && others.count() < MIN_OTHER_CHARS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(password: &str) -> Result<(), PasswordFault> {
        let known = ["ann.archer@example.com", "Ann Archer", "Acme Edge"];
        Password::new(password.to_owned()).check(&known)
    }

    #[test]
    fn every_line_of_the_list_is_found_and_nothing_else() {
        let mut lines = 0;
        for line in COMMON.lines() {
            assert!(is_common(line), "{line}");
            assert!(!is_common(&format!("{line}\u{1}")), "{line}");
            lines += 1;
        }
        assert!(19_000 < lines, "{lines}");
        for absent in ["", "\n", "!?", "correct horse", "~~~~", "\u{10ffff}"] {
            assert!(!is_common(absent), "{absent}");
        }
    }

    #[test]
    fn the_list_is_sorted() {
        let lines: Vec<&str> = COMMON.lines().collect();
        assert!(lines.is_sorted());
    }

    #[test]
    fn a_password_is_long_uncommon_and_unlike_the_users_data() {
        for good in ["correct horse", "Zwölf Zeichen", "ann plays the cello"] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        assert_eq!(check("short"), Err(PasswordFault::Length));
        assert_eq!(check("zwölf zeich"), Err(PasswordFault::Length));
        assert_eq!(check(&"x".repeat(257)), Err(PasswordFault::Length));
        assert_eq!(check("1234567890123"), Err(PasswordFault::Common));
        assert_eq!(check("QWERTYUIOP123"), Err(PasswordFault::Common));
        for repetitive in [
            "aaaaaaaaaaaa",
            "passwordpassword",
            "PasswordpassworDpass",
            "abcabcabcabc",
            "correcthorscorrecthors",
            "abcdefghijklm",
            "111122223333",
            "1234abcdefgh",
            "zyxwvutsrqpo",
            "éééééééééééé",
        ] {
            let found = check(repetitive);
            assert_eq!(found, Err(PasswordFault::Repetitive), "{repetitive}");
        }
        for good in ["correct horse, correct", "abcdefgh 2026", "aaaaaaaa1z9k"] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for personal in ["AnnArcher2026", "ann.archer@example.com", "acme-edge-acme"] {
            assert_eq!(check(personal), Err(PasswordFault::Personal), "{personal}");
        }
    }
}
