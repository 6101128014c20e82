//! Decoding of Huffman-coded strings of visible ASCII characters. [RFC 7541 §5.2, appendix B]

/// The codes of one length, which are consecutive.
struct Codes {
    bits: u32,
    /// Code of the first symbol.
    first: u64,
    symbols: &'static [u8],
}

const fn codes(bits: u32, first: u64, symbols: &'static [u8]) -> Codes {
    Codes {
        bits,
        first,
        symbols,
    }
}

/// From the shortest codes to the longest of a visible ASCII character, `\`.
static CODES: [Codes; 11] = [
    codes(5, 0x0, b"012aceiost"),
    codes(6, 0x14, b" %-./3456789=A_bdfghlmnpru"),
    codes(7, 0x5c, b":BCDEFGHIJKLMNOPQRSTUVWYjkqvwxyz"),
    codes(8, 0xf8, b"&*,;XZ"),
    codes(10, 0x3f8, b"!\"()?"),
    codes(11, 0x7fa, b"'+|"),
    codes(12, 0xffa, b"#>"),
    codes(13, 0x1ff8, b"\0$@[]~"),
    codes(14, 0x3ffc, b"^}"),
    codes(15, 0x7ffc, b"<`{"),
    codes(19, 0x7fff0, b"\\\xc3\xd0"),
];

/// A code without a visible ASCII character, or a string that ends within a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UnknownCode;

/// The symbols of a string, up to the first unknown code.
#[derive(Clone, Debug)]
pub(super) struct Symbols<'s> {
    rest: &'s [u8],
    /// The next bits, from the highest on; ones after them, as in the padding of a string.
    window: u64,
    /// Number of bits in the window.
    bits: u32,
}

impl<'s> Symbols<'s> {
    pub(super) fn new(string: &'s [u8]) -> Self {
        Self {
            rest: string,
            window: u64::MAX,
            bits: 0,
        }
    }

    fn fill(&mut self) {
        while self.bits <= u64::BITS - u8::BITS
            && let Some((byte, rest)) = self.rest.split_first()
        {
            self.bits += u8::BITS;
            self.window &= !(u64::from(!byte) << (u64::BITS - self.bits));
            self.rest = rest;
        }
    }

    /// The next symbol and the length of its code.
    fn symbol(&self) -> Option<(u8, u32)> {
        CODES.iter().find_map(|codes| {
            let code = self.window >> (u64::BITS - codes.bits);
            let index = usize::try_from(code.checked_sub(codes.first)?).ok()?;
            Some((*codes.symbols.get(index)?, codes.bits))
        })
    }
}

impl Iterator for Symbols<'_> {
    type Item = Result<u8, UnknownCode>;

    fn next(&mut self) -> Option<Self::Item> {
        self.fill();
        // The padding is shorter than a byte.
        if self.bits < u8::BITS && self.window == u64::MAX {
            return None;
        }
        let Some((symbol, bits)) = self.symbol().filter(|(_, bits)| *bits <= self.bits) else {
            *self = Self::new(&[]);
            return Some(Err(UnknownCode));
        };
        self.window = self.window << bits | ((1 << bits) - 1);
        self.bits -= bits;
        Some(Ok(symbol))
    }
}

/// Returns true if `string` has seven consecutive bits set, as every code of ten bits and more
/// begins.
///
/// It examines seven bytes at a time; each step begins with the last byte of the one before.
pub(super) fn may_have_long_codes(string: &[u8]) -> bool {
    let mut rest = string;
    while let Some(bytes) = rest.first_chunk() {
        if has_seven_ones(u64::from_be_bytes(*bytes)) {
            return true;
        }
        rest = rest.get(7..).unwrap_or_default();
    }
    let bits = rest
        .iter()
        .fold(0, |bits, byte| bits << 8 | u64::from(*byte));
    // At least three bits of the code follow the seven, so the last three of a string are no part
    // of them.
    has_seven_ones(bits & !7)
}

