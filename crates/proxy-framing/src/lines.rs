//! Where the lines of a head are.

/// Where the lines of one head, or of one section of fields, are: in bytes from its beginning.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// The first byte behind the start line; 0 in a section without one.
    pub start: usize,
    /// The field lines, in their order.
    pub fields: Vec<FieldLine>,
    /// The first byte behind the empty line; 0 while it is not known.
    pub end: usize,
}

/// Where a field line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldLine {
    /// Its first byte.
    pub from: u32,
    /// Its colon.
    pub colon: u32,
    /// Its line feed.
    pub end: u32,
}

impl Lines {
    /// Nothing is known yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            start: 0,
            fields: Vec::new(),
            end: 0,
        }
    }

    /// Begins anew, with a start line that ends before `start`.
    pub fn begin(&mut self, start: usize) {
        self.start = start;
        self.fields.clear();
        self.end = 0;
    }

    /// Notes a field line. None, and nothing noted, beyond 4 GiB.
    #[inline]
    pub fn push(&mut self, from: usize, colon: usize, end: usize) -> Option<()> {
        self.fields.push(FieldLine {
            from: u32::try_from(from).ok()?,
            colon: u32::try_from(colon).ok()?,
            end: u32::try_from(end).ok()?,
        });
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HeadLimits, RequestGuard};

    const LIMITS: HeadLimits = HeadLimits {
        max_head_bytes: 8192,
        max_header_count: 100,
        max_name_bytes: 256,
        max_value_bytes: 4096,
        max_target_bytes: 8192,
    };

    fn noted(pieces: &[&str]) -> Lines {
        let mut guard = RequestGuard::new(LIMITS);
        let mut lines = Lines::new();
        for piece in pieces {
            let scan = guard.scan_noting(piece.as_bytes(), Some(&mut lines));
            assert_eq!((scan.accepted, scan.stop), (piece.len(), None), "{piece}");
        }
        lines
    }

    #[test]
    fn each_line_of_the_first_head_is_noted() {
        let lines = noted(&[
            "GET / HTTP/1.1\r\nHost: a\r\nX-B:c\r\n\r\nGET /2 HTTP/1.1\r\nHost: b\r\n\r\n",
        ]);

        let [host, other] =
            [(16, 20, 24), (25, 28, 31)].map(|(from, colon, end)| FieldLine { from, colon, end });
        assert_eq!(lines.start, 16);
        assert_eq!(lines.fields, [host, other]);
        assert_eq!(lines.end, 34);
    }

    #[test]
    fn a_head_that_does_not_lead_its_bytes_or_is_cut_is_not_noted() {
        let post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n";
        let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        let cases: [&[&str]; 4] = [
            &["\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"],
            &["GET / HTTP/1.1\r\nHost: a\r\n"],
            &["GET / HTTP/1.1\r\nHost: a\r\n", "\r\n"],
            &[post, "abcGET / HTTP/1.1\r\nHost: a\r\n\r\n"],
        ];
        for pieces in cases {
            assert_eq!(noted(pieces).end, 0, "{pieces:?}");
        }
        assert_eq!(noted(&[post, "abc", get]).end, get.len());
    }
}
