//! A model of HPACK, for a few characters. [RFC 7541]

use std::collections::VecDeque;

/// Codes of the characters used here, with their lengths. [RFC 7541 appendix B]
const CODES: [(u8, u32, u32); 11] = [
    (b'/', 0x18, 6),
    (b'a', 0x3, 5),
    (b'z', 0x7b, 7),
    (b'?', 0x3fc, 10),
    (b'=', 0x20, 6),
    (b'"', 0x3f9, 10),
    (b'<', 0x7ffc, 15),
    (b'>', 0xffb, 12),
    (b'`', 0x7ffd, 15),
    (b'~', 0x1ffd, 13),
    (b'#', 0xffa, 12),
];

pub(crate) type Pair = (Vec<u8>, Vec<u8>);

/// The dynamic table of one side.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) entries: VecDeque<Pair>,
    max_bytes: usize,
}

impl Table {
    pub(crate) fn new() -> Self {
        Self {
            entries: VecDeque::new(),
            max_bytes: 4096,
        }
    }

    fn bytes(&self) -> usize {
        let sizes = self
            .entries
            .iter()
            .map(|(name, value)| name.len() + value.len() + 32);
        sizes.sum()
    }

    pub(crate) fn resize(&mut self, max_bytes: usize) {
        self.max_bytes = max_bytes;
        while max_bytes < self.bytes() {
            self.entries.pop_back();
        }
    }

    /// An entry larger than the table empties it.
    pub(crate) fn insert(&mut self, field: Pair) {
        self.entries.push_front(field);
        self.resize(self.max_bytes);
    }
}

pub(crate) fn integer(mut value: usize, prefix: u32, flags: u8, out: &mut Vec<u8>) {
    let most = (1 << prefix) - 1;
    if value < most {
        return out.push(flags | low_bits(value));
    }
    out.push(flags | low_bits(most));
    value -= most;
    while 0x7f < value {
        out.push(0x80 | low_bits(value));
        value >>= 7;
    }
    out.push(low_bits(value));
}

fn low_bits(value: usize) -> u8 {
    value.to_le_bytes()[0]
}

fn huffman(text: &[u8]) -> Vec<u8> {
    let mut bits = Vec::new();
    for byte in text {
        let (_, code, length) = CODES.iter().find(|(known, ..)| known == byte).unwrap();
        bits.extend((0..*length).rev().map(|bit| code >> bit & 1 == 1));
    }
    bits.resize(bits.len().next_multiple_of(8), true);
    let byte = |bits: &[bool]| bits.iter().fold(0, |sum, bit| sum << 1 | u8::from(*bit));
    bits.chunks(8).map(byte).collect()
}

pub(crate) fn string(text: &[u8], is_coded: bool, out: &mut Vec<u8>) {
    let coded = if is_coded {
        huffman(text)
    } else {
        text.to_vec()
    };
    integer(coded.len(), 7, u8::from(is_coded) << 7, out);
    out.extend(coded);
}

/// Reads header sections as the parser does.
pub(crate) struct Parser<'b> {
    pub(crate) rest: &'b [u8],
}

impl Parser<'_> {
    fn byte(&mut self) -> u8 {
        let (first, rest) = self.rest.split_first().unwrap();
        self.rest = rest;
        *first
    }

    pub(crate) fn integer(&mut self, prefix: u32) -> usize {
        let most = (1 << prefix) - 1;
        let mut value = usize::from(self.byte()) & most;
        if value < most {
            return value;
        }
        for shift in (0..).step_by(7) {
            let byte = self.byte();
            value += usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
        value
    }

    pub(crate) fn string(&mut self) -> Vec<u8> {
        let is_coded = self.rest[0] & 0x80 != 0;
        let length = self.integer(7);
        let (text, rest) = self.rest.split_at(length);
        self.rest = rest;
        if is_coded {
            decoded(text)
        } else {
            text.to_vec()
        }
    }

    pub(crate) fn fields(&mut self, table: &mut Table) -> Vec<Pair> {
        let mut fields = Vec::new();
        while let Some(first) = self.rest.first() {
            let (prefix, inserts) = match first {
                0x80.. => {
                    let index = self.integer(7);
                    fields.push(named(table, index));
                    continue;
                }
                0x40.. => (6, true),
                0x20.. => {
                    let bytes = self.integer(5);
                    table.resize(bytes);
                    continue;
                }
                _ => (4, false),
            };
            let name = match self.integer(prefix) {
                0 => self.string(),
                index => named(table, index).0,
            };
            let field = (name, self.string());
            if inserts {
                table.insert(field.clone());
            }
            fields.push(field);
        }
        fields
    }
}

pub(crate) fn named(table: &Table, index: usize) -> Pair {
    let (name, value) = match index {
        2 => (":method", "GET"),
        4 => (":path", "/"),
        6 => (":scheme", "http"),
        _ => return table.entries[index - 62].clone(),
    };
    (name.into(), value.into())
}

fn decoded(coded: &[u8]) -> Vec<u8> {
    let bits = coded
        .iter()
        .flat_map(|byte| (0..8).rev().map(move |bit| u32::from(byte >> bit & 1)));
    let (mut text, mut code, mut length) = (Vec::new(), 0, 0);
    for bit in bits {
        (code, length) = (code << 1 | bit, length + 1);
        if let Some((byte, ..)) = CODES
            .iter()
            .find(|(_, known, bits)| (*known, *bits) == (code, length))
        {
            text.push(*byte);
            (code, length) = (0, 0);
        }
    }
    text
}
