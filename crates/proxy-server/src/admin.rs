//! The admin interface of the running proxy: its sockets, and what it tells about.

use crate::process::Build;
use crate::server::Server;
use proxy_admin::{Access, AdminState, BuildInfo, Listener, Sources, Token};
use proxy_model::Admin as Settings;
use proxy_telemetry::{Lifecycle, Registry};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::oneshot;

/// The admin interface, open.
#[derive(Debug)]
pub(crate) struct Admin {
    state: Arc<AdminState>,
    tcp: Option<Desk<SocketAddr>>,
    unix: Option<Desk<PathBuf>>,
}

/// One socket and the task that answers at it.
#[derive(Debug)]
struct Desk<A> {
    address: A,
    access: Arc<Access>,
    // Its drop ends the task in good order.
    _stop: oneshot::Sender<()>,
}

impl Admin {
    /// Opens what the plan in force asks for.
    pub(crate) fn open(
        server: &Server,
        build: Build,
        registry: &Arc<Registry>,
        lifecycle: &Arc<Lifecycle>,
    ) -> Result<Self, String> {
        let Build {
            version,
            commit,
            built_at,
            rustc,
        } = build;
        let shared = server.shared();
        let sources = Sources {
            build: BuildInfo {
                name: "proxyd",
                version,
                commit,
                built_at,
                rustc,
            },
            lifecycle: Arc::clone(lifecycle),
            registry: Arc::clone(registry),
            in_flight: shared.in_flight.clone(),
            connections: shared.connections.clone(),
        };
        let state = Arc::new(AdminState::new(sources, Arc::clone(server.plan())));
        let mut admin = Self {
            state,
            tcp: None,
            unix: None,
        };
        admin.arrange(&server.plan().model().admin)?;
        Ok(admin)
    }

    /// Tells about the plan now in force, at the sockets it asks for.
    pub(crate) fn follow(&mut self, server: &Server) -> Result<(), String> {
        self.arrange(&server.plan().model().admin)?;
        self.state.publish(Arc::clone(server.plan()));
        Ok(())
    }

    fn arrange(&mut self, settings: &Settings) -> Result<(), String> {
        let Settings {
            address,
            token_file,
            unix_socket,
        } = settings;
        let token = token_file.as_ref().map(|file| read_token(&file.value));
        let token = token.transpose()?;
        let tcp = address.value;
        let path = unix_socket.as_ref().map(|path| &path.value);
        if self.tcp.as_ref().map(|desk| desk.address) != tcp {
            let opened = tcp.map(|address| self.open_tcp(address, token.clone()));
            self.tcp = opened.transpose()?;
        } else if let Some(desk) = &self.tcp {
            desk.access.change_token(token);
        }
        if self.unix.as_ref().map(|desk| &desk.address) != path {
            self.unix = path.map(|path| self.open_unix(path)).transpose()?;
        }
        Ok(())
    }

    fn open_tcp(
        &self,
        address: SocketAddr,
        token: Option<Token>,
    ) -> Result<Desk<SocketAddr>, String> {
        let socket = TcpListener::bind(address).map_err(|error| format!("{address}: {error}"))?;
        let bound = socket.local_addr().unwrap_or(address);
        tracing::info!(address = %bound, "admin interface");
        let access = Arc::new(Access::tcp(token));
        Ok(self.begin(Listener::Tcp(socket), address, access))
    }

    fn open_unix(&self, path: &Path) -> Result<Desk<PathBuf>, String> {
        let fault = |error: std::io::Error| format!("{}: {error}", path.display());
        if is_abandoned(path) {
            std::fs::remove_file(path).map_err(fault)?;
        }
        let socket = UnixListener::bind(path).map_err(fault)?;
        let access = Arc::new(Access::unix());
        Ok(self.begin(Listener::Unix(socket), path.to_owned(), access))
    }

    fn begin<A>(&self, listener: Listener, address: A, access: Arc<Access>) -> Desk<A> {
        let (stop, stopped) = oneshot::channel::<()>();
        let state = Arc::clone(&self.state);
        let theirs = Arc::clone(&access);
        tokio::spawn(async move {
            let stopped = async {
                // Either way the desk is gone.
                drop(stopped.await);
            };
            if let Err(error) = proxy_admin::serve(listener, state, theirs, stopped).await {
                tracing::error!(%error, "the admin interface ended");
            }
        });
        Desk {
            address,
            access,
            _stop: stop,
        }
    }
}

fn read_token(file: &Path) -> Result<Token, String> {
    let (token, wide) =
        Token::read(file).map_err(|fault| format!("{}: {fault}", file.display()))?;
    if let Some(wide) = wide {
        tracing::warn!(file = %file.display(), "{wide}");
    }
    Ok(token)
}

/// Whether a socket file is left from a process that is gone: nobody answers at it.
fn is_abandoned(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    let is_socket = std::fs::metadata(path).is_ok_and(|file| file.file_type().is_socket());
    is_socket && std::os::unix::net::UnixStream::connect(path).is_err()
}
