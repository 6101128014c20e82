//! Bearer tokens, and the files that contain them.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{Digest, SHA256, digest};
use proxy_setting_files::{ReadError, RegularFile};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const MIN_TOKEN_CHARS: usize = 16;

/// Maximum size of a token file.
const MAX_FILE_BYTES: u64 = 4096;

/// Most permissive mode of a token file: read and write for the owner, read for the group.
const WIDEST_MODE: u32 = 0o640;

/// Digest of a bearer token. The token itself is not kept.
#[derive(Clone)]
pub struct Token(Digest);

/// Warning about a token file with a mode more permissive than 0640.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the token file has mode {0:04o}; 0640 is the widest that keeps the token secret")]
pub struct WidePermissions(pub u32);

/// Errors of a token or its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be read.
    #[error("the token file cannot be read: {0}")]
    Unreadable(io::ErrorKind),
    /// The path is a folder, a device, a pipe or a socket.
    #[error("the token file is not a regular file")]
    NotAFile,
    /// The file is larger than 4096 bytes.
    #[error("the token file is larger than 4096 bytes")]
    TooLarge,
    /// The token has fewer than 16 characters.
    #[error("the token has {0} characters; 16 is the least")]
    TooShort(usize),
    /// The token contains a character that a header field cannot carry: white space, a control
    /// character, or one beyond ASCII.
    #[error("the token holds a character other than visible ASCII")]
    Character,
}

impl Token {
    /// Creates a token from `text`, without surrounding white space.
    ///
    /// # Errors
    /// [`TokenError::TooShort`] or [`TokenError::Character`].
    pub fn new(text: &str) -> Result<Self, TokenError> {
        let text = text.trim();
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(TokenError::Character);
        }
        if text.len() < MIN_TOKEN_CHARS {
            return Err(TokenError::TooShort(text.len()));
        }
        Ok(Self(digest(&SHA256, text.as_bytes())))
    }

    /// Reads the token from the file at `path`. Also returns a warning if the file's mode is too
    /// permissive.
    ///
    /// # Errors
    /// Any [`TokenError`].
    pub fn read(path: &Path) -> Result<(Self, Option<WidePermissions>), TokenError> {
        let fault = |error: ReadError| match error {
            ReadError::NotRegular => TokenError::NotAFile,
            ReadError::TooLarge { .. } => TokenError::TooLarge,
            ReadError::Io(error) => TokenError::Unreadable(error.kind()),
        };
        let file = RegularFile::open(path).map_err(fault)?;
        let mode = file.metadata().permissions().mode() & 0o777;
        let mut bytes = Vec::new();
        file.read_to_end(MAX_FILE_BYTES, &mut bytes)
            .map_err(fault)?;
        let text = String::from_utf8(bytes).map_err(|_| TokenError::Character)?;
        let wide = (mode & !WIDEST_MODE != 0).then_some(WidePermissions(mode));
        Ok((Self::new(&text)?, wide))
    }

    /// Compares in constant time.
    pub(crate) fn is(&self, shown: &[u8]) -> bool {
        let shown = digest(&SHA256, shown);
        verify_slices_are_equal(self.0.as_ref(), shown.as_ref()).is_ok()
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};

    fn file(text: &[u8], mode: u32) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        fs::set_permissions(file.path(), Permissions::from_mode(mode)).unwrap();
        file
    }

    #[test]
    fn white_space_around_a_token_is_not_of_it() {
        let file = file(b" 0123456789abcdef\n\n", 0o600);
        let (token, wide) = Token::read(file.path()).unwrap();

        assert!(token.is(b"0123456789abcdef"));
        assert!(
            !token.is(b"0123456789abcdeF") && !token.is(b"") && !token.is(b"0123456789abcdef0")
        );
        assert_eq!(wide, None);
        assert_eq!(format!("{token:?}"), "Token(hidden)");
    }

    #[test]
    fn a_file_with_a_wide_mode_is_reported() {
        for (mode, is_wide) in [(0o640, false), (0o644, true), (0o660, true), (0o400, false)] {
            let file = file(b"0123456789abcdef", mode);
            let (_, wide) = Token::read(file.path()).unwrap();
            assert_eq!(wide.is_some(), is_wide, "{mode:o}");
        }
        let text = WidePermissions(0o644).to_string();
        assert!(text.contains("mode 0644"), "{text}");
    }

    #[test]
    fn an_invalid_token_has_a_reason() {
        let cases = [
            (&b"short"[..], TokenError::TooShort(5)),
            (b"", TokenError::TooShort(0)),
            (b"two words of a token", TokenError::Character),
            (b"0123456789abcd\xff\xfe", TokenError::Character),
            (&[b'a'; 5000], TokenError::TooLarge),
        ];
        for (text, fault) in cases {
            assert_eq!(Token::read(file(text, 0o600).path()).unwrap_err(), fault);
        }
        let missing = Token::read(Path::new("/nowhere/admin.token")).unwrap_err();
        assert_eq!(missing, TokenError::Unreadable(io::ErrorKind::NotFound));
    }
}
