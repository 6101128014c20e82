//! Reads files of users as Apache's `htpasswd` writes them.

use crate::basic::is_user_name;
use crate::password_hash::{PasswordHash, PasswordHashError};

/// An invalid line. It never contains the line's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HtpasswdError {
    /// Number of the line, from 1.
    pub line: usize,
    /// The fault of its hash; `None` if the line is not `user:hash`.
    pub hash: Option<PasswordHashError>,
}

/// Parses `user:hash`, one per line; `#` begins a comment line, and text after a second colon is
/// ignored, as by Apache.
///
/// # Errors
/// [`HtpasswdError`] of the first invalid line.
pub fn read_htpasswd(text: &str) -> Result<Vec<(String, PasswordHash)>, HtpasswdError> {
    let mut users = Vec::new();
    // A byte order mark, which some editors write, is not part of the first user's name.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (line, text) in (1_usize..).zip(text.lines()) {
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let mut fields = text.split(':');
        let name = fields.next().filter(|name| is_user_name(name));
        let Some((name, hash)) = name.zip(fields.next()) else {
            return Err(HtpasswdError { line, hash: None });
        };
        let hash = hash.parse().map_err(|error| HtpasswdError {
            line,
            hash: Some(error),
        })?;
        users.push((name.to_owned(), hash));
    }
    Ok(users)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_a_user_and_a_hash() {
        let hash = bcrypt::hash("one", 4).unwrap();
        let text = format!("# team\n\nann:{hash}\r\nbob:{hash}:Bob:bob@example.com\n");
        let users = read_htpasswd(&text).unwrap();
        let names: Vec<_> = users.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, ["ann", "bob"]);
        assert!(users[1].1.verify(b"one"));
        let marked = format!("\u{feff}ann:{hash}");
        assert_eq!(read_htpasswd(&marked).unwrap()[0].0, "ann");
    }

    #[test]
    fn the_first_fault_is_reported_with_its_line() {
        let error = |line, hash| Err(HtpasswdError { line, hash });
        let cases = [
            ("ann", error(1, None)),
            ("\n:x", error(2, None)),
            ("#\n#\nann:secret", error(3, Some(PasswordHashError::Clear))),
            ("ann:{SHA}abc", error(1, Some(PasswordHashError::Sha1))),
        ];
        for (text, expected) in cases {
            assert_eq!(read_htpasswd(text), expected, "{text}");
        }
    }
}
