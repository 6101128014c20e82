//! Bodies that are compressed and decompressed again, within limits.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

use flate2::write::{GzEncoder, ZlibEncoder};
use http::HeaderMap;
use http::header::CONTENT_ENCODING;
use proxy_coding::{Coding, CompressionLevels, Decoder, DecodingError, DecodingLimits, Encoder};
use std::io::Write as _;

const ALL: [Coding; 3] = [Coding::Brotli, Coding::Zstd, Coding::Gzip];
const LEVELS: CompressionLevels = CompressionLevels {
    gzip: 5,
    brotli: 4,
    zstd: 3,
};
const WIDE: DecodingLimits = DecodingLimits {
    max_ratio: 10_000.0,
    max_bytes: 1 << 30,
};

fn headers(coding: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_ENCODING, coding.parse().unwrap());
    headers
}

fn compress(coding: Coding, body: &[u8]) -> Vec<u8> {
    let mut encoder = Encoder::new(coding, LEVELS).unwrap();
    let mut out = encoder.push(body).unwrap().to_vec();
    out.extend_from_slice(&encoder.finish().unwrap());
    out
}

fn decompress(name: &str, body: &[u8], limits: DecodingLimits) -> Result<Vec<u8>, DecodingError> {
    let mut decoder = Decoder::from_headers(&headers(name), limits)?.unwrap();
    let mut out = Vec::new();
    for piece in body.chunks(3_000) {
        decoder.push(piece, |content| out.extend_from_slice(content))?;
    }
    decoder.finish(|content| out.extend_from_slice(content))?;
    Ok(out)
}

/// Text that compresses well, but not extremely.
fn text(bytes: usize) -> Vec<u8> {
    let mut seed: u32 = 1;
    let words = std::iter::from_fn(|| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        Some(format!("{} ", seed >> 20))
    });
    words.flat_map(String::into_bytes).take(bytes).collect()
}

#[test]
fn every_coding_decodes_its_own_output() {
    for coding in ALL {
        for body in [Vec::new(), b"a".to_vec(), text(300_000)] {
            let small = compress(coding, &body);
            assert_eq!(decompress(coding.name(), &small, WIDE).unwrap(), body);
            assert!(body.len() < 1_000 || small.len() < body.len() / 2);
        }
    }
}

#[test]
fn a_flush_lets_a_receiver_read_all_that_was_pushed() {
    for coding in ALL {
        let mut encoder = Encoder::new(coding, LEVELS).unwrap();
        let mut decoder = Decoder::from_headers(&headers(coding.name()), WIDE)
            .unwrap()
            .unwrap();
        for piece in ["first", "second", "third"] {
            let mut sent = encoder.push(piece.as_bytes()).unwrap().to_vec();
            assert!(encoder.is_unflushed());
            sent.extend_from_slice(&encoder.flush().unwrap());
            assert!(!encoder.is_unflushed());
            let mut read = Vec::new();
            decoder
                .push(&sent, |content| read.extend_from_slice(content))
                .unwrap();
            assert_eq!(String::from_utf8(read).unwrap(), piece, "{coding:?}");
        }
    }
}

#[test]
fn a_body_of_the_largest_size_passes_and_one_byte_more_does_not() {
    let body = text(50_000);
    let limits = |max_bytes| DecodingLimits { max_bytes, ..WIDE };
    for coding in ALL {
        let small = compress(coding, &body);
        assert!(decompress(coding.name(), &small, limits(50_000)).is_ok());
        let refused = decompress(coding.name(), &small, limits(49_999));
        assert!(
            matches!(refused, Err(DecodingError::Size { limit: 49_999, current }) if current > 49_999),
            "{coding:?}: {refused:?}"
        );
    }
}

#[test]
fn a_decompression_bomb_is_found_while_it_is_small() {
    let limits = DecodingLimits {
        max_ratio: 100.0,
        ..WIDE
    };
    for coding in ALL {
        let bomb = compress(coding, &vec![0; 20 << 20]);
        let mut decoder = Decoder::from_headers(&headers(coding.name()), limits)
            .unwrap()
            .unwrap();
        let mut read = 0;
        let refused = decoder.push(&bomb, |content| read += content.len());
        assert!(
            matches!(refused, Err(DecodingError::Ratio { limit: 100, current }) if current > 100),
            "{coding:?}: {refused:?}"
        );
        assert!(
            read <= 100 * bomb.len(),
            "{coding:?}: {read} of {}",
            bomb.len()
        );
    }
}

