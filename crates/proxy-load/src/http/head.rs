//! Parsing of HTTP/1.1 heads, for both ends.

use memchr::memmem;

/// The end of a head.
const END: &[u8] = b"\r\n\r\n";

/// A head with its last line end, and the bytes after it; `None` while it is incomplete.
pub(crate) fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memmem::find(bytes, END)?;
    bytes.split_at_checked(end + END.len())
}

/// The value of the first header with this name, given in lower case.
pub(crate) fn value<'a>(head: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    head.split(|byte| *byte == b'\n').find_map(|line| {
        let (found, rest) = line.split_at_checked(name.len())?;
        let value = rest.strip_prefix(b":")?;
        found.eq_ignore_ascii_case(name).then(|| value.trim_ascii())
    })
}

/// The number in `Content-Length`.
pub(crate) fn content_length(head: &[u8]) -> Option<usize> {
    let value = value(head, b"content-length")?;
    std::str::from_utf8(value).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nServer: x\r\nCONTENT-LENGTH:  17 \r\n\r\n";

    #[test]
    fn a_head_is_split_off_once_it_is_whole() {
        let message = [HEAD, b"body"].concat();
        assert_eq!(split(&message), Some((HEAD, b"body".as_slice())));
        assert_eq!(split(&HEAD[..HEAD.len() - 1]), None);
    }

    #[test]
    fn headers_are_found_whatever_their_case() {
        assert_eq!(content_length(HEAD), Some(17));
        assert_eq!(value(HEAD, b"server"), Some(b"x".as_slice()));
        assert_eq!(value(HEAD, b"serve"), None);
        assert_eq!(content_length(b"HTTP/1.1 200 OK\r\n\r\n"), None);
    }
}
