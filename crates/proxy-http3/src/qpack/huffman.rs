//! Decoding of Huffman-coded strings. [RFC 7541 §5.2, appendix B; RFC 9204 §4.1.2]

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

/// In ascending order of length. The code of EOS is missing: a string that contains it is invalid.
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

/// Reason why a string is not decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HuffmanError {
    /// An unknown code, padding of a byte or more, or padding other than ones.
    Invalid,
    /// More bytes than the maximum; the first ones were appended.
    TooLong,
}

/// Appends the decoded `string` to `out`, which grows to at most `max_len` bytes.
pub(super) fn decode(string: &[u8], out: &mut Vec<u8>, max_len: usize) -> Result<(), HuffmanError> {
    let mut rest = string;
    // The next bits, from the highest on; ones after them, as in the padding.
    let mut window = u64::MAX;
    let mut bits = 0;
    loop {
        while bits <= u64::BITS - u8::BITS
            && let Some((byte, after)) = rest.split_first()
        {
            bits += u8::BITS;
            window &= !(u64::from(!byte) << (u64::BITS - bits));
            rest = after;
        }
        if bits < u8::BITS && window == u64::MAX {
            return Ok(());
        }
        let (symbol, used) = symbol(window)
            .filter(|(_, used)| *used <= bits)
            .ok_or(HuffmanError::Invalid)?;
        if out.len() >= max_len {
            return Err(HuffmanError::TooLong);
        }
        out.push(symbol);
        window = window << used | ((1 << used) - 1);
        bits -= used;
    }
}

/// The first symbol in `window`, and the length of its code.
fn symbol(window: u64) -> Option<(u8, u32)> {
    CODES.iter().find_map(|codes| {
        let code = window >> (u64::BITS - codes.bits);
        let index = usize::try_from(code.checked_sub(codes.first)?).ok()?;
        Some((*codes.symbols.get(index)?, codes.bits))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(string: &[u8]) -> Result<String, HuffmanError> {
        let mut out = Vec::new();
        decode(string, &mut out, usize::MAX)?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn the_examples_of_the_standard_are_decoded() {
        for (string, text) in [
            (
                &[
                    0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff,
                ][..],
                "www.example.com",
            ),
            (&[0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf], "no-cache"),
            (
                &[0x25, 0xa8, 0x49, 0xe9, 0x5b, 0xa9, 0x7d, 0x7f],
                "custom-key",
            ),
            (&[0x64, 0x02], "302"),
            (&[], ""),
        ] {
            assert_eq!(decoded(string).as_deref(), Ok(text));
        }
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
    fn padding_is_shorter_than_a_byte_and_of_ones() {
        // "0", then the padding.
        assert_eq!(decoded(&[0b0000_0111]).as_deref(), Ok("0"));
        assert_eq!(decoded(&[0b0000_0110]), Err(HuffmanError::Invalid));
        assert_eq!(decoded(&[0b0000_0111, 0xff]), Err(HuffmanError::Invalid));
        assert_eq!(decoded(&[0xff]), Err(HuffmanError::Invalid));
        assert_eq!(
            decoded(&[0xff, 0xff, 0xff, 0xff]),
            Err(HuffmanError::Invalid)
        );
    }

    #[test]
    fn a_string_above_the_maximum_is_refused() {
        let mut out = Vec::new();
        let decoded = decode(&[0x64, 0x02], &mut out, 2);
        assert_eq!(decoded, Err(HuffmanError::TooLong));
        assert_eq!(out, b"30");
    }
}
