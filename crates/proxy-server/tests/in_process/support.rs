//! A proxy in the test's own process, and the suite's configurations.

use proxy_server::{Build, HandleOptions, ServerHandle, Source};
use proxy_testkit::{Launcher, Log, RawClient, Record, Reload, Response, loopback_pair};
use std::fs;
use std::io::{PipeWriter, pipe};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use tempfile::TempDir;

pub(crate) use proxy_testkit::{METRICS, metric, pause, post, refusal, request, target};

/// A configuration for [`Proxy`].
pub(crate) type Config = proxy_testkit::Config<InProcess>;

const BUILD: Build = Build {
    version: env!("CARGO_PKG_VERSION"),
    commit: "unknown",
    built_at: "unknown",
    rustc: "unknown",
};

/// Starts proxies in the test's own process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InProcess;

impl Launcher for InProcess {
    type Proxy = Proxy;

    fn launch(kdl: &str) -> Proxy {
        Proxy::start(kdl)
    }
}

/// A running proxy. The test creates each connection, and hands one end over to the proxy.
pub(crate) struct Proxy {
    handle: ServerHandle,
    stdout: Log,
    config: PathBuf,
    _folder: TempDir,
    /// Path at which the proxy reopens the pipe of its logs after a reload.
    _writer: PipeWriter,
}

impl Proxy {
    #[track_caller]
    fn start(kdl: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("proxyd.kdl");
        fs::write(&config, kdl).unwrap();
        let (reader, writer) = pipe().unwrap();
        let options = HandleOptions {
            config: Source::File(config.clone()),
            build: BUILD,
            stdout: Some(format!("/proc/self/fd/{}", writer.as_raw_fd()).into()),
        };
        match ServerHandle::start(options) {
            Ok(handle) => Self {
                handle,
                stdout: Log::collect(reader),
                config,
                _folder: folder,
                _writer: writer,
            },
            Err(error) => panic!("the proxy does not start: {error}"),
        }
    }

    /// A connection to the first listener.
    pub(crate) fn connect(&self) -> RawClient {
        self.connect_to(0)
    }

    /// A connection to the listener with this index.
    pub(crate) fn connect_to(&self, listener: usize) -> RawClient {
        let (client, server) = loopback_pair();
        self.accept(listener, server);
        RawClient::over(client)
    }

    /// A connection of the client at this address.
    pub(crate) fn connect_from(&self, peer: IpAddr) -> RawClient {
        let (client, server) = loopback_pair();
        self.handle
            .accept(0, server, Some(SocketAddr::new(peer, 40_000)));
        RawClient::over(client)
    }

    /// Hands over the proxy's end of a connection from this host.
    pub(crate) fn accept(&self, listener: usize, socket: impl Into<OwnedFd>) {
        self.handle.accept(listener, socket, None);
    }

    /// Lets requests in flight end, and no further ones begin.
    pub(crate) fn drain(&self) {
        self.handle.drain();
    }

    /// Replaces the configuration.
    pub(crate) fn reload(&self, kdl: &str) -> Reload {
        fs::write(&self.config, kdl).unwrap();
        match self.handle.reload() {
            Ok(()) => Reload::Applied,
            Err(error) => Reload::Refused(error.to_string()),
        }
    }

    /// Waits for a record that `is_wanted` accepts.
    #[track_caller]
    pub(crate) fn record(&self, is_wanted: impl Fn(&Record) -> bool) -> Record {
        self.stdout.find(0, is_wanted)
    }

    /// The records written until now.
    pub(crate) fn records(&self) -> Vec<Record> {
        self.stdout.records()
    }

    /// Waits for the access record of the request with this correlation ID.
    #[track_caller]
    pub(crate) fn access_record(&self, correlation_id: &str) -> Record {
        self.stdout.access_record(correlation_id)
    }

    /// Waits for the error record of the request with this correlation ID.
    #[track_caller]
    pub(crate) fn error_record(&self, correlation_id: &str) -> Record {
        self.stdout.error_record(correlation_id)
    }

    /// Waits for the limit record of the request with this correlation ID.
    #[track_caller]
    pub(crate) fn limit_record(&self, correlation_id: &str) -> Record {
        self.stdout.limit_record(correlation_id)
    }
}

/// The reason of a failed request, from its record in the access log.
#[track_caller]
pub(crate) fn reason(proxy: &Proxy, response: &Response) -> String {
    let record = proxy.access_record(&response.correlation_id());
    record.text("reason").to_owned()
}