#[test]
fn a_ratio_just_within_the_limit_passes() {
    let body = text(100_000);
    for coding in ALL {
        let small = compress(coding, &body);
        // The ratio may be larger in the middle, so the bound is found by trying.
        let passes = |max_ratio| {
            let limits = DecodingLimits { max_ratio, ..WIDE };
            decompress(coding.name(), &small, limits).is_ok()
        };
        assert!(passes(10.0) && !passes(1.5), "{coding:?}");
    }
}

#[test]
fn bodies_that_are_cut_or_garbled_are_malformed() {
    let body = text(20_000);
    for coding in ALL {
        let small = compress(coding, &body);
        let cut = decompress(coding.name(), &small[..small.len() - 1], WIDE);
        assert_eq!(cut, Err(DecodingError::Malformed), "{coding:?}");
        let garbled = decompress(coding.name(), b"this is no such thing at all", WIDE);
        assert_eq!(garbled, Err(DecodingError::Malformed), "{coding:?}");
    }
}

#[test]
fn several_codings_are_decoded_in_reverse_order() {
    let body = text(300_000);
    for first in ALL {
        for second in ALL {
            let twice = compress(second, &compress(first, &body));
            let names = format!("{}, {}", first.name(), second.name());
            assert_eq!(decompress(&names, &twice, WIDE).unwrap(), body, "{names}");
            let cut = decompress(&names, &twice[..twice.len() - 1], WIDE);
            assert_eq!(cut, Err(DecodingError::Malformed), "{names}");
            let swapped = compress(second, &body);
            let refused = decompress(&names, &swapped, WIDE);
            assert_eq!(refused, Err(DecodingError::Malformed), "{names}");
        }
    }
}

#[test]
fn a_decompression_bomb_in_several_codings_is_found_by_the_total_ratio() {
    // Each coding alone is below the ratio.
    let limits = DecodingLimits {
        max_ratio: 2_000.0,
        ..WIDE
    };
    let once = compress(Coding::Gzip, &vec![0; 20 << 20]);
    assert!(decompress("gzip", &once, limits).is_ok());
    let twice = compress(Coding::Gzip, &once);
    assert!(twice.len() < once.len() / 10);

    let mut decoder = Decoder::from_headers(&headers("gzip, gzip"), limits)
        .unwrap()
        .unwrap();
    let mut read = 0;
    let refused = decoder.push(&twice, |content| read += content.len());

    assert!(
        matches!(refused, Err(DecodingError::Ratio { limit: 2_000, .. })),
        "{refused:?}"
    );
    assert!(read <= 2_000 * twice.len(), "{read} of {}", twice.len());
}

#[test]
fn the_names_of_content_encoding_are_read() {
    let body = text(5_000);
    let mut zlib = ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    zlib.write_all(&body).unwrap();
    let zlib = zlib.finish().unwrap();
    assert_eq!(decompress("Deflate", &zlib, WIDE).unwrap(), body);
    let mut members = compress(Coding::Gzip, &body);
    let mut second = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    second.write_all(b"more").unwrap();
    members.extend_from_slice(&second.finish().unwrap());
    let both = decompress("identity, X-Gzip", &members, WIDE).unwrap();
    assert_eq!(both, [body, b"more".to_vec()].concat());
    for none in ["identity", "", " , "] {
        assert!(
            Decoder::from_headers(&headers(none), WIDE)
                .unwrap()
                .is_none()
        );
    }
    assert!(
        Decoder::from_headers(&HeaderMap::new(), WIDE)
            .unwrap()
            .is_none()
    );
    for unsupported in ["compress", "gzip, compress", "gzip, gzip, gzip, gzip"] {
        let refused = Decoder::from_headers(&headers(unsupported), WIDE).unwrap_err();
        assert_eq!(refused, DecodingError::Unsupported, "{unsupported}");
    }
}
