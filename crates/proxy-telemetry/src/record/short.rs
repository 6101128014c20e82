//! Short texts, copied as words, which is faster than a copy of a length known only at run time.

/// At most eight bytes, the first in the lowest bits; unused bits are zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShortText {
    pub(crate) word: u64,
    pub(crate) count: usize,
}

impl ShortText {
    /// Appends the bytes.
    #[inline]
    pub(crate) fn push(self, out: &mut Vec<u8>) {
        let end = out.len() + self.count;
        out.extend_from_slice(&self.word.to_le_bytes());
        out.truncate(end);
    }
}

/// Appends `text` of any length.
#[inline]
pub(crate) fn push(out: &mut Vec<u8>, text: &[u8]) {
    let count = text.len();
    if count > 16 {
        out.extend_from_slice(text);
    } else if let Some(ends) = ends::<8>(text) {
        push_two(out, ends, count);
    } else if let Some(ends) = ends::<4>(text) {
        let [first, last] = ends.map(|half| u64::from(u32::from_le_bytes(half)));
        let word = first | last << (8 * (count - 4));
        ShortText { word, count }.push(out);
    } else if let (Some(first), Some(last)) = (text.first(), text.last()) {
        let middle = text.get(count / 2).unwrap_or(first);
        let [first, middle, last] = [*first, *middle, *last].map(u64::from);
        let word = first | middle << (8 * (count / 2)) | last << (8 * (count - 1));
        ShortText { word, count }.push(out);
    }
}

/// The first and the last `LENGTH` bytes of `text`; they overlap if it is less than twice as long.
#[inline]
fn ends<const LENGTH: usize>(text: &[u8]) -> Option<[[u8; LENGTH]; 2]> {
    Some([*text.first_chunk()?, *text.last_chunk()?])
}

/// Appends a text of eight to sixteen bytes, given as its first eight and its last eight.
#[inline]
fn push_two(out: &mut Vec<u8>, ends: [[u8; 8]; 2], count: usize) {
    let [first, last] = ends.map(|half| u128::from(u64::from_le_bytes(half)));
    let words = first | last << (8 * (count - 8));
    let end = out.len() + count;
    out.extend_from_slice(&words.to_le_bytes());
    out.truncate(end);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_any_length_arrives_whole() {
        let text: Vec<u8> = (1..=100).collect();
        for len in 0..=text.len() {
            for room in 0..=32 {
                let mut out = Vec::with_capacity(6 + room);
                out.extend_from_slice(b"before");

                push(&mut out, &text[..len]);

                assert_eq!(out, [b"before", &text[..len]].concat());
            }
        }
    }
}
