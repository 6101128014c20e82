//! The admin interface of the running proxy.

mod listeners;

use crate::config::options::Build;
use crate::listen::{OnDrop, SocketFile};
use crate::reload::server::Server;
use crate::sockets::handover::{Label, Purpose};
use listeners::{AdminSocket, Change, Opened};
use proxy_admin::{Access, AdminState, BuildInfo, Listener, Sources};
use proxy_model::BindAddress;
use proxy_plan::Plan;
use proxy_telemetry::{Lifecycle, Registry};
use socket2::Socket;
use std::sync::Arc;
use tokio::sync::{Notify, oneshot};

pub(crate) use listeners::{AdminListeners, AdminSockets, check};

/// The open admin interface. Drop closes it gracefully.
#[derive(Debug)]
pub(crate) struct Admin {
    state: Arc<AdminState>,
    tcp: Option<AdminListener>,
    unix: Option<AdminListener>,
    /// Notified when a serving task has panicked.
    lost: Arc<Notify>,
}

/// A listening socket of the admin interface, and the stop signal of its serving task.
#[derive(Debug)]
struct AdminListener {
    /// The address as written in the configuration.
    address: BindAddress,
    access: Arc<Access>,
    /// A duplicate, for handing over to another process.
    socket: Socket,
    file: Option<Arc<SocketFile>>,
    // Drop ends the task gracefully.
    _stop: oneshot::Sender<()>,
}

impl Admin {
    /// Serves `listeners`, reporting the active plan.
    pub(crate) fn open(
        listeners: AdminListeners,
        server: &Server,
        build: Build,
        registry: &Arc<Registry>,
        lifecycle: &Arc<Lifecycle>,
    ) -> Self {
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
            memory: Arc::clone(&shared.memory),
            health_changes: Arc::clone(&shared.health_changes),
            target_changes: Arc::clone(&shared.target_changes),
            recording: Arc::clone(server.recording()),
        };
        let state = Arc::new(AdminState::new(sources, Arc::clone(server.plan())));
        let mut admin = Self {
            state,
            tcp: None,
            unix: None,
            lost: Arc::default(),
        };
        admin.apply(listeners);
        admin
    }

    /// Notified when a task that accepts connections has panicked: the interface would accept no
    /// more, and health checks of the process would hang.
    pub(crate) fn lost(&self) -> Arc<Notify> {
        Arc::clone(&self.lost)
    }

    /// Serves `listeners`, reporting `plan`, which is now active.
    pub(crate) fn update(&mut self, listeners: AdminListeners, plan: &Arc<Plan>) {
        self.apply(listeners);
        self.state.publish(Arc::clone(plan));
    }

    /// Reports `plan`, which is now active.
    pub(crate) fn report(&self, plan: &Arc<Plan>) {
        self.state.publish(Arc::clone(plan));
    }

    pub(crate) fn open_sockets(&self) -> AdminSockets {
        let socket = |listener: &AdminListener| AdminSocket {
            address: listener.address.clone(),
            file: listener.file.clone(),
        };
        AdminSockets {
            tcp: self.tcp.as_ref().map(socket),
            unix: self.unix.as_ref().map(socket),
        }
    }

    /// Every socket, for handing over to another process.
    pub(crate) fn sockets(&self) -> impl Iterator<Item = (Label, &Socket)> {
        self.listeners().map(|listener| {
            let label = Label {
                purpose: Purpose::Admin,
                owned: listener.file.is_some(),
                address: listener.address.clone(),
            };
            (label, &listener.socket)
        })
    }

    /// Sets whether the Unix socket's file is kept or removed on drop.
    pub(crate) fn set_files_on_drop(&self, action: OnDrop) {
        for file in self
            .listeners()
            .filter_map(|listener| listener.file.as_ref())
        {
            file.set_on_drop(action);
        }
    }

    fn listeners(&self) -> impl Iterator<Item = &AdminListener> {
        self.tcp.iter().chain(&self.unix)
    }

    fn apply(&mut self, listeners: AdminListeners) {
        let AdminListeners { tcp, unix, token } = listeners;
        match tcp {
            Change::Stay => {
                if let Some(listener) = &self.tcp {
                    listener.access.change_token(token);
                }
            }
            Change::Close => self.tcp = None,
            Change::Open(opened) => {
                self.tcp = Some(self.serve(opened, Arc::new(Access::tcp(token))));
            }
        }
        match unix {
            Change::Stay => {}
            Change::Close => self.unix = None,
            Change::Open(opened) => {
                self.unix = Some(self.serve(opened, Arc::new(Access::unix())));
            }
        }
    }

    fn serve(&self, opened: Opened, access: Arc<Access>) -> AdminListener {
        let Opened {
            address,
            socket,
            listener,
            file,
        } = opened;
        let bound = socket.local_addr().ok().and_then(|bound| bound.as_socket());
        let bound = bound.map_or_else(|| address.clone(), BindAddress::Tcp);
        tracing::info!(address = %bound, "admin interface");
        AdminListener {
            _stop: self.begin(listener, Arc::clone(&access)),
            address,
            access,
            socket,
            file: file.map(Arc::new),
        }
    }

    fn begin(&self, listener: Listener, access: Arc<Access>) -> oneshot::Sender<()> {
        let (stop, stopped) = oneshot::channel::<()>();
        let state = Arc::clone(&self.state);
        let serving = async move {
            let stopped = async {
                // The listener is closed in both cases.
                drop(stopped.await);
            };
            if let Err(error) = proxy_admin::serve(listener, state, access, stopped).await {
                tracing::error!(%error, "the admin interface ended");
            }
        };
        spawn_watched(serving, Arc::clone(&self.lost));
        stop
    }
}

/// Runs `serving`, and notifies `lost` when it panics. Not a task of a
/// [`TaskScope`](crate::runtime::task_scope::TaskScope): it ends by a message, so that responses
/// are finished, and the process ends without it.
fn spawn_watched(serving: impl Future<Output = ()> + Send + 'static, lost: Arc<Notify>) {
    let serving = tokio::spawn(serving);
    tokio::spawn(async move {
        if serving.await.is_err_and(|error| error.is_panic()) {
            lost.notify_one();
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::runtime::Builder;
    use tokio::time::timeout;

    /// Returns true if the end of `serving` counts as a loss of the interface.
    fn is_lost(serving: impl Future<Output = ()> + Send + 'static) -> bool {
        let runtime = Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let lost = Arc::<Notify>::default();
            spawn_watched(serving, Arc::clone(&lost));
            let wait = timeout(Duration::from_millis(200), lost.notified());
            wait.await.is_ok()
        })
    }

    #[test]
    fn a_panic_of_the_accepting_task_is_noticed_and_an_ordered_end_is_not() {
        assert!(is_lost(async { panic!("a defect") }));
        assert!(!is_lost(async {}));
    }
}
