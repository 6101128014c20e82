//! Preparation of the admin interface's sockets: every step that can fail, before anything is
//! served.

use crate::listen::{BindError, OnDrop, SocketFile, open_unix, overlaps, still_bound};
use crate::runtime::disk_thread::DiskThread;
use crate::sockets::inherited_sockets::InheritedSockets;
use proxy_admin::{Listener, Token, WidePermissions};
use proxy_config::{Diagnostic, DiagnosticCode};
use proxy_model::{Admin as Settings, BindAddress, Model, Place};
use socket2::Socket;
use std::io;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;

/// Length of the accept queue of a Unix socket.
const BACKLOG_CONNECTIONS: u32 = 128;

/// The sockets of the next admin interface. If it is dropped, nothing changes.
#[derive(Debug)]
pub(crate) struct AdminListeners {
    pub(super) tcp: Change,
    pub(super) unix: Change,
    pub(super) token: Option<Token>,
}

/// The sockets that the admin interface serves already.
#[derive(Debug, Default)]
pub(crate) struct AdminSockets {
    pub(super) tcp: Option<AdminSocket>,
    pub(super) unix: Option<AdminSocket>,
}

#[derive(Debug)]
pub(super) struct AdminSocket {
    /// The address as written in the configuration.
    pub(super) address: BindAddress,
    pub(super) file: Option<Arc<SocketFile>>,
}

/// The next state of one listener.
#[derive(Debug)]
pub(super) enum Change {
    Stay,
    Close,
    Open(Opened),
}

/// A new socket that is not served yet.
#[derive(Debug)]
pub(super) struct Opened {
    /// The address as written in the configuration.
    pub(super) address: BindAddress,
    pub(super) socket: Socket,
    /// A duplicate, for serving.
    pub(super) listener: Listener,
    pub(super) file: Option<SocketFile>,
}

impl AdminListeners {
    /// Opens the sockets that `model` requires and that are not open `now`. `bound` are the
    /// addresses of the listeners in force.
    pub(crate) fn prepare(
        now: &AdminSockets,
        bound: &[BindAddress],
        model: &Model,
        inherited: &mut InheritedSockets,
    ) -> Result<Self, Diagnostic> {
        let settings = &model.admin;
        let Settings {
            address,
            token_file,
            unix_socket,
        } = settings;
        let token = check(settings)?;
        if let Some((file, (_, Some(wide)))) = token_file.as_ref().zip(token.as_ref()) {
            tracing::warn!(file = %file.value.display(), "{wide}");
        }
        let wanted = address.value.map(BindAddress::Tcp);
        let wanted = wanted.map(|wanted| (wanted, address.place()));
        let path = unix_socket.as_ref().map(|path| {
            let wanted = BindAddress::Unix(path.value.clone());
            (wanted, path.place())
        });
        // Another process may have removed the file.
        let there = |place: &&AdminSocket| place.file.as_ref().is_none_or(|file| file.is_there());
        let unix = now.unix.as_ref().filter(there);
        Ok(Self {
            tcp: Change::from(now.tcp.as_ref(), wanted, bound, model, inherited)?,
            unix: Change::from(unix, path, bound, model, inherited)?,
            token: token.map(|(token, _)| token),
        })
    }
}

impl AdminListeners {
    /// Leaves the removal of the file of a Unix socket to `disk`.
    pub(crate) fn remove_files_on(&self, disk: &DiskThread) {
        if let Change::Open(Opened {
            file: Some(file), ..
        }) = &self.unix
        {
            file.remove_on(disk);
        }
    }
}

impl Change {
    fn from(
        now: Option<&AdminSocket>,
        wanted: Option<(BindAddress, Option<Place>)>,
        bound: &[BindAddress],
        model: &Model,
        inherited: &mut InheritedSockets,
    ) -> Result<Self, Diagnostic> {
        if now.map(|place| &place.address) == wanted.as_ref().map(|(address, _)| address) {
            return Ok(Self::Stay);
        }
        match wanted {
            Some((address, place)) => Opened::at(address.clone(), inherited)
                .map(Self::Open)
                .map_err(|bind| {
                    let bind = with_listener(bind, &address, bound, model);
                    into_start_error(&bind, place)
                }),
            None => Ok(Self::Close),
        }
    }
}

