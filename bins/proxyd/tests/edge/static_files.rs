//! Static files: contents, conditions, and files that are never sent.

use crate::support::{BINARY, Http2, ask, block_on};
use proxy_testkit::{Launch, Proxyd, RawClient, Response, get};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::tempdir;

const PAGE: &str = "<p>hello</p>";

struct Site {
    proxyd: Proxyd,
    root: PathBuf,
}

/// A site with these settings of its files and its route.
fn site(files: &str, route: &str) -> Site {
    let launch = Launch::new(
        BINARY,
        &format!(
            r#"
            listeners {{ listener "main" {{ address "127.0.0.1:0"; h2c #true }} }}
            routes {{
                route "files" {{ service-type "static"; static-files {{ root "www"; {files} }}; {route} }}
            }}
            system {{ worker-threads 1 }}
            "#
        ),
    );
    let root = launch.folder().join("www");
    fs::create_dir_all(root.join("docs")).unwrap();
    fs::write(root.join("page.html"), PAGE).unwrap();
    fs::write(root.join("docs/index.html"), "the docs").unwrap();
    fs::write(launch.folder().join("secret"), "secret").unwrap();
    age(&root.join("page.html"), 60);
    Site {
        proxyd: launch.start(),
        root,
    }
}

impl Site {
    fn ask(&self, target: &str, fields: &[(&str, &str)]) -> Response {
        self.proxyd.connect().ask(get(target, fields))
    }

    fn status(&self, target: &str) -> u16 {
        self.ask(target, &[]).status
    }
}

/// One request with another method than GET.
fn by(client: &mut RawClient, method: &str, target: &str) -> Response {
    client.send(format!("{method} {target} HTTP/1.1\r\nHost: a\r\n\r\n"));
    if method == "HEAD" {
        client.response_to_head()
    } else {
        client.response()
    }
}

/// Sets a file's time back by this much.
fn age(path: &Path, seconds: u64) {
    let file = fs::File::options().append(true).open(path).unwrap();
    let time = file.metadata().unwrap().modified().unwrap() - Duration::from_secs(seconds);
    file.set_modified(time).unwrap();
}

#[test]
fn a_file_is_sent_with_its_type_and_validators() {
    let site = site(
        "",
        "policies { response-headers { set \"Cache-Control\" \"no-cache\" } }",
    );
    let response = site.ask("/page.html?v=2", &[]);

    assert_eq!((response.status, response.text().as_str()), (200, PAGE));
    for (name, value) in [
        ("content-type", "text/html; charset=utf-8"),
        ("content-length", "12"),
        ("accept-ranges", "bytes"),
        ("cache-control", "no-cache"),
        ("server", "proxyd"),
    ] {
        assert_eq!(response.fields.get(name), Some(value), "{name}");
    }
    for name in ["etag", "last-modified", "date", "x-correlation-id"] {
        assert!(response.fields.has(name), "{name}");
    }
    assert!(!response.fields.has("vary"));
    let record = site.proxyd.access_record(&response.correlation_id());
    assert_eq!(record.text("route"), "files");
    assert_eq!(record.number("bytes_out"), Some(12.0));
}

#[test]
fn head_gets_the_fields_without_the_bytes() {
    let site = site("", "");
    let mut client = site.proxyd.connect();

    let response = by(&mut client, "HEAD", "/page.html");
    assert_eq!(response.status, 200);
    assert_eq!(response.fields.get("content-length"), Some("12"));
    assert!(response.fields.has("etag"));
    let after = client.ask(get("/page.html", &[]));
    assert_eq!(after.text(), PAGE);
}

#[test]
fn other_methods_are_refused_with_those_that_are_not() {
    let site = site("fallback \"page.html\"", "");
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"] {
        let response = by(&mut site.proxyd.connect(), method, "/page.html");
        assert_eq!(response.status, 405, "{method}");
        assert_eq!(response.fields.get("allow"), Some("GET, HEAD"));
    }
}

#[test]
fn a_cached_representation_is_not_sent_again() {
    let site = site("", "");
    let known = site.ask("/page.html", &[]);
    let tag = known.fields.get("etag").unwrap();
    let date = known.fields.get("last-modified").unwrap();
    let old = "Thu, 01 Jan 1970 00:00:01 GMT";

    for (name, value, status) in [
        ("If-None-Match", tag, 304),
        ("If-None-Match", "*", 304),
        ("If-None-Match", "\"other\"", 200),
        ("If-Modified-Since", date, 304),
        ("If-Modified-Since", old, 200),
        ("If-Match", tag, 200),
        ("If-Match", "\"other\"", 412),
        ("If-Unmodified-Since", date, 200),
        ("If-Unmodified-Since", old, 412),
    ] {
        let response = site.ask("/page.html", &[(name, value)]);
        assert_eq!(response.status, status, "{name}: {value}");
        if status == 304 {
            assert_eq!(response.fields.get("etag"), Some(tag));
            assert!(!response.fields.has("content-length"));
            assert!(response.text().is_empty());
        }
    }
    let failed = site.ask("/page.html", &[("If-Match", "\"other\"")]);
    let record = site.proxyd.access_record(&failed.correlation_id());
    assert_eq!(record.text("reason"), "precondition_failed");

    fs::write(site.root.join("page.html"), "<p>changed</p>").unwrap();
    let changed = site.ask("/page.html", &[("If-None-Match", tag)]);
    assert_eq!(changed.text(), "<p>changed</p>");
}

#[test]
fn a_range_is_sent_alone() {
    let site = site("", "");
    let known = site.ask("/page.html", &[]);
    let date = known.fields.get("last-modified").unwrap();
    let tag = known.fields.get("etag").unwrap();

    let by_date = site.ask("/page.html", &[("Range", "bytes=3-7"), ("If-Range", date)]);
    assert_eq!(by_date.status, 206);
    let part = site.ask("/page.html", &[("Range", "bytes=3-7"), ("If-Range", tag)]);
    assert_eq!((part.status, part.text().as_str()), (206, "hello"));
    assert_eq!(part.fields.get("content-range"), Some("bytes 3-7/12"));
    assert_eq!(part.fields.get("content-length"), Some("5"));
    let end = site.ask("/page.html", &[("Range", "bytes=-4")]);
    assert_eq!((end.status, end.text().as_str()), (206, "</p>"));

    for fields in [
        [("Range", "bytes=0-0,2-3"), ("X-Nothing", "")],
        [("Range", "rows=0-1"), ("X-Nothing", "")],
        [("Range", "bytes=3-7"), ("If-Range", "\"other\"")],
        [
            ("Range", "bytes=3-7"),
            ("If-Range", "Thu, 01 Jan 1970 00:00:01 GMT"),
        ],
    ] {
        let whole = site.ask("/page.html", &fields);
        assert_eq!((whole.status, whole.text().as_str()), (200, PAGE));
    }
    let beyond = site.ask("/page.html", &[("Range", "bytes=12-")]);
    assert_eq!(beyond.status, 416);
    assert_eq!(beyond.fields.get("content-range"), Some("bytes */12"));
}

#[test]
fn a_folder_is_answered_by_its_index() {
    let site = site("", "");
    assert_eq!(site.ask("/docs/", &[]).text(), "the docs");

    let moved = site.ask("/docs?a=b", &[]);
    assert_eq!(moved.status, 301);
    assert_eq!(moved.fields.get("location"), Some("/docs/?a=b"));
    // Two slashes would name another host.
    let moved = site.ask("//docs", &[]);
    assert_eq!(moved.fields.get("location"), Some("/docs/"));
    // Folders are not listed.
    assert_eq!(site.status("/"), 404);
    assert_eq!(site.status("/page.html/"), 404);
}

#[test]
fn another_name_may_be_the_index() {
    let site = site("index \"page.html\"", "");
    assert_eq!(site.ask("/", &[]).text(), PAGE);
    assert_eq!(site.status("/docs/"), 404);
}

#[test]
fn the_fallback_answers_for_paths_that_name_no_file() {
    let site = site("fallback \"page.html\"", "");
    for target in ["/", "/app/users/7", "/.hidden"] {
        let response = site.ask(target, &[]);
        assert_eq!((response.status, response.text().as_str()), (200, PAGE));
        assert_eq!(
            response.fields.get("content-type"),
            Some("text/html; charset=utf-8")
        );
    }
    assert_eq!(site.ask("/docs/", &[]).text(), "the docs");
}

#[test]
fn precompressed_files_are_sent_to_clients_that_accept_them() {
    let site = site("precompressed #true", "");
    let page = site.root.join("page.html");
    age(&page, 60);
    let tag_of = |response: &Response| response.fields.get("etag").unwrap().to_owned();
    for (suffix, content) in [("br", "by br"), ("gz", "by gzip"), ("zst", "by zstd")] {
        fs::write(site.root.join(format!("page.html.{suffix}")), content).unwrap();
    }
    let mut tags = vec![tag_of(&site.ask("/page.html", &[]))];

    for (accepted, coding) in [
        ("gzip, deflate, br, zstd", "br"),
        ("gzip;q=0.5, zstd", "zstd"),
        ("gzip, br;q=0", "gzip"),
    ] {
        let response = site.ask("/page.html", &[("Accept-Encoding", accepted)]);
        assert_eq!(response.text(), format!("by {coding}"));
        assert_eq!(response.fields.get("content-encoding"), Some(coding));
        assert_eq!(response.fields.get("vary"), Some("accept-encoding"));
        let kind = response.fields.get("content-type");
        assert_eq!(kind, Some("text/html; charset=utf-8"));
        tags.push(tag_of(&response));
    }
    tags.sort();
    tags.dedup();
    assert_eq!(tags.len(), 4);

    // Tools that keep whole seconds make a variant seem older than its original.
    let file = fs::File::options()
        .append(true)
        .open(site.root.join("page.html.br"));
    let original = fs::metadata(&page).unwrap().modified().unwrap();
    file.unwrap()
        .set_modified(original - Duration::from_millis(999))
        .unwrap();
    let response = site.ask("/page.html", &[("Accept-Encoding", "br")]);
    assert_eq!(response.text(), "by br");

    // A variant older than its original was made from another file.
    age(&site.root.join("page.html.br"), 600);
    let response = site.ask("/page.html", &[("Accept-Encoding", "br")]);
    assert_eq!(response.text(), PAGE);
    assert!(!response.fields.has("content-encoding"));
    assert_eq!(response.fields.get("vary"), Some("accept-encoding"));
}

#[test]
fn nothing_outside_the_root_is_sent() {
    let site = site("", "");
    let folder = site.root.parent().unwrap();
    fs::create_dir(folder.join("www-other")).unwrap();
    fs::write(folder.join("www-other/file"), "secret").unwrap();
    symlink("../secret", site.root.join("link")).unwrap();
    symlink(folder, site.root.join("up")).unwrap();
    symlink("/etc", site.root.join("etc")).unwrap();
    symlink("link", site.root.join("again")).unwrap();
    symlink("page.html", site.root.join("inside")).unwrap();
    fs::write(site.root.join(".env"), "secret").unwrap();

    for target in [
        "/../secret",
        "/docs/../../secret",
        "/%2e%2e/secret",
        "/%2E./secret",
        "/..%2fsecret",
        "/..%5csecret",
        "/%252e%252e/secret",
        "/page.html%00.txt",
        "/../www-other/file",
        "//etc/passwd",
        "/link",
        "/again",
        "/up/secret",
        "/etc/passwd",
        "/.env",
        "/docs/.%2e/.env",
    ] {
        let response = site.ask(target, &[]);
        assert!(
            matches!(response.status, 400 | 403 | 404),
            "{target}: {}",
            response.status
        );
        assert!(!response.text().contains("secret"), "{target}");
    }
    let refused = site.ask("/link", &[]);
    assert_eq!(refused.status, 403);
    let record = site.proxyd.access_record(&refused.correlation_id());
    assert_eq!(record.text("reason"), "static_forbidden");
    assert_eq!(site.ask("/inside", &[]).text(), PAGE);
}

#[test]
fn a_doubled_slash_does_not_pass_a_route_before_the_files() {
    let launch = Launch::new(
        BINARY,
        r#"
        listeners {
            listener "strict" { address "127.0.0.1:0" }
            listener "forward" { address "127.0.0.1:0"; path-policy "forward" }
        }
        routes {
            route "private" {
                matches { path-prefix "/private"; path-prefix "/@team" }
                service-type "builtin"
                builtin-handler "not-found"
            }
            route "files" { service-type "static"; static-files { root "www" } }
        }
        system { worker-threads 1 }
        "#,
    );
    for folder in ["www/private", "www/@team"] {
        fs::create_dir_all(launch.folder().join(folder)).unwrap();
        fs::write(launch.folder().join(folder).join("s.txt"), "secret").unwrap();
    }
    fs::write(launch.folder().join("www/open.txt"), "open").unwrap();
    let proxyd = launch.start();
    for address in proxyd.addresses() {
        let ask = |target| RawClient::connect(*address).ask(get(target, &[]));
        assert_eq!(ask("/private/s.txt").status, 404);
        for target in [
            "//private/s.txt",
            "/.//private/s.txt",
            "/%40team/s.txt",
            "/x/..//private/s.txt",
        ] {
            let response = ask(target);
            assert_eq!(response.status, 400, "{target}");
            assert!(!response.text().contains("secret"), "{target}");
        }
        assert_eq!(ask("//open.txt").text(), "open");
    }
}

#[test]
fn forgiving_listeners_let_nothing_out_either() {
    let launch = Launch::new(
        BINARY,
        r#"
        listeners { listener "main" { address "127.0.0.1:0"; path-policy "forward" } }
        routes { route "files" { service-type "static"; static-files { root "www" } } }
        system { worker-threads 1 }
        "#,
    );
    fs::create_dir(launch.folder().join("www")).unwrap();
    fs::write(launch.folder().join("secret"), "secret").unwrap();
    let proxyd = launch.start();
    for target in [
        "/..%2fsecret",
        "/..%5csecret",
        "/../secret",
        "/a%00",
        "/%zz",
    ] {
        let response = proxyd.connect().ask(get(target, &[]));
        assert_eq!(response.status, 404, "{target}");
    }
}

#[test]
fn a_missing_file_and_an_unreadable_one_differ_in_the_log() {
    let site = site("", "");
    let missing = site.ask("/missing.txt", &[]);
    assert_eq!(missing.status, 404);
    let record = site.proxyd.access_record(&missing.correlation_id());
    assert_eq!(record.text("reason"), "static_not_found");

    let locked = site.root.join("page.html");
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o000)).unwrap();
    // The superuser can read every file.
    let expected = if fs::File::open(&locked).is_ok() {
        200
    } else {
        403
    };
    assert_eq!(site.status("/page.html"), expected);

    fs::rename(&site.root, site.root.with_extension("gone")).unwrap();
    let unreadable = site.ask("/docs/", &[]);
    assert_eq!(unreadable.status, 500);
    let record = site.proxyd.error_record(&unreadable.correlation_id());
    assert_eq!(record.text("reason"), "static_read_failed");
}

#[test]
fn a_pipe_is_not_waited_for() {
    let site = site("", "");
    let pipe = site.root.join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    assert_eq!(site.status("/pipe"), 403);
}

#[test]
fn a_socket_is_not_a_regular_file() {
    let site = site("", "");
    let _socket = UnixListener::bind(site.root.join("socket")).unwrap();
    assert_eq!(site.status("/socket"), 403);
}

#[test]
fn scripts_have_the_type_that_browsers_want() {
    let site = site("", "");
    for name in ["a.js", "a.mjs"] {
        fs::write(site.root.join(name), "").unwrap();
        let response = site.ask(&format!("/{name}"), &[]);
        let kind = response.fields.get("content-type");
        assert_eq!(kind, Some("text/javascript; charset=utf-8"), "{name}");
    }
}

#[test]
fn the_root_may_be_a_link_switched_to_another_release() {
    let launch = Launch::new(
        BINARY,
        r#"
        listeners { listener "main" { address "127.0.0.1:0" } }
        routes { route "files" { service-type "static"; static-files { root "now" } } }
        system { worker-threads 1 }
        "#,
    );
    let folder = launch.folder().to_owned();
    for release in ["one", "two"] {
        fs::create_dir(folder.join(release)).unwrap();
        fs::write(folder.join(release).join("file"), release).unwrap();
    }
    symlink("one", folder.join("now")).unwrap();
    let proxyd = launch.start();
    let mut client = proxyd.connect();
    assert_eq!(client.ask(get("/file", &[])).text(), "one");

    symlink("two", folder.join("next")).unwrap();
    fs::rename(folder.join("next"), folder.join("now")).unwrap();
    assert_eq!(client.ask(get("/file", &[])).text(), "two");
}

#[test]
fn a_missing_root_is_reported_at_its_place() {
    for (file, fault) in [("missing", "does not exist"), ("file", "is not a folder")] {
        let folder = tempdir().unwrap();
        let config = folder.path().join("proxyd.kdl");
        let kdl = format!(
            r#"
            listeners {{ listener "main" {{ address "127.0.0.1:0" }} }}
            routes {{ route "files" {{ service-type "static"; static-files {{ root "{file}" }} }} }}
            "#
        );
        fs::write(&config, kdl).unwrap();
        fs::write(folder.path().join("file"), "").unwrap();
        let output = Command::new(BINARY)
            .args(["--test", "--config"])
            .arg(&config)
            .output()
            .unwrap();
        assert!(!output.status.success());
        let printed = String::from_utf8(output.stderr).unwrap();
        assert!(printed.contains(fault), "{printed}");
        assert!(printed.contains("root \""), "{printed}");
    }
}

#[test]
fn a_large_file_flows_as_the_client_takes_it() {
    let site = site("", "");
    let large: Vec<u8> = (0..64_u32 * 1024 * 1024 / 4)
        .flat_map(u32::to_le_bytes)
        .collect();
    fs::write(site.root.join("large.bin"), &large).unwrap();

    let mut client = RawClient::connect_with_small_buffer(site.proxyd.address(), 4096);
    client.send(get("/large.bin", &[]));
    let mut head = client.head();
    assert_eq!(head.status, 200);
    // Other requests are served meanwhile, by the same worker.
    for _ in 0..20 {
        assert_eq!(site.status("/page.html"), 200);
    }
    let peak = site.proxyd.peak_rss_bytes();
    assert!(peak < large.len() as u64, "{peak} bytes");
    client.body(&mut head);
    assert!(head.body == large);

    block_on(async {
        let mut http = Http2::prior_knowledge(site.proxyd.address()).await;
        let answer = http.get("/large.bin").await;
        assert_eq!(
            answer.header("content-type"),
            Some("application/octet-stream")
        );
        assert!(answer.body == large);
        let mut request = ask("GET", "/large.bin");
        let tag = answer.header("etag").unwrap().parse().unwrap();
        request.headers_mut().insert("if-none-match", tag);
        let known = http.ask(request).await;
        assert_eq!(known.status, 304);
        assert_eq!(known.header("content-length"), None);
        let head = http.ask(ask("HEAD", "/large.bin")).await;
        assert_eq!(
            head.header("content-length"),
            answer.header("content-length")
        );
        assert!(head.header("content-length").is_some());
    });
}

#[test]
fn a_file_that_shrinks_breaks_its_response_off() {
    let site = site("", "");
    let path = site.root.join("large.bin");
    fs::write(&path, vec![b'x'; 32 * 1024 * 1024]).unwrap();

    let mut client = RawClient::connect_with_small_buffer(site.proxyd.address(), 4096);
    client.send(get("/large.bin", &[]));
    let head = client.head();
    fs::File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(1000)
        .unwrap();
    let id = head.correlation_id();
    let (rest, _) = client.rest().unwrap();
    assert!(rest.len() < 32 * 1024 * 1024);
    let record = site.proxyd.error_record(&id);
    assert_eq!(record.text("reason"), "static_read_failed");
}

#[test]
fn explain_reports_static_files() {
    let site = site("", "");
    let output = Command::new(BINARY)
        .args(["explain", "--config"])
        .arg(site.proxyd.config())
        .args(["GET", "http://a/page.html"])
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(printed.contains("files below "), "{printed}");
}
