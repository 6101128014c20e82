//! The memory that encoders hold.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

use proxy_coding::{Coding, CompressionLevels, Encoder};
use std::fs;

const LEVELS: CompressionLevels = CompressionLevels {
    gzip: 9,
    brotli: 6,
    zstd: 9,
};
const ENCODERS: u64 = 24;

fn resident_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    1024 * number.unwrap().parse::<u64>().unwrap()
}

#[test]
fn an_encoder_at_its_highest_level_stays_within_its_bound() {
    let mut seed: u32 = 1;
    let body: Vec<u8> = std::iter::from_fn(|| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        u8::try_from(seed >> 26).ok()
    })
    .take(1 << 20)
    .collect();
    // Kept to the end, or one coding would take memory that another has left.
    let mut all: Vec<Vec<Encoder>> = Vec::new();
    for coding in [Coding::Brotli, Coding::Zstd, Coding::Gzip] {
        let before = resident_bytes();
        let encoders: Vec<Encoder> = (0..ENCODERS)
            .map(|_| {
                let mut encoder = Encoder::new(coding, LEVELS).unwrap();
                drop(encoder.push(&body).unwrap());
                encoder
            })
            .collect();
        let each = resident_bytes().saturating_sub(before) / ENCODERS;
        all.push(encoders);
        let most = Encoder::max_bytes(coding);
        assert!(each < most, "{coding:?}: {each} bytes");
        assert!(each > 50_000, "{coding:?}: {each} bytes");
    }
}
