//! Parsing and display of sizes with units.

use std::fmt;

const UNITS: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1_000),
    ("B", 1),
];

/// The reason why text is not a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SizeError {
    NoNumber,
    NoUnit,
    UnknownUnit,
    /// The number has a fraction; the size in bytes, if it is whole.
    Fraction(Option<u64>),
    TooLarge,
}

/// Parses a whole number with a unit into bytes: `500MB` is 500 × 10^6, `500MiB` is 500 × 2^20.
/// Case is ignored; a space may precede the unit.
pub(crate) fn parse(text: &str) -> Result<u64, SizeError> {
    let text = text.trim();
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    if number.is_empty() {
        return Err(SizeError::NoNumber);
    }
    if let Some((fraction, unit)) = fraction(unit) {
        let exact = unit.and_then(|factor| exact_bytes(number, fraction, factor));
        return Err(SizeError::Fraction(exact));
    }
    let unit = unit.trim_start();
    if unit.is_empty() {
        return Err(SizeError::NoUnit);
    }
    let factor = unit_bytes(unit).ok_or(SizeError::UnknownUnit)?;
    let number: u64 = number.parse().map_err(|_| SizeError::TooLarge)?;
    number.checked_mul(factor).ok_or(SizeError::TooLarge)
}

/// The bytes of a unit, regardless of case.
fn unit_bytes(unit: &str) -> Option<u64> {
    let known = UNITS
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(unit));
    known.map(|(_, bytes)| *bytes)
}

/// The digits after the point that `rest` begins with, and the bytes of the unit after them.
fn fraction(rest: &str) -> Option<(&str, Option<u64>)> {
    let rest = rest.strip_prefix('.')?;
    let unit = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = rest.strip_suffix(unit)?;
    (!digits.is_empty()).then(|| (digits, unit_bytes(unit.trim_start())))
}

/// The bytes of `whole.fraction` units of `factor` bytes; `None` if that is not a whole number.
fn exact_bytes(whole: &str, fraction: &str, factor: u64) -> Option<u64> {
    let scale = 10_u64.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let part = fraction.parse::<u64>().ok()?.checked_mul(factor)?;
    let whole = whole.parse::<u64>().ok()?.checked_mul(factor)?;
    let is_whole = part.is_multiple_of(scale);
    is_whole.then(|| whole.checked_add(part / scale)).flatten()
}

/// A number of bytes in the largest unit that shows it exactly.
pub fn show_size(bytes: u64) -> String {
    let exact = UNITS
        .iter()
        .find(|(_, factor)| bytes >= *factor && bytes.is_multiple_of(*factor));
    match exact {
        Some((unit, factor)) if *factor > 1 => format!("{}{unit}", bytes / factor),
        _ => bytes.to_string(),
    }
}

impl fmt::Display for SizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fraction(Some(bytes)) => {
                return write!(f, "whole numbers only; write `{}`", show_size(*bytes));
            }
            Self::Fraction(None) => "whole numbers only, of a smaller unit",
            Self::NoNumber => "it does not begin with a whole number",
            Self::NoUnit => "there is no unit; write the bytes as a number, without quotes",
            Self::UnknownUnit => "the unit is none of B, KB, MB, GB, TB, KiB, MiB, GiB, TiB",
            Self::TooLarge => "it is too large",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_units_are_powers_of_ten_and_binary_units_powers_of_two() {
        assert_eq!(parse("500MB"), Ok(500_000_000));
        assert_eq!(parse("500MiB"), Ok(524_288_000));
        assert_eq!(parse("1 kib"), Ok(1024));
        assert_eq!(parse("0B"), Ok(0));
    }

    #[test]
    fn an_invalid_size_has_a_reason() {
        assert_eq!(parse("MB"), Err(SizeError::NoNumber));
        assert_eq!(parse("500"), Err(SizeError::NoUnit));
        assert_eq!(parse("5 bananas"), Err(SizeError::UnknownUnit));
        assert_eq!(parse("99999999TiB"), Err(SizeError::TooLarge));
        assert_eq!(parse(""), Err(SizeError::NoNumber));
    }

    #[test]
    fn a_size_with_a_fraction_names_the_whole_one() {
        for (text, reason) in [
            ("1.5GB", "whole numbers only; write `1500MB`"),
            ("1.5 GiB", "whole numbers only; write `1536MiB`"),
            ("0.5kb", "whole numbers only; write `500`"),
            ("0.0001B", "whole numbers only, of a smaller unit"),
            ("1.5 bananas", "whole numbers only, of a smaller unit"),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), reason, "{text}");
        }
    }

    #[test]
    fn a_size_is_shown_in_its_largest_exact_unit() {
        assert_eq!(show_size(1_048_576), "1MiB");
        assert_eq!(show_size(2_000_000), "2MB");
        assert_eq!(show_size(8_191), "8191");
        assert_eq!(show_size(0), "0");
    }
}
