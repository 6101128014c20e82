//! Numbers. [KDL 2.0 §3.15]

use super::tree::Value;

/// Reads a number; `None` if `text` is not one.
pub(super) fn read(text: &str) -> Option<Value> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (radix, digits) = match digits.get(..2) {
        Some("0x") => (16, digits.get(2..)?),
        Some("0o") => (8, digits.get(2..)?),
        Some("0b") => (2, digits.get(2..)?),
        Some(_) | None => (10, digits),
    };
    let starts_well = digits.chars().next()?.is_digit(radix);
    if !starts_well {
        return None;
    }
    let plain: String = digits.chars().filter(|c| *c != '_').collect();
    if plain.chars().all(|c| c.is_digit(radix)) {
        let sign = if negative { "-" } else { "" };
        let number = i128::from_str_radix(&format!("{sign}{plain}"), radix);
        return number.ok().map(Value::Integer);
    }
    if radix != 10 || !is_decimal(digits) {
        return None;
    }
    let number = plain
        .parse::<f64>()
        .ok()
        .filter(|number| number.is_finite())?;
    Some(Value::Decimal(if negative { -number } else { number }))
}

/// Returns true if `text` is digits with a fraction, an exponent or both. `_` may follow a digit.
fn is_decimal(text: &str) -> bool {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => {
            let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            (mantissa, Some(exponent))
        }
        None => (text, None),
    };
    let mut parts = mantissa.splitn(2, '.').chain(exponent);
    parts.all(|part| {
        part.starts_with(|c: char| c.is_ascii_digit())
            && part.chars().all(|c| c.is_ascii_digit() || c == '_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_base_are_read() {
        let cases = [
            ("10", 10),
            ("-10", -10),
            ("+1_000", 1_000),
            ("0xFF", 255),
            ("-0x10", -16),
            ("0o17", 15),
            ("0b1010_1", 21),
            ("007", 7),
        ];
        for (text, number) in cases {
            assert_eq!(read(text), Some(Value::Integer(number)), "{text}");
        }
        assert_eq!(read("1.5e3"), Some(Value::Decimal(1_500.0)));
        assert_eq!(read("-0.5"), Some(Value::Decimal(-0.5)));
        assert_eq!(read("1E-2"), Some(Value::Decimal(0.01)));
    }

    #[test]
    fn text_similar_to_a_number_is_no_number() {
        for text in [
            "",
            "-",
            "+",
            "0x",
            "0xg",
            "_1",
            "1.",
            ".1",
            "1.e3",
            "1._0",
            "1e",
            "1ee1",
            "12abc",
            "1e999",
            "0x1.5",
            "340282366920938463463374607431768211456",
            "--1",
            "0b2",
            "1.2.3",
            "0x-1",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
