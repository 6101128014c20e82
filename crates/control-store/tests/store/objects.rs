//! Objects in a folder, and in a real S3-compatible server.

use control_store::{ObjectError, Objects};
use control_testkit::ObjectServer;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::thread;
use std::time::Duration;
use tempfile::TempDir;
use tokio::time::timeout;

const LIMIT: usize = 1024 * 1024;

/// One store of each kind, and its resources.
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
async fn stored_objects_are_found() {
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
async fn an_object_is_complete_while_it_is_replaced() {
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
async fn an_unreachable_store_is_reported_in_time() {
    // Nothing listens on the port of a stopped server.
    let server = ObjectServer::start();
    let url = format!("s3://archives?endpoint={}", server.url());
    let objects = Objects::by_url(&url, ObjectServer::variables().into_iter()).unwrap();
    let without = objects.get("a", LIMIT).await;
    assert!(without.is_err(), "there is no bucket");
    drop(server);
    let away = objects.put("a", vec![1]).await;
    assert!(matches!(away, Err(ObjectError::Failed(_))), "{away:?}");
}

/// Response of the server to every request.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// No response.
    Silence,
    /// The key has no permission to read.
    Denial,
    /// An error of the server.
    Failure,
    /// The connection closes within the body.
    Cut,
}

impl Fault {
    fn answer(self) -> Option<&'static str> {
        match self {
            Self::Silence => None,
            Self::Denial => Some(
                "HTTP/1.1 403 Forbidden\r\ncontent-length: 38\r\nconnection: close\r\n\r\n\
                 <Error><Code>AccessDenied</Code></Error>",
            ),
            Self::Failure => {
                Some("HTTP/1.1 500 Failed\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            }
            Self::Cut => Some(
                "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\netag: \"a\"\r\n\
                 last-modified: Wed, 01 Jan 2025 00:00:00 GMT\r\nconnection: close\r\n\r\nhalf",
            ),
        }
    }
}

/// Returns a store on a server with this fault. The server stops at the end of the test.
fn faulty(fault: Fault) -> Objects {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("s3://a?endpoint=http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        let mut silent = Vec::new();
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let mut head = [0; 4096];
            drop(stream.read(&mut head));
            match fault.answer() {
                Some(answer) => drop(stream.write_all(answer.as_bytes())),
                None => silent.push(stream),
            }
        }
    });
    Objects::by_url(&url, ObjectServer::variables().into_iter()).unwrap()
}

#[tokio::test]
async fn a_store_with_a_fault_fails_and_gives_no_half_of_an_object() {
    let faults = [Fault::Silence, Fault::Denial, Fault::Failure, Fault::Cut];
    let tried = faults.map(|fault| async move {
        let objects = faulty(fault);
        let (read, written, deleted) = tokio::join!(
            objects.get("a", LIMIT),
            objects.put("a", vec![1]),
            objects.delete("a")
        );
        assert!(
            matches!(read, Err(ObjectError::Failed(_))),
            "{fault:?} {read:?}"
        );
        if !matches!(fault, Fault::Cut) {
            assert!(
                matches!(written, Err(ObjectError::Failed(_))),
                "{fault:?} {written:?}"
            );
            assert!(
                matches!(deleted, Err(ObjectError::Failed(_))),
                "{fault:?} {deleted:?}"
            );
        }
    });
    let deadline = Duration::from_mins(2);
    let tried = timeout(deadline, futures_util::future::join_all(tried)).await;
    tried.expect("a silent store is given up");
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
