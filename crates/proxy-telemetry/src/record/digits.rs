//! Decimal digits of numbers; small numbers are converted as the bytes of a word.

use super::short::ShortText;
use std::time::Duration;

const ZEROS: u64 = u64::from_le_bytes(*b"000\0\0\0\0\0");
const POINT: u64 = b'.' as u64;

#[inline]
pub(crate) fn push(out: &mut Vec<u8>, number: u64) {
    if number < 1000 {
        few(number).push(out);
    } else {
        push_many(out, number);
    }
}

/// Appends a time in milliseconds with three decimals.
#[inline]
pub(crate) fn push_millis(out: &mut Vec<u8>, time: Duration) {
    let micros = u64::from(time.subsec_micros());
    let millis = micros / 1000;
    let decimals = three(micros - 1000 * millis) << 8 | POINT;
    if time.as_secs() == 0 {
        let whole = few(millis);
        ShortText {
            word: whole.word | decimals << (8 * whole.count),
            count: whole.count + 4,
        }
        .push(out);
    } else {
        push_many(out, u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        let (word, count) = (decimals, 4);
        ShortText { word, count }.push(out);
    }
}

/// The three digits of a number below 1000.
///
/// 41/4096 is slightly more than a hundredth and 103/1024 slightly more than a tenth: for numbers
/// below 1000 the whole part of the product is the quotient.
#[inline]
pub(crate) fn three(number: u64) -> u64 {
    let hundreds = (number * 41) >> 12;
    let rest = number - 100 * hundreds;
    let tens = (rest * 103) >> 10;
    let ones = rest - 10 * tens;
    (hundreds | tens << 8 | ones << 16) + ZEROS
}

/// The digits of a number below 1000, without leading zeros.
#[inline]
fn few(number: u64) -> ShortText {
    let zeros = usize::from(number < 100) + usize::from(number < 10);
    ShortText {
        word: three(number) >> (8 * zeros),
        count: 3 - zeros,
    }
}

#[cold]
fn push_many(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pushed(push: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = b"before ".to_vec();
        push(&mut out);
        let text = String::from_utf8(out).unwrap();
        text.strip_prefix("before ").unwrap().to_owned()
    }

    #[test]
    fn numbers_are_written_like_format_does() {
        let large = (3..20).flat_map(|zeros| [10_u64.pow(zeros) - 1, 10_u64.pow(zeros)]);
        for number in (0..20_000).chain(large).chain([u64::MAX]) {
            assert_eq!(pushed(|out| push(out, number)), number.to_string());
        }
    }

    #[test]
    fn times_are_written_in_milliseconds_to_the_microsecond() {
        let micros = (0..3_000).chain((1_000..2_000_000).step_by(997));
        for micros in micros.chain([999_999, 1_000_000, 1_000_001, 86_400_000_000]) {
            let time = Duration::from_nanos(micros * 1000 + 999);
            let expected = format!("{}.{:03}", micros / 1000, micros % 1000);
            assert_eq!(pushed(|out| push_millis(out, time)), expected);
        }
        let longest = pushed(|out| push_millis(out, Duration::MAX));
        assert_eq!(longest, format!("{}.999", u64::MAX));
    }
}
