//! Reload of certificates that change on disk; invalid ones are ignored.

use crate::support::{
    Dir, Issued, Leaf, Pair, RecordingClient, Site, connect, now, server, site, written,
};
use proxy_tls::{CertificateSource, Change, HeldCertificate, ServerTls, TlsError, Watcher};
use rustls::version::TLS13;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

struct Watched {
    site: Site,
    watcher: Watcher,
    source: CertificateSource,
}

impl Watched {
    fn new() -> Self {
        Self::with_leaf(&Leaf::new(&["a.example"]))
    }

    fn with_leaf(leaf: &Leaf) -> Self {
        let site = site(std::slice::from_ref(leaf));
        let mut watcher = Watcher::new();
        watcher.watch_server(&site.server);
        let source = site.server.settings().certificates[0].clone();
        Self {
            site,
            watcher,
            source,
        }
    }

    /// Polls so soon after the last write that the metadata is not settled.
    fn poll(&mut self) -> Vec<Change> {
        let now = written(self.site.dir.path("ca.pem").as_path());
        self.watcher.poll(now)
    }

    fn file(&self) -> PathBuf {
        self.source.cert_file.clone()
    }

    fn issue(&self) -> Issued {
        self.site.ca.issue(&Leaf::new(&["a.example"]))
    }

    fn shown(&self) -> Vec<u8> {
        shown(&self.site.server)
    }
}

fn shown(server: &ServerTls) -> Vec<u8> {
    let client = Arc::new(RecordingClient::with_all_schemes().config(&[&TLS13]));
    connect(&client, &server.config(), "a.example")
        .unwrap()
        .leaf()
        .to_vec()
}

#[test]
fn a_renewed_certificate_is_served_from_the_next_handshake_on() {
    let mut watched = Watched::new();
    let old = watched.shown();
    let config = watched.site.server.config();
    let mut under_way = Pair::new(&watched.site.client.config(), &config, "a.example");
    under_way.deliver_client_data().unwrap();
    let mut finished = connect(&watched.site.client.config(), &config, "a.example").unwrap();
    assert_eq!(watched.poll(), []);

    let renewed = watched.issue();
    watched.site.dir.put("leaf0", &renewed);
    let file = watched.file();
    assert_eq!(watched.poll(), [Change::Swapped { file }]);

    assert_eq!(watched.shown(), renewed.der);
    under_way.shake().unwrap();
    assert_eq!(under_way.leaf(), old);
    finished.exchange_data();
    assert_eq!(watched.poll(), []);
}

#[test]
fn a_half_written_file_changes_nothing_until_it_is_whole() {
    let mut watched = Watched::new();
    let old = watched.shown();
    let renewed = watched.issue();
    let file = watched.file();

    watched.site.dir.put("leaf0", &renewed);
    watched.site.dir.write("leaf0.crt", &renewed.cert[..200]);
    assert_eq!(watched.poll(), [], "it may be half written");
    let fault = TlsError::DamagedPem {
        file: file.clone(),
        what: "the last section has no END line",
    };
    let faults = vec![fault];
    assert_eq!(watched.poll(), [Change::Kept { faults }], "it lasts");
    assert_eq!(watched.poll(), [], "it was said");
    assert_eq!(watched.shown(), old);

    watched.site.dir.write("leaf0.crt", &renewed.cert);
    assert_eq!(watched.poll(), [Change::Swapped { file }]);
    assert_eq!(watched.shown(), renewed.der);
}

#[test]
fn a_certificate_before_its_key_is_not_an_error() {
    let mut watched = Watched::new();
    let old = watched.shown();
    let renewed = watched.issue();

    watched.site.dir.write("leaf0.crt", &renewed.cert);
    assert_eq!(watched.poll(), []);
    assert_eq!(watched.shown(), old);
    watched.site.dir.put("leaf0", &renewed);
    let file = watched.file();
    assert_eq!(watched.poll(), [Change::Swapped { file }]);
    assert_eq!(watched.shown(), renewed.der);
}

#[test]
fn a_key_that_never_fits_is_said_once() {
    let mut watched = Watched::new();
    let old = watched.shown();
    watched
        .site
        .dir
        .write("leaf0.key", watched.issue().key.serialize_pem());

    let CertificateSource {
        cert_file,
        key_file,
        held: _,
        is_obtained: _,
        ocsp_file: _,
        server_names: _,
    } = watched.source.clone();
    let faults = vec![TlsError::KeyMismatch {
        cert_file,
        key_file,
    }];
    let reported: Vec<_> = (0..5).flat_map(|_| watched.poll()).collect();
    assert_eq!(reported, [Change::Kept { faults }]);
    assert_eq!(watched.shown(), old);
}

