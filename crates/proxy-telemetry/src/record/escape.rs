//! Escaping of text in JSON strings: client data cannot end the line or the string, nor imitate
//! other text.

use super::short;

/// Maximum size of a field's text, in bytes; longer text is cut and ends in `…`.
pub(crate) const MAX_TEXT_BYTES: usize = 8192;

const ONES: u64 = u64::from_ne_bytes([1; 8]);
const HIGHS: u64 = u64::from_ne_bytes([0x80; 8]);
const TWOS: u64 = u64::from_ne_bytes([2; 8]);
const FIRST_PLAIN: u64 = u64::from_ne_bytes([b' ' + 1; 8]);
const BACKSLASHES: u64 = u64::from_ne_bytes([b'\\'; 8]);

/// Appends `text`, escaped where needed.
///
/// Escaped are, besides quote and backslash: controls of C0 and C1, DEL, line and paragraph
/// separators, and the controls of writing direction, as `\uXXXX`; bytes that are not UTF-8 as
/// the four characters `\xNN`.
#[inline(never)]
pub(crate) fn push(out: &mut Vec<u8>, text: &[u8]) {
    if text.len() <= MAX_TEXT_BYTES && is_plain(text) {
        short::push(out, text);
    } else {
        push_with_care(out, text);
    }
}

/// Returns true if every byte is printable ASCII other than quote and backslash.
///
/// The last bytes are tested separately, some of them twice.
#[inline]
pub(crate) fn is_plain(text: &[u8]) -> bool {
    if let Some(last) = text.last_chunk::<32>() {
        let (blocks, _) = text.as_chunks::<32>();
        return blocks.iter().all(is_plain_block) && is_plain_block(last);
    }
    if let Some(last) = text.last_chunk::<8>() {
        let (words, _) = text.as_chunks::<8>();
        return words.iter().all(|word| marks(*word) == 0) && marks(*last) == 0;
    }
    if let (Some([a, b, c, d]), Some([e, f, g, h])) = (text.first_chunk(), text.last_chunk()) {
        return marks([*a, *b, *c, *d, *e, *f, *g, *h]) == 0;
    }
    let [first, middle, last] = match text {
        [] => return true,
        [one] => [one; 3],
        [first, last] => [first, first, last],
        [first, middle, .., last] => [first, middle, last],
    };
    marks([*first, *middle, *last, b'-', b'-', b'-', b'-', b'-']) == 0
}

#[inline]
fn is_plain_block(block: &[u8; 32]) -> bool {
    let (words, _) = block.as_chunks::<8>();
    words.iter().fold(0, |all, word| all | marks(*word)) == 0
}

/// Nonzero if one of eight bytes is not plain.
///
/// A byte below a bound borrows into its high bit when the bound is subtracted; one above 0x7e
/// carries into it when one is added. Bit 1 is flipped first, which puts the quote next to the
/// controls, so that one bound covers both. A byte with its high bit set keeps it in at least one
/// of the three, and a borrow or carry that reaches a neighbour starts at a byte that is marked.
#[inline]
fn marks(bytes: [u8; 8]) -> u64 {
    let word = u64::from_ne_bytes(bytes);
    let quote_or_less = (word ^ TWOS).wrapping_sub(FIRST_PLAIN);
    let backslash = (word ^ BACKSLASHES).wrapping_sub(ONES);
    let above_tilde = word.wrapping_add(ONES);
    (quote_or_less | backslash | above_tilde) & HIGHS
}

#[cold]
fn push_with_care(out: &mut Vec<u8>, text: &[u8]) {
    let kept = text.get(..MAX_TEXT_BYTES).unwrap_or(text);
    for chunk in kept.utf8_chunks() {
        for character in chunk.valid().chars() {
            push_character(out, character);
        }
        for byte in chunk.invalid() {
            out.extend_from_slice(b"\\\\x");
            push_hex(out, u32::from(*byte), 2);
        }
    }
    if kept.len() < text.len() {
        out.extend_from_slice("…".as_bytes());
    }
}

