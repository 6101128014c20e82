//! Static files embedded in the program. Their names contain a hash of the contents, so that
//! browsers can cache them without expiry.

use axum::body::Bytes;
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use control_auth::sha256_hex;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write as _;
use std::sync::LazyLock;

const INTER: &[u8] = include_bytes!("../../assets/inter.woff2");
const MONO: &[u8] = include_bytes!("../../assets/mono.woff2");
const ICON: &[u8] = include_bytes!("../../assets/icon.svg");
const SCRIPT: &[u8] = include_bytes!("../../assets/live.js");
const STYLE: &str = include_str!("../../assets/app.css");

/// Number of hexadecimal digits of the hash.
const HASH_DIGITS: usize = 16;

/// All files, prepared when the first page is shown.
pub(crate) static ASSETS: LazyLock<Assets> = LazyLock::new(Assets::new);

#[derive(Debug)]
pub(crate) struct Assets {
    pub(crate) style: Asset,
    pub(crate) script: Asset,
    pub(crate) icon: Asset,
    inter: Asset,
    mono: Asset,
}

#[derive(Debug)]
pub(crate) struct Asset {
    /// URL path, including the hash.
    pub(crate) path: String,
    kind: &'static str,
    bytes: Bytes,
    /// Contents compressed with gzip; `None` for fonts, which are compressed already.
    compressed: Option<Bytes>,
}

impl Assets {
    fn new() -> Self {
        let inter = Asset::new("inter", "woff2", INTER);
        let mono = Asset::new("mono", "woff2", MONO);
        let style = STYLE
            .replace("inter.woff2", &inter.path)
            .replace("mono.woff2", &mono.path);
        Self {
            style: Asset::new("app", "css", style.as_bytes()),
            script: Asset::new("live", "js", SCRIPT),
            icon: Asset::new("icon", "svg", ICON),
            inter,
            mono,
        }
    }

    fn find(&self, path: &str) -> Option<&Asset> {
        let Self {
            style,
            script,
            icon,
            inter,
            mono,
        } = self;
        let all = [style, script, icon, inter, mono];
        all.into_iter().find(|asset| asset.path == path)
    }
}

impl Asset {
    fn new(name: &str, extension: &str, bytes: &[u8]) -> Self {
        let hash: String = sha256_hex(bytes).chars().take(HASH_DIGITS).collect();
        let (kind, is_text) = match extension {
            "css" => ("text/css; charset=utf-8", true),
            "js" => ("text/javascript; charset=utf-8", true),
            "svg" => ("image/svg+xml", true),
            _ => ("font/woff2", false),
        };
        Self {
            path: format!("/assets/{name}-{hash}.{extension}"),
            kind,
            bytes: Bytes::copy_from_slice(bytes),
            compressed: if is_text { gzip(bytes) } else { None },
        }
    }
}

fn gzip(bytes: &[u8]) -> Option<Bytes> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).ok()?;
    encoder.finish().ok().map(Bytes::from)
}

/// Serves a file.
pub(crate) async fn serve(Path(name): Path<String>, headers: HeaderMap) -> Response {
    let Some(asset) = ASSETS.find(&format!("/assets/{name}")) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let fields: [(HeaderName, &'static str); 3] = [
        (header::CONTENT_TYPE, asset.kind),
        (header::CACHE_CONTROL, "public, max-age=31536000, immutable"),
        (header::VARY, "accept-encoding"),
    ];
    let accepted = headers.get(header::ACCEPT_ENCODING);
    let accepts = accepted.is_some_and(accepts_gzip);
    match asset.compressed.as_ref().filter(|_| accepts) {
        Some(compressed) => {
            let coding = [(header::CONTENT_ENCODING, "gzip")];
            (fields, coding, compressed.clone()).into_response()
        }
        None => (fields, asset.bytes.clone()).into_response(),
    }
}

/// Returns true if `Accept-Encoding` permits gzip.
fn accepts_gzip(value: &HeaderValue) -> bool {
    let codings = value.to_str().unwrap_or_default().split(',');
    codings.map(str::trim).any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        name.trim().eq_ignore_ascii_case("gzip") && !matches!(weight.trim(), "q=0" | "q=0.0")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_style_names_fonts_by_their_hashes() {
        let style = std::str::from_utf8(&ASSETS.style.bytes).unwrap();
        assert!(style.contains(&ASSETS.inter.path), "{}", ASSETS.inter.path);
        assert!(style.contains(&ASSETS.mono.path));
        assert!(!style.contains("\"inter.woff2\""));
    }

    #[test]
    fn a_compressed_file_is_smaller_and_only_for_those_that_take_it() {
        let style = &ASSETS.style;
        assert!(style.compressed.as_ref().unwrap().len() < style.bytes.len() / 3);
        assert!(ASSETS.inter.compressed.is_none());
        for (value, accepts) in [
            ("gzip, deflate, br", true),
            ("br;q=1, GZIP;q=0.5", true),
            ("gzip;q=0", false),
            ("br", false),
        ] {
            assert_eq!(accepts_gzip(&HeaderValue::from_static(value)), accepts);
        }
    }
}