#[test]
fn a_file_that_is_restored_unchanged_has_recovered() {
    let mut watched = Watched::new();
    let (file, hidden) = (watched.file(), watched.site.dir.path("hidden"));

    fs::rename(&file, &hidden).unwrap();
    assert_eq!(watched.poll(), []);
    let faults = vec![TlsError::Missing { file: file.clone() }];
    assert_eq!(watched.poll(), [Change::Kept { faults }]);
    fs::rename(&hidden, &file).unwrap();
    assert_eq!(watched.poll(), [Change::Recovered { file }]);
    assert_eq!(watched.poll(), []);
}

#[test]
fn an_expired_certificate_does_not_replace_a_valid_one() {
    let mut watched = Watched::new();
    let old = watched.shown();
    let expired = watched.site.ca.issue(&Leaf {
        years: (2001, 2021),
        ..Leaf::new(&["a.example"])
    });
    watched.site.dir.put("leaf0", &expired);

    let reported: Vec<_> = (0..3).flat_map(|_| watched.poll()).collect();
    assert!(
        matches!(&reported[..], [Change::Kept { faults }] if matches!(faults[..], [TlsError::Expired { .. }])),
        "{reported:?}"
    );
    assert_eq!(watched.shown(), old);
}

#[test]
fn an_expired_certificate_is_replaced_by_any_other() {
    let mut watched = Watched::with_leaf(&Leaf {
        years: (2001, 2021),
        ..Leaf::new(&["a.example"])
    });
    let renewed = watched.issue();
    watched.site.dir.put("leaf0", &renewed);

    let file = watched.file();
    assert_eq!(watched.poll(), [Change::Swapped { file }]);
    assert_eq!(watched.shown(), renewed.der);
}

#[test]
fn files_behind_a_link_are_swapped_by_the_link() {
    let dir = Dir::new();
    let site = site(&[Leaf::new(&["a.example"])]);
    let versions = ["v1", "v2"].map(|version| {
        fs::create_dir(dir.path(version)).unwrap();
        let issued = site.ca.issue(&Leaf::new(&["a.example"]));
        dir.put(&format!("{version}/tls"), &issued);
        issued.der
    });
    dir.link("..data", "v1");
    dir.link("tls.crt", "..data/tls.crt");
    dir.link("tls.key", "..data/tls.key");
    let source = CertificateSource {
        cert_file: dir.path("tls.crt"),
        key_file: dir.path("tls.key"),
        held: None,
        is_obtained: false,
        ocsp_file: None,
        server_names: Vec::new(),
    };
    let server = server(vec![source.clone()]);
    let mut watcher = Watcher::new();
    watcher.watch_server(&server);
    // Long after the last write, so that only metadata is compared.
    let later = |seconds| now() + Duration::from_secs(seconds);
    assert_eq!(watcher.poll(later(0)), []);
    assert_eq!(shown(&server), versions[0]);

    dir.link("..data", "v2");
    let file = source.cert_file;
    assert_eq!(watcher.poll(later(1)), [Change::Swapped { file }]);
    assert_eq!(shown(&server), versions[1]);
}

#[test]
fn a_certificate_in_memory_is_served_whatever_the_disk_has() {
    let site = site(&[Leaf::new(&["a.example"])]);
    let issued = site.ca.issue(&Leaf::new(&["a.example"]));
    let source = CertificateSource {
        held: Some(HeldCertificate {
            chain_pem: issued.cert.as_str().into(),
            key_pem: Arc::new(issued.key.serialize_pem().into()),
        }),
        ..site.server.settings().certificates[0].clone()
    };
    let server = server(vec![source]);
    assert_eq!(shown(&server), issued.der);
    let mut watcher = Watcher::new();
    watcher.watch_server(&server);
    assert_eq!(watcher.poll(now()), []);
    assert_eq!(shown(&server), issued.der);
}

#[test]
fn a_change_between_loading_and_the_first_poll_is_not_lost() {
    let mut watched = Watched::new();
    let renewed = watched.issue();
    watched.site.dir.put("leaf0", &renewed);

    let file = watched.file();
    assert_eq!(watched.poll(), [Change::Swapped { file }]);
    assert_eq!(watched.shown(), renewed.der);
}

#[test]
fn a_write_within_the_timestamp_granularity_is_seen() {
    let mut watched = Watched::new();
    assert_eq!(watched.poll(), []);
    let times = |path: &PathBuf| written(path);
    let before: [SystemTime; 2] = [
        times(&watched.source.cert_file),
        times(&watched.source.key_file),
    ];

    let renewed = watched.issue();
    watched.site.dir.put("leaf0", &renewed);
    for (path, time) in [&watched.source.cert_file, &watched.source.key_file]
        .iter()
        .zip(before)
    {
        fs::File::options()
            .write(true)
            .open(path)
            .unwrap()
            .set_modified(time)
            .unwrap();
    }
    let file = watched.file();
    assert_eq!(watched.poll(), [Change::Swapped { file }]);
    assert_eq!(watched.shown(), renewed.der);
}
