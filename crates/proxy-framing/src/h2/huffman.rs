//! Decoding of Huffman-coded strings in header sections of HTTP/2 and HTTP/3. [RFC 7541 §5.2,
//! appendix B; RFC 9204 §4.1.2]

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

/// Sorted from the shortest codes to the longest. The code of the end of a string is omitted.
#[rustfmt::skip]
static CODES: [Codes; 21] = [
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
    codes(20, 0xfffe6, b"\x80\x82\x83\xa2\xb8\xc2\xe0\xe2"),
    codes(21, 0x001f_ffdc, b"\x99\xa1\xa7\xac\xb0\xb1\xb3\xd1\xd8\xd9\xe3\xe5\xe6"),
    codes(22, 0x003f_ffd2, b"\x81\x84\x85\x86\x88\x92\x9a\x9c\xa0\xa3\xa4\xa9\xaa\xad\xb2\xb5\xb9\xba\xbb\xbd\xbe\xc4\xc6\xe4\xe8\xe9"),
    codes(23, 0x007f_ffd8, b"\x01\x87\x89\x8a\x8b\x8c\x8d\x8f\x93\x95\x96\x97\x98\x9b\x9d\x9e\xa5\xa6\xa8\xae\xaf\xb4\xb6\xb7\xbc\xbf\xc5\xe7\xef"),
    codes(24, 0x00ff_ffea, b"\t\x8e\x90\x91\x94\x9f\xab\xce\xd7\xe1\xec\xed"),
    codes(25, 0x01ff_ffec, b"\xc7\xcf\xea\xeb"),
    codes(26, 0x03ff_ffe0, b"\xc0\xc1\xc8\xc9\xca\xcd\xd2\xd5\xda\xdb\xee\xf0\xf2\xf3\xff"),
    codes(27, 0x07ff_ffde, b"\xcb\xcc\xd3\xd4\xd6\xdd\xde\xdf\xf1\xf4\xf5\xf6\xf7\xf8\xfa\xfb\xfc\xfd\xfe"),
    codes(28, 0x0fff_ffe2, b"\x02\x03\x04\x05\x06\x07\x08\x0b\x0c\x0e\x0f\x10\x11\x12\x13\x14\x15\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f\x7f\xdc\xf9"),
    codes(30, 0x3fff_fffc, b"\n\r\x16"),
];

/// An unknown code, a string that ends within a code, or padding that is too long or of other bits
/// than ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid Huffman code")]
pub struct InvalidCode;

/// The symbols of a string, up to the first invalid code.
#[derive(Clone, Debug)]
pub struct Symbols<'s> {
    rest: &'s [u8],
    /// The next bits, from the highest on; ones after them, as in the padding of a string.
    window: u64,
    /// Number of bits in the window.
    bits: u32,
}

impl<'s> Symbols<'s> {
    /// The symbols of `string`.
    #[must_use]
    pub fn new(string: &'s [u8]) -> Self {
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
    type Item = Result<u8, InvalidCode>;

    fn next(&mut self) -> Option<Self::Item> {
        self.fill();
        // The padding is shorter than a byte.
        if self.bits < u8::BITS && self.window == u64::MAX {
            return None;
        }
        let Some((symbol, bits)) = self.symbol().filter(|(_, bits)| *bits <= self.bits) else {
            *self = Self::new(&[]);
            return Some(Err(InvalidCode));
        };
        self.window = self.window << bits | ((1 << bits) - 1);
        self.bits -= bits;
        Some(Ok(symbol))
    }
}

/// Returns true if `string` has seven consecutive bits set, as every code of ten bits and more
/// begins.
///
/// The function examines seven bytes at a time; each step begins with the last byte of the previous
/// one.
pub(crate) fn may_have_long_codes(string: &[u8]) -> bool {
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

    fn decoded(string: &[u8]) -> Result<Vec<u8>, InvalidCode> {
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
            (b"\x64\x02", "302"),
            (b"\x25\xa8\x49\xe9\x5b\xa9\x7d\x7f", "custom-key"),
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
        let mut all: Vec<u8> = (0..=255).collect();
        assert_eq!(decoded(&encoded(&all)), Ok(all.clone()));
        all.reverse();
        assert_eq!(decoded(&encoded(&all)), Ok(all));
    }

    #[test]
    fn every_symbol_has_a_code() {
        let mut symbols: Vec<u8> = CODES
            .iter()
            .flat_map(|codes| codes.symbols)
            .copied()
            .collect();
        symbols.sort_unstable();
        assert_eq!(symbols, (0..=255).collect::<Vec<u8>>());
    }

    #[test]
    fn unknown_codes_and_wrong_padding_are_invalid() {
        for string in [
            &b"\xff\xff\xff\xff"[..],
            // A byte of padding.
            b"\xff",
            b"\xf8\xff",
            // Padding of zeros: a code that is not whole.
            b"\xf9\x00\xf0",
            b"\x06",
            b"\x07\xff",
        ] {
            assert_eq!(decoded(string), Err(InvalidCode), "{string:x?}");
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