fn push_character(out: &mut Vec<u8>, character: char) {
    match character {
        '"' => out.extend_from_slice(b"\\\""),
        '\\' => out.extend_from_slice(b"\\\\"),
        '\n' => out.extend_from_slice(b"\\n"),
        '\r' => out.extend_from_slice(b"\\r"),
        '\t' => out.extend_from_slice(b"\\t"),
        '\0'..='\x1f'
        | '\x7f'..='\u{9f}'
        | '\u{61c}'
        | '\u{200e}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}' => {
            out.extend_from_slice(b"\\u");
            push_hex(out, u32::from(character), 4);
        }
        _ => out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
    }
}

fn push_hex(out: &mut Vec<u8>, number: u32, digits: u32) {
    let nibbles = (0..digits).rev().map(|at| number >> (4 * at) & 0xf);
    let characters = nibbles.filter_map(|nibble| char::from_digit(nibble, 16));
    out.extend(characters.filter_map(|digit| u8::try_from(digit).ok()));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pushed(text: &[u8]) -> String {
        let mut out = Vec::new();
        push(&mut out, text);
        String::from_utf8(out).unwrap()
    }

    fn is_plain_byte(byte: u8) -> bool {
        matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\'
    }

    #[test]
    fn each_byte_is_plain_or_not_at_any_position() {
        for byte in 0..=u8::MAX {
            for len in 1..=70 {
                for at in 0..len {
                    let mut text = vec![b'a'; len];
                    text[at] = byte;
                    let plain = is_plain_byte(byte);
                    assert_eq!(is_plain(&text), plain, "{byte:#x} at {at} of {len}");
                }
            }
        }
    }

    #[test]
    fn the_class_of_a_byte_does_not_depend_on_its_neighbours() {
        for (first, second) in
            (0..=u8::MAX).flat_map(|one| (0..=u8::MAX).map(move |two| (one, two)))
        {
            let plain = is_plain_byte(first) && is_plain_byte(second);
            for text in [&[first, second][..], &[b' ', first, second, b'~', b'z']] {
                assert_eq!(is_plain(text), plain, "{text:x?}");
            }
        }
    }

    #[test]
    fn a_text_is_written_the_same_whatever_its_length() {
        for byte in 0..=u8::MAX {
            for len in 0..=70 {
                let mut text = "aß世 🦀 z~ ".repeat(9).into_bytes();
                text.truncate(len);
                text.push(byte);
                let mut careful = Vec::new();
                push_with_care(&mut careful, &text);
                assert_eq!(pushed(&text).as_bytes(), careful, "{text:x?}");
                let text = [&vec![b'a'; len][..], &[byte]].concat();
                let mut careful = Vec::new();
                push_with_care(&mut careful, &text);
                assert_eq!(pushed(&text).as_bytes(), careful, "{text:x?}");
            }
        }
    }

    #[test]
    fn line_ends_and_misleading_characters_are_escaped() {
        let cases: [(&[u8], &str); 9] = [
            (b"plain text, 20 bytes", "plain text, 20 bytes"),
            (b"a\"b\\c", r#"a\"b\\c"#),
            (b"one\r\ntwo\tthree", r"one\r\ntwo\tthree"),
            (b"\x1b[31m\0\x7f", r"\u001b[31m\u0000\u007f"),
            ("c1 \u{85}\u{9b}".as_bytes(), r"c1 \u0085\u009b"),
            ("\u{202e}gpj\u{2066}".as_bytes(), r"\u202egpj\u2066"),
            ("\u{2028}\u{200f}\u{61c}".as_bytes(), r"\u2028\u200f\u061c"),
            ("grüße 世界 🦀".as_bytes(), "grüße 世界 🦀"),
            (b"bad \xff\xc3( end", r"bad \\xff\\xc3( end"),
        ];
        for (text, written) in cases {
            assert_eq!(pushed(text), written);
        }
    }

    #[test]
    fn a_long_text_is_cut() {
        let text = vec![b'a'; MAX_TEXT_BYTES + 1];

        let written = pushed(&text);

        assert_eq!(written, format!("{}…", "a".repeat(MAX_TEXT_BYTES)));
        assert_eq!(pushed(&text[1..]).len(), MAX_TEXT_BYTES);
    }
}