impl Opened {
    fn at(address: BindAddress, inherited: &mut InheritedSockets) -> Result<Self, BindError> {
        let fault = |error| BindError::new(&address, error);
        let (socket, file) = match inherited.take_admin(&address) {
            Some(passed) if passed.label.owned && !is_there(&address) => {
                bind(&address).map_err(fault)?
            }
            Some(passed) => {
                let file = match &address {
                    BindAddress::Unix(path) if passed.label.owned => inherited_file(path),
                    BindAddress::Unix(_) | BindAddress::Tcp(_) => None,
                };
                (passed.socket, file)
            }
            None => bind(&address).map_err(fault)?,
        };
        let copy = socket.try_clone().map_err(fault)?;
        let listener = match &address {
            BindAddress::Tcp(_) => Listener::Tcp(copy.into()),
            BindAddress::Unix(_) => Listener::Unix(copy.into()),
        };
        Ok(Self {
            address,
            socket,
            listener,
            file,
        })
    }
}

/// `bind` with the listener that has `address`, one of `bound`. If none has it, the listener of
/// `model` that overlaps it is not bound yet: another process has the address.
fn with_listener(
    bind: BindError,
    address: &BindAddress,
    bound: &[BindAddress],
    model: &Model,
) -> BindError {
    let mut listeners = model.listeners.iter();
    if let Some(held) = bound.iter().find(|one| overlaps(one, address)) {
        let holder = match listeners.find(|one| one.address.value == *held) {
            Some(one) => format!("listener `{}` has {held}", one.name),
            None => still_bound(held),
        };
        return bind.held_by(Some(holder));
    }
    match listeners.find(|one| overlaps(&one.address, address)) {
        Some(one) => bind.overlapped_by(&format!("listener `{}`, {},", one.name, *one.address)),
        None => bind,
    }
}

fn into_start_error(bind: &BindError, place: Option<Place>) -> Diagnostic {
    let fault = bind.diagnostic(place.unwrap_or_default());
    match place {
        Some(_) => fault,
        None => fault.help("it is the admin interface's; `admin { address \"…\" }` names another"),
    }
}

fn bind(address: &BindAddress) -> io::Result<(Socket, Option<SocketFile>)> {
    match address {
        BindAddress::Tcp(address) => TcpListener::bind(address).map(|socket| (socket.into(), None)),
        BindAddress::Unix(path) => {
            let (socket, file) = open_unix(path, BACKLOG_CONNECTIONS, None)?;
            Ok((socket, Some(file)))
        }
    }
}

fn is_there(address: &BindAddress) -> bool {
    match address {
        BindAddress::Tcp(_) => true,
        BindAddress::Unix(path) => path.exists(),
    }
}

/// The file of a socket that another process bound. Kept on drop until this process owns it.
fn inherited_file(path: &Path) -> Option<SocketFile> {
    let file = SocketFile::at(path).ok()?;
    file.set_on_drop(OnDrop::Keep);
    Some(file)
}

/// The token that `settings` require, and whether its file has too wide a mode.
pub(crate) fn check(
    settings: &Settings,
) -> Result<Option<(Token, Option<WidePermissions>)>, Diagnostic> {
    let Some(file) = &settings.token_file else {
        return Ok(None);
    };
    let token = Token::read(&file.value).map_err(|fault| {
        let place = file.place().unwrap_or_default();
        Diagnostic::new(DiagnosticCode::BadToken, place, fault.to_string())
    });
    token.map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_is_named_as_the_holder_only_if_it_is_bound() {
        let holder = TcpListener::bind("127.0.0.1:0").unwrap();
        let admin = holder.local_addr().unwrap();
        let wide = format!("0.0.0.0:{}", admin.port());
        let model_of = |text: String| proxy_config::parse(&text, "test.kdl").unwrap().model;
        let others = model_of(format!("admin {{ address \"{admin}\" }}"));
        // A file with both is refused by its check.
        let mut model = others.clone();
        let text = format!("listeners {{ listener \"x\" {{ address \"{wide}\" }} }}");
        model.listeners = model_of(text).listeners;
        let bound = [model.listeners.first().unwrap().address.value.clone()];
        let why = |bound: &[BindAddress], model: &Model| {
            let (now, mut inherited) = (AdminSockets::default(), InheritedSockets::default());
            let prepared = AdminListeners::prepare(&now, bound, model, &mut inherited);
            prepared.unwrap_err().label
        };

        let unbound = why(&[], &model);
        assert!(unbound.contains("in use by another process"), "{unbound}");
        let listener = format!("listener `x`, {wide}, overlaps it");
        assert!(unbound.ends_with(&listener), "{unbound}");
        assert_eq!(why(&bound, &model), format!("listener `x` has {wide}"));
        let removed = why(&bound, &others);
        assert!(
            removed.starts_with(&format!("this process still has {wide}")),
            "{removed}"
        );
    }
}
