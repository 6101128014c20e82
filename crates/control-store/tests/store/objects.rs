//! Objects in a folder, and behind a real S3-compatible server.

use control_store::{ObjectError, Objects};
use control_testkit::ObjectServer;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

const LIMIT: usize = 1024 * 1024;

/// Each kind of store, and what it lies in for as long.
struct Stores {
    folder: TempDir,
    _server: ObjectServer,
    all: [(&'static str, Objects); 2],
}

fn stores() -> Stores {
    let folder = tempfile::tempdir().unwrap();
    let server = ObjectServer::start();
    server.create_bucket("archives");
    let url = format!(
        "s3://archives/some/place?endpoint={}&region=eu-west-1",
        server.url()
    );
    let by_url = Objects::by_url(&url, ObjectServer::variables().into_iter()).unwrap();
    let in_folder = Objects::in_folder(&folder.path().join("objects")).unwrap();
    Stores {
        folder,
        _server: server,
        all: [("folder", in_folder), ("S3", by_url)],
    }
}

#[tokio::test]
async fn what_is_put_is_found_again() {
    let stores = stores();
    for (kind, objects) in &stores.all {
        let bytes: Vec<u8> = (0..700_000_u32).map(|n| n.to_le_bytes()[0]).collect();
        objects
            .put("bundles/a/b.tar.zst", bytes.clone())
            .await
            .unwrap();
        let found = objects.get("bundles/a/b.tar.zst", LIMIT).await.unwrap();
        assert_eq!(found, bytes, "{kind}");
        let (size, _) = objects.stream("bundles/a/b.tar.zst").await.unwrap();
        assert_eq!(size, 700_000, "{kind}");
        objects.put("bundles/a/b.tar.zst", vec![1]).await.unwrap();
        let found = objects.get("bundles/a/b.tar.zst", LIMIT).await.unwrap();
        assert_eq!(found, [1], "{kind}: put again");
        let missing = objects.get("bundles/a/c", LIMIT).await;
        assert!(matches!(missing, Err(ObjectError::Missing)), "{kind}");
        objects.put("large", vec![0; LIMIT + 1]).await.unwrap();
        let large = objects.get("large", LIMIT).await;
        assert!(matches!(large, Err(ObjectError::TooLarge)), "{kind}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_is_whole_while_it_is_written_anew() {
    let stores = stores();
    for (kind, objects) in stores.all.clone() {
        objects.put("a", vec![0; 300_000]).await.unwrap();
        let writer = objects.clone();
        let writing = tokio::spawn(async move {
            for byte in 1..=20 {
                writer.put("a", vec![byte; 300_000]).await.unwrap();
            }
        });
        while !writing.is_finished() {
            let found = objects.get("a", LIMIT).await.unwrap();
            assert_eq!(found.len(), 300_000, "{kind}");
            let first = found[0];
            assert!(found.iter().all(|byte| *byte == first), "{kind}: torn");
        }
        writing.await.unwrap();
    }
    let left = files_below(stores.folder.path());
    assert_eq!(left, ["a"], "nothing of the writing is left");
}

#[tokio::test]
async fn names_stay_below_their_folder() {
    let stores = stores();
    let (_, objects) = &stores.all[0];
    objects.put("../../escaped", vec![1]).await.unwrap();
    assert!(!stores.folder.path().join("../escaped").exists());
    assert!(!stores.folder.path().join("escaped").exists());
}

#[tokio::test]
async fn a_store_that_is_away_is_told_in_time() {
    // Nothing listens on the port of a server that has ended.
    let server = ObjectServer::start();
    let url = format!("s3://archives?endpoint={}", server.url());
    let objects = Objects::by_url(&url, ObjectServer::variables().into_iter()).unwrap();
    let without = objects.get("a", LIMIT).await;
    assert!(without.is_err(), "there is no bucket");
    drop(server);
    let away = objects.put("a", vec![1]).await;
    assert!(matches!(away, Err(ObjectError::Failed(_))), "{away:?}");
}

#[test]
fn a_url_names_a_bucket_and_nothing_unknown() {
    for url in [
        "",
        "https://example.com/a",
        "s3://",
        "s3:///a",
        "s3://key:secret@bucket",
        "s3://bucket?color=red",
    ] {
        let refused = Objects::by_url(url, std::iter::empty());
        assert!(matches!(refused, Err(ObjectError::BadUrl(_))), "{url}");
    }
}

fn files_below(folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            names.extend(files_below(&path));
        } else {
            names.push(path.file_name().unwrap().to_string_lossy().into_owned());
        }
    }
    names
}
