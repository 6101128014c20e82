//! The admin interface of the running proxy: its sockets, and what it tells about.

use crate::handover::{Label, Purpose};
use crate::heritage::Heritage;
use crate::listen::{SocketFile, open_unix};
use crate::process::Build;
use crate::server::Server;
use proxy_admin::{Access, AdminState, BuildInfo, Listener, Sources, Token};
use proxy_model::{Admin as Settings, BindAddress};
use proxy_telemetry::{Lifecycle, Registry};
use socket2::Socket;
use std::io;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Callers that may wait at a Unix socket.
const BACKLOG: u32 = 128;

/// The admin interface, open. Its drop ends it in good order.
#[derive(Debug)]
pub(crate) struct Admin {
    state: Arc<AdminState>,
    tcp: Option<Desk>,
    unix: Option<Desk>,
}

/// One socket and the task that answers at it.
#[derive(Debug)]
struct Desk {
    /// As it was written.
    address: BindAddress,
    access: Arc<Access>,
    /// A copy, to be passed on to another process.
    socket: Socket,
    file: Option<SocketFile>,
    // Its drop ends the task in good order.
    _stop: oneshot::Sender<()>,
}

impl Admin {
    /// Opens what the plan in force asks for.
    pub(crate) fn open(
        server: &mut Server,
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
        admin.follow(server)?;
        Ok(admin)
    }

    /// Tells about the plan now in force, at the sockets it asks for.
    pub(crate) fn follow(&mut self, server: &mut Server) -> Result<(), String> {
        let plan = Arc::clone(server.plan());
        self.arrange(&plan.model().admin, server.heritage())?;
        self.state.publish(plan);
        Ok(())
    }

    /// Every socket, to be passed on to another process.
    pub(crate) fn sockets(&self) -> impl Iterator<Item = (Label, &Socket)> {
        self.desks().map(|desk| {
            let label = Label {
                purpose: Purpose::Admin,
                owned: desk.file.is_some(),
                address: desk.address.clone(),
            };
            (label, &desk.socket)
        })
    }

    /// Says whether the file of a Unix socket stays when this is dropped.
    pub(crate) fn keep_files(&self, kept: bool) {
        for file in self.desks().filter_map(|desk| desk.file.as_ref()) {
            file.keep(kept);
        }
    }

    fn desks(&self) -> impl Iterator<Item = &Desk> {
        self.tcp.iter().chain(&self.unix)
    }

    fn arrange(&mut self, settings: &Settings, heritage: &mut Heritage) -> Result<(), String> {
        let Settings {
            address,
            token_file,
            unix_socket,
        } = settings;
        let token = token_file.as_ref().map(|file| read_token(&file.value));
        let token = token.transpose()?;
        let tcp = address.value.map(BindAddress::Tcp);
        let path = unix_socket.as_ref().map(|path| path.value.clone());
        let path = path.map(BindAddress::Unix);
        if self.tcp.as_ref().map(|desk| &desk.address) != tcp.as_ref() {
            let access = || Arc::new(Access::tcp(token));
            let opened = tcp.map(|address| self.open_desk(address, access(), heritage));
            self.tcp = opened.transpose()?;
        } else if let Some(desk) = &self.tcp {
            desk.access.change_token(token);
        }
        if self.unix.as_ref().map(|desk| &desk.address) != path.as_ref() {
            let access = || Arc::new(Access::unix());
            let opened = path.map(|address| self.open_desk(address, access(), heritage));
            self.unix = opened.transpose()?;
        }
        Ok(())
    }

    fn open_desk(
        &self,
        address: BindAddress,
        access: Arc<Access>,
        heritage: &mut Heritage,
    ) -> Result<Desk, String> {
        let fault = |error: io::Error| format!("{address}: {error}");
        let (socket, file) = match heritage.take_admin(&address) {
            Some(passed) => {
                let file = match &address {
                    BindAddress::Unix(path) if passed.label.owned => inherited_file(path),
                    BindAddress::Unix(_) | BindAddress::Tcp(_) => None,
                };
                (passed.socket, file)
            }
            None => bind(&address).map_err(fault)?,
        };
        let listener = socket.try_clone().map_err(fault)?;
        let listener = match &address {
            BindAddress::Tcp(_) => Listener::Tcp(listener.into()),
            BindAddress::Unix(_) => Listener::Unix(listener.into()),
        };
        let bound = socket.local_addr().ok().and_then(|bound| bound.as_socket());
        let bound = bound.map_or_else(|| address.clone(), BindAddress::Tcp);
        tracing::info!(address = %bound, "admin interface");
        Ok(Desk {
            _stop: self.begin(listener, Arc::clone(&access)),
            address,
            access,
            socket,
            file,
        })
    }

    fn begin(&self, listener: Listener, access: Arc<Access>) -> oneshot::Sender<()> {
        let (stop, stopped) = oneshot::channel::<()>();
        let state = Arc::clone(&self.state);
        tokio::spawn(async move {
            let stopped = async {
                // Either way the desk is gone.
                drop(stopped.await);
            };
            if let Err(error) = proxy_admin::serve(listener, state, access, stopped).await {
                tracing::error!(%error, "the admin interface ended");
            }
        });
        stop
    }
}

fn bind(address: &BindAddress) -> io::Result<(Socket, Option<SocketFile>)> {
    match address {
        BindAddress::Tcp(address) => TcpListener::bind(address).map(|socket| (socket.into(), None)),
        BindAddress::Unix(path) => {
            let (socket, file) = open_unix(path, BACKLOG, None)?;
            Ok((socket, Some(file)))
        }
    }
}

/// The file of a socket that another process has bound: it stays until it is said to be ours.
fn inherited_file(path: &Path) -> Option<SocketFile> {
    let file = SocketFile::at(path).ok()?;
    file.keep(true);
    Some(file)
}

fn read_token(file: &Path) -> Result<Token, String> {
    let (token, wide) =
        Token::read(file).map_err(|fault| format!("{}: {fault}", file.display()))?;
    if let Some(wide) = wide {
        tracing::warn!(file = %file.display(), "{wide}");
    }
    Ok(token)
}