const fn has_seven_ones(bits: u64) -> bool {
    let two = bits & bits >> 1;
    let four = two & two >> 2;
    four & four >> 3 != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The code of a symbol.
    fn encode(symbol: u8) -> (u64, u32) {
        let found = CODES.iter().find_map(|codes| {
            let index = codes.symbols.iter().position(|known| *known == symbol)?;
            Some((codes.first + index as u64, codes.bits))
        });
        found.unwrap()
    }

    fn encoded(text: &[u8]) -> Vec<u8> {
        let mut bits = Vec::new();
        for symbol in text {
            let (code, length) = encode(*symbol);
            bits.extend((0..length).rev().map(|bit| code >> bit & 1 == 1));
        }
        bits.resize(bits.len().next_multiple_of(8), true);
        let byte = |bits: &[bool]| bits.iter().fold(0, |sum, bit| sum << 1 | u8::from(*bit));
        bits.chunks(8).map(byte).collect()
    }

    fn decoded(string: &[u8]) -> Result<Vec<u8>, UnknownCode> {
        Symbols::new(string).collect()
    }

    #[test]
    fn the_examples_of_the_standard_are_decoded() {
        // [RFC 7541 §C.4, §C.6]
        for (string, text) in [
            (
                &b"\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff"[..],
                "www.example.com",
            ),
            (b"\xa8\xeb\x10\x64\x9c\xbf", "no-cache"),
            (b"\x25\xa8\x49\xe9\x5b\xb8\xe8\xb4\xbf", "custom-value"),
            (
                b"\xd0\x7a\xbe\x94\x10\x54\xd4\x44\xa8\x20\x05\x95\x04\x0b\x81\x66\xe0\x82\xa6\
                \x2d\x1b\xff",
                "Mon, 21 Oct 2013 20:13:21 GMT",
            ),
            (
                b"\x9d\x29\xad\x17\x18\x63\xc7\x8f\x0b\x97\xc8\xe9\xae\x82\xae\x43\xd3",
                "https://www.example.com",
            ),
        ] {
            assert_eq!(decoded(string), Ok(text.into()));
        }
        assert_eq!(decoded(b""), Ok(Vec::new()));
    }

    #[test]
    fn every_code_follows_the_one_before_it() {
        let mut next = (0, 5);
        for codes in &CODES {
            let (code, bits) = next;
            assert_eq!(
                codes.first,
                code << (codes.bits - bits),
                "{} bits",
                codes.bits
            );
            next = (codes.first + codes.symbols.len() as u64, codes.bits);
        }
        let mut all: Vec<u8> = (b'!'..=b'~').collect();
        assert_eq!(decoded(&encoded(&all)), Ok(all.clone()));
        all.reverse();
        assert_eq!(decoded(&encoded(&all)), Ok(all));
    }

    #[test]
    fn other_codes_and_wrong_padding_are_unknown() {
        for string in [
            &b"\xff\xff\xff\xff"[..],
            // A byte of padding.
            b"\xff",
            b"\xf8\xff",
            // Padding of zeros: a code that is not whole.
            b"\xf9\x00\xf0",
            // A code of 20 bits.
            b"\xff\xfe\x6f",
        ] {
            assert_eq!(decoded(string), Err(UnknownCode), "{string:x?}");
        }
    }

    #[test]
    fn a_string_with_a_long_code_is_found_at_any_position() {
        for symbol in b"\"<>`#" {
            for before in 0..24 {
                for after in 0..24 {
                    let text = [&vec![b'0'; before][..], &[*symbol], &vec![b'o'; after]].concat();
                    assert!(
                        may_have_long_codes(&encoded(&text)),
                        "{}",
                        text.escape_ascii()
                    );
                }
            }
        }
        for text in [
            "",
            "/",
            "/index.html",
            "/assets/app-1f3e.js",
            "/a/b/c/d/e/f/g/h/0123456789",
        ] {
            assert!(!may_have_long_codes(&encoded(text.as_bytes())), "{text}");
        }
    }
}
