//! Archives that an attacker made. Each is refused with its reason, in bounded memory and time.
#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test may stop"
)]

use control_bundle::{
    BundleError, Files, MAX_ARCHIVE_BYTES, MAX_FILES, MAX_UNPACKED_BYTES, NameError, Requirements,
    pack, unpack,
};
use serde_json::{Value, json};
use tar::{Builder, EntryType, Header};

const MANIFEST: &str = "manifest.json";
const ENTRY: &str = "files/proxy.kdl";
/// SHA-256 of no bytes.
const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// An entry as a hostile program would write it: any name, any kind, any size.
struct Entry<'a> {
    name: &'a [u8],
    kind: EntryType,
    bytes: &'a [u8],
    size: u64,
}

fn file<'a>(name: &'a str, bytes: &'a [u8]) -> Entry<'a> {
    Entry {
        name: name.as_bytes(),
        kind: EntryType::Regular,
        bytes,
        size: bytes.len() as u64,
    }
}

fn archive_with_entry(kind: EntryType) -> Vec<u8> {
    let link = Entry {
        kind,
        ..file("files/link", b"")
    };
    archive(&[link])
}

fn named(name: &[u8]) -> Vec<u8> {
    archive(&[Entry {
        name,
        ..file("", b"")
    }])
}

fn tar_of(entries: &[Entry<'_>]) -> Vec<u8> {
    let mut tar = Builder::new(Vec::new());
    for entry in entries {
        let mut header = Header::new_ustar();
        let length = entry.name.len().min(100);
        header.as_mut_bytes()[..length].copy_from_slice(&entry.name[..length]);
        header.set_entry_type(entry.kind);
        header.set_size(entry.size);
        header.set_cksum();
        tar.append(&header, entry.bytes).unwrap();
    }
    tar.into_inner().unwrap()
}

fn compress(tar: &[u8]) -> Vec<u8> {
    zstd::encode_all(tar, 3).unwrap()
}

fn archive(entries: &[Entry<'_>]) -> Vec<u8> {
    compress(&tar_of(entries))
}

fn manifest(files: &Value) -> String {
    let manifest = json!({
        "format": 1, "schema_version": 1, "least_proxy_version": "0.1.0", "files": files,
    });
    manifest.to_string()
}

fn listed(name: &str) -> Value {
    json!({"name": name, "size_bytes": 0, "sha256": EMPTY})
}

fn refused(name: &str, reason: NameError) -> BundleError {
    let name = name.to_owned();
    BundleError::Name { name, reason }
}

fn assert_refused(archive: &[u8], expected: &BundleError, case: &str) {
    assert_eq!(unpack(archive).as_ref(), Err(expected), "{case}");
}

#[test]
fn decompression_bombs_are_refused() {
    let zeros = vec![0; 100 * 1024 * 1024];
    let by_ratio = compress(&zeros);
    assert!(by_ratio.len() < 16 * 1024);
    assert_refused(&by_ratio, &BundleError::Ratio, "100 MB of zeros");
    // Frames one after the other, each of a modest ratio.
    let noise: Vec<u8> = noise().take(4 * 1024 * 1024).collect();
    let frame = compress(&[noise.as_slice(), &zeros[..16 * 1024 * 1024]].concat());
    let frames = frame.repeat(3);
    assert!(frames.len() < MAX_ARCHIVE_BYTES);
    assert!(frames.len() * 250 > MAX_UNPACKED_BYTES);
    assert!(3 * (noise.len() + 16 * 1024 * 1024) < MAX_UNPACKED_BYTES);
    assert_refused(&frames, &BundleError::Damaged, "noise is not a tar");
    let frame = compress(&[&noise[..1024 * 1024], &zeros[..32 * 1024 * 1024]].concat());
    let case = "99 MB in three frames";
    assert_refused(&frame.repeat(3), &BundleError::TooLarge, case);
}

#[test]
fn an_archive_of_100_mb_is_not_read() {
    let archive = vec![0; 100 * 1024 * 1024];
    assert_refused(&archive, &BundleError::ArchiveTooLarge, "100 MB");
}

#[test]
fn a_header_that_promises_100_mb_reserves_nothing() {
    let entry = Entry {
        size: 100 * 1024 * 1024,
        ..file("files/a", b"short")
    };
    let error = BundleError::FileTooLarge("files/a".to_owned());
    assert_refused(&archive(&[entry]), &error, "promised");
    let entry = Entry {
        size: 8 * 1024 * 1024,
        ..file("files/a", b"short")
    };
    assert_refused(&archive(&[entry]), &BundleError::Damaged, "cut off");
}

#[test]
fn names_stay_in_their_folder() {
    let deep = "a/".repeat(40) + "a";
    let long = "a/".repeat(49) + "a";
    let cases: [(&[u8], BundleError); 11] = [
        (b"../etc/passwd", refused("../etc/passwd", NameError::Dots)),
        (b"files/../../a", refused("files/../../a", NameError::Dots)),
        (b"files/./a", refused("files/./a", NameError::Dots)),
        (b"files//a", refused("files//a", NameError::Dots)),
        (b"files/", refused("files/", NameError::Dots)),
        (b"/etc/passwd", refused("/etc/passwd", NameError::Absolute)),
        (b"files\\a", refused("files\\a", NameError::Character)),
        (b"files/a\nb", refused("files/a?b", NameError::Character)),
        (b"files/\xff", refused("", NameError::Character)),
        (deep.as_bytes(), refused(&deep[..80], NameError::TooDeep)),
        (long.as_bytes(), refused(&long[..80], NameError::TooDeep)),
    ];
    for (name, error) in cases {
        let case = String::from_utf8_lossy(name).into_owned();
        assert_refused(&named(name), &error, &case);
    }
}

#[test]
fn a_name_of_10_000_levels_is_refused() {
    let path = "a/".repeat(10_000) + "a";
    let files: Files = [
        ("proxy.kdl".to_owned(), Vec::new()),
        (path.clone(), Vec::new()),
    ]
    .into();
    let error = refused(&path[..80], NameError::TooLong);
    let requirements = Requirements {
        schema_version: 1,
        least_proxy_version: "0.1.0".to_owned(),
    };
    assert_eq!(pack(&files, &requirements), Err(error));
    // The only way to write it is an extension, and those are not read.
    let long_name = Entry {
        kind: EntryType::GNULongName,
        ..file("././@LongLink", path.as_bytes())
    };
    let error = BundleError::NotAFile("././@LongLink".to_owned());
    assert_refused(&archive(&[long_name, file("a", b"")]), &error, "GNU");
    let record = format!("20020 path={path}\n");
    let extension = Entry {
        kind: EntryType::XHeader,
        ..file("pax", record.as_bytes())
    };
    let error = BundleError::NotAFile("pax".to_owned());
    assert_refused(&archive(&[extension, file("a", b"")]), &error, "pax");
}

#[test]
fn only_regular_files_are_unpacked() {
    for kind in [
        EntryType::Symlink,
        EntryType::Link,
        EntryType::Char,
        EntryType::Block,
        EntryType::Fifo,
        EntryType::Directory,
        EntryType::Continuous,
        EntryType::GNUSparse,
        EntryType::GNULongLink,
        EntryType::XGlobalHeader,
        EntryType::new(b'Q'),
    ] {
        let error = BundleError::NotAFile("files/link".to_owned());
        assert_refused(&archive_with_entry(kind), &error, &format!("{kind:?}"));
    }
}

#[test]
fn a_repeated_name_is_refused() {
    let twice = archive(&[file("files/a", b"1"), file("files/a", b"2")]);
    let error = BundleError::Duplicate("files/a".to_owned());
    assert_refused(&twice, &error, "the same name");
    let folder = archive(&[file("files/a", b"1"), file("files/a/b", b"2")]);
    assert_refused(&folder, &error, "a file as a folder");
}

#[test]
fn the_number_of_files_is_bounded() {
    let names: Vec<String> = (0..MAX_FILES + 3).map(|n| format!("files/{n}")).collect();
    let entries: Vec<Entry<'_>> = names.iter().map(|name| file(name, b"")).collect();
    assert_refused(&archive(&entries), &BundleError::TooManyFiles, "many");
}

#[test]
fn the_manifest_decides_on_the_contents() {
    let (bad, own) = (BundleError::BadManifest, listed(ENTRY));
    let deep = "[".repeat(10_000);
    let doubled = manifest(&json!([own, own]));
    let extra = manifest(&json!([])).replace("\"format\"", "\"more\":1,\"format\"");
    let newer = manifest(&json!([])).replace("\"format\":1", "\"format\":2");
    let wrong = json!([{"name": ENTRY, "size_bytes": 0, "sha256": "00"}]);
    let longer = json!([{"name": ENTRY, "size_bytes": 1, "sha256": EMPTY}]);
    let absent = json!([own, listed("files/z")]);
    let at = |name: &str| name.to_owned();
    let cases = [
        (String::new(), bad.clone()),
        (deep, bad.clone()),
        (doubled, bad.clone()),
        (extra, bad.clone()),
        (newer, BundleError::Format(2)),
        (manifest(&json!([])), BundleError::Unlisted(at(ENTRY))),
        (manifest(&wrong), BundleError::HashMismatch(at(ENTRY))),
        (manifest(&longer), BundleError::HashMismatch(at(ENTRY))),
        (manifest(&absent), BundleError::Missing(at("files/z"))),
        (
            manifest(&json!([own])),
            BundleError::Missing(at("sbom.cdx.json")),
        ),
    ];
    for (text, error) in cases {
        let archive = archive(&[file(ENTRY, b""), file(MANIFEST, text.as_bytes())]);
        let shown: String = text.chars().take(200).collect();
        assert_refused(&archive, &error, &shown);
    }
    let without = archive(&[file(ENTRY, b"")]);
    assert_refused(&without, &bad, "no manifest");
}

#[test]
fn an_invalid_archive_is_refused() {
    let good = valid();
    let tar = zstd::decode_all(good.as_slice()).unwrap();
    let cut = &good[..good.len() / 2];
    let after = compress(&[tar.as_slice(), b"hidden"].concat());
    for (archive, case) in [
        (Vec::new(), "nothing"),
        (b"PK\x03\x04".to_vec(), "a zip"),
        (cut.to_vec(), "cut off"),
        (after, "bytes behind the end"),
    ] {
        assert!(unpack(&archive).is_err(), "{case}");
    }
    // The decoder must reserve 128 MiB of window before the first byte.
    let mut wide = zstd::Encoder::new(Vec::new(), 3).unwrap();
    wide.window_log(27).unwrap();
    std::io::copy(&mut tar.as_slice(), &mut wide).unwrap();
    assert_refused(&wide.finish().unwrap(), &BundleError::Damaged, "a window");
}

/// Every single change of an archive is noticed, and none stops the program.
#[test]
fn a_changed_archive_is_never_taken_for_the_same() {
    let tar = zstd::decode_all(valid().as_slice()).unwrap();
    let expected = unpack(&compress(&tar)).unwrap();
    let mut noise = noise();
    for round in 0..3_000 {
        let mut changed = tar.clone();
        for _ in 0..=round % 4 {
            let place = noise
                .by_ref()
                .take(4)
                .fold(0, |sum, byte| sum * 256 + usize::from(byte))
                % changed.len();
            changed[place] = noise.next().unwrap();
        }
        if let Ok(contents) = unpack(&compress(&changed)) {
            // Padding and the times of headers carry no meaning.
            assert_eq!(contents.files, expected.files, "round {round}");
        }
    }
}

fn valid() -> Vec<u8> {
    let files: Files = [
        ("proxy.kdl".to_owned(), b"listeners {}\n".to_vec()),
        ("routes/a.kdl".to_owned(), b"routes {}\n".to_vec()),
    ]
    .into();
    let requirements = Requirements {
        schema_version: 1,
        least_proxy_version: "0.1.0".to_owned(),
    };
    pack(&files, &requirements).unwrap()
}

/// Bytes that do not compress, the same on every run.
fn noise() -> impl Iterator<Item = u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    std::iter::from_fn(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        Some(state.to_le_bytes()[3])
    })
}
