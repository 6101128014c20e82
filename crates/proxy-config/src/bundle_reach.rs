//! Checks that a bundle uses only those parts of the machine that the node's own file allows.

pub(crate) mod data_folder;

use crate::bundle_reach::data_folder::DataFolder;
use crate::diagnostic::Diagnostic;
use crate::diagnostic_code::DiagnosticCode;
use crate::diagnostics::Diagnostics;
use crate::files::Files;
use crate::read::{BundleFiles, outside};
use proxy_model::{
    Access, Acme, Agent, AgentAddress, Allow, BindAddress, Certificate, ErrorPages,
    ExternalAccount, Host, JwtKeySource, Listener, ListenerTls, Model, NamedPath, PeerFault,
    PeerRule, Place, Policies, Route, Service, Setting, Sources, StaticFiles, TargetAddress,
    Upstream, UpstreamTls,
};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};

/// The highest TCP port that needs a privilege, and the node's permission.
const LAST_PRIVILEGED_PORT: u16 = 1_023;

/// Reports each setting of the bundle that uses a forbidden part of the machine, and replaces names
/// by the node's paths.
pub(crate) fn check(
    model: &mut Model,
    bundle: &BundleFiles,
    files: Files<'_>,
    faults: &mut Diagnostics,
) {
    let node = model.control_plane.as_ref().filter(|_| bundle.is_on_node);
    // Without the block in the node's own file, everything is forbidden.
    let allow = || node.map(|node| node.allow.clone()).unwrap_or_default();
    let allow = bundle.is_on_node.then(allow);
    let peers = PeerRule {
        loopback: allow.as_ref().is_some_and(|it| *it.upstreams_on_loopback),
        admin: bundle.is_on_node.then_some(*model.admin.address).flatten(),
    };
    let mut reach = ReachCheck {
        bundle,
        files,
        sources: &model.sources,
        data: node.map(|node| DataFolder::new(&node.data_dir)),
        allow,
        peers,
        faults,
    };
    for listener in &mut model.listeners {
        reach.listener(listener);
    }
    for route in &mut model.routes {
        reach.route(route);
    }
    for upstream in &model.upstreams {
        reach.upstream(upstream);
    }
    for agent in &mut model.agents {
        reach.agent(agent);
    }
    model.peers = Some(peers);
}

struct ReachCheck<'a, 'f> {
    bundle: &'a BundleFiles,
    files: Files<'f>,
    sources: &'a Sources,
    /// `None` in the control plane, like `allow`.
    data: Option<DataFolder>,
    allow: Option<Allow>,
    peers: PeerRule,
    faults: &'a mut Diagnostics,
}

impl ReachCheck<'_, '_> {
    fn listener(&mut self, listener: &mut Listener) {
        let address = &listener.address;
        let is_allowed = match &address.value {
            BindAddress::Tcp(own) if own.port() == 0 || own.port() > LAST_PRIVILEGED_PORT => true,
            BindAddress::Tcp(_) | BindAddress::Unix(_) => {
                let mut listeners = self.allowed(|it| &it.listeners);
                listeners.any(|allowed| covers(allowed, address))
            }
        };
        if !is_allowed {
            let message = format!("listener \"{}\" has the address {address}", listener.name);
            let remedy = format!("listeners \"{address}\"");
            self.require_permission(address.place(), message, &remedy);
        }
        self.access(&listener.access);
        self.error_pages(&listener.error_pages);
        let Some(tls) = &mut listener.tls else {
            return;
        };
        let ListenerTls {
            place: _,
            certificates,
            acme,
            min_version: _,
            max_version: _,
            alpn: _,
            client_auth,
        } = tls;
        for certificate in certificates {
            let Certificate {
                cert_file,
                key_file,
                ocsp_file,
                server_names: _,
            } = certificate;
            self.file(Some(cert_file));
            self.file(Some(key_file));
            self.file(ocsp_file.as_ref());
        }
        self.file(client_auth.as_ref().map(|auth| &auth.ca_file));
        for acme in acme {
            self.acme(acme);
        }
    }

    /// Checks an `acme` block: its folder and its program belong to the node, and are given by name
    /// or by path.
    fn acme(&mut self, acme: &mut Acme) {
        let Acme {
            place,
            hosts: _,
            directory,
            directory_ca_file,
            email: _,
            terms_agreed: _,
            challenge: _,
            dns_command,
            dns_command_timeout: _,
            eab,
            key_type: _,
            storage,
        } = acme;
        self.file(directory_ca_file.as_ref());
        if let Some(ExternalAccount {
            key_id,
            key_file: _,
        }) = eab
        {
            let place = key_id.place().unwrap_or(*place);
            let message = "the key of an external account is a secret".to_owned();
            self.refuse(
                place,
                message,
                "let the node's own file obtain the first certificate",
            );
        }
        let written = match storage.place() {
            Some(place) => self.name_as_written(&storage.value.to_string_lossy(), place),
            None => storage.value.to_string_lossy().into_owned(),
        };
        let storage_place = storage.place().or(Some(*place));
        let storage_of_node = self.allowed_path(&written, |it| &it.acme_storages);
        if let Some(path) = storage_of_node {
            storage.value = path;
        } else {
            let message = format!(
                "certificates from {} are stored in `{written}`",
                **directory
            );
            self.require_permission(
                storage_place,
                message,
                &suggested("acme-storages", &written),
            );
        }
        let Some(command) = dns_command else {
            return;
        };
        let place = command.place().or(Some(*place));
        let written = match command.place() {
            Some(place) => self.name_as_written(&command.value.to_string_lossy(), place),
            None => String::new(),
        };
        let command_of_node = self.allowed_path(&written, |it| &it.dns_commands);
        if let Some(path) = command_of_node {
            command.value = path;
        } else {
            let message = format!("the program `{written}` belongs to the machine");
            self.require_permission(place, message, &suggested("dns-commands", &written));
        }
    }

    /// The path that the node allows under `name`.
    fn allowed_path(
        &self,
        name: &str,
        list: impl Fn(&Allow) -> &Vec<Setting<NamedPath>>,
    ) -> Option<PathBuf> {
        let mut paths = self.allowed(list);
        let found = paths.find(|path| path.name == name || path.path == Path::new(name));
        found.map(|path| path.path.clone())
    }

    fn route(&mut self, route: &mut Route) {
        if let Service::Static(files) = &mut route.service {
            self.static_root(files);
        }
        let Policies {
            rate_limit,
            access,
            basic_auth,
            jwt,
            error_pages,
            ..
        } = &route.policies;
        self.access(access);
        self.error_pages(error_pages);
        for file in basic_auth.iter().flat_map(|auth| &auth.users_files) {
            self.path(&file.path, file.place());
        }
        match jwt.as_ref().map(|jwt| &jwt.keys) {
            Some(JwtKeySource::File(file)) => self.path(&file.path, file.place()),
            Some(JwtKeySource::Secret(file)) => {
                let message = "the bundle contains the secret of tokens".to_owned();
                let help =
                    "verify tokens by public keys: `jwks-url`, or a `jwks-file` of the bundle";
                self.refuse(file.place().unwrap_or_default(), message, help);
            }
            // The targets of its upstream are checked by the rules for all upstreams.
            Some(JwtKeySource::Remote(_)) | None => {}
        }
        let store = rate_limit.as_ref().and_then(|limit| limit.store.as_ref());
        let Some(store) = store else {
            return;
        };
        let address = store.value.address();
        let peer: Option<SocketAddr> = address.parse().ok();
        let is_allowed = self
            .allowed(|it| &it.rate_limit_stores)
            .any(|listed| listed.value == address);
        if !is_allowed && peer.is_none_or(|peer| self.peers.check(peer, is_own).is_err()) {
            let message = format!("the rate limit has its store at {address}");
            let remedy = format!("rate-limit-stores \"{address}\"");
            self.require_permission(store.place(), message, &remedy);
        }
    }

    /// Checks that files of networks are files of the bundle.
    fn access(&mut self, access: &Access) {
        let Access {
            allow: _,
            allow_files,
            deny: _,
            deny_files,
        } = access;
        for file in allow_files.iter().chain(deny_files) {
            self.path(&file.path, file.place());
        }
    }

    /// Checks that files of pages are files of the bundle.
    fn error_pages(&mut self, pages: &ErrorPages) {
        for page in pages {
            self.file(page.file.as_ref());
        }
    }

    /// Checks a root: a folder of the bundle, or a static root of the node by its name or its path.
    fn static_root(&mut self, files: &mut StaticFiles) {
        let Some(place) = files.root.place() else {
            return;
        };
        let written = files.root.to_string_lossy().into_owned();
        let relative = self.bundle.relative(&written);
        if let Some(relative) = &relative
            && self.files.has_folder(&self.in_folder(relative))
        {
            return;
        }
        let name = self.name_as_written(&written, place);
        if relative.is_none() && !name.starts_with('/') {
            self.faults.push(outside(&name, place));
            return;
        }
        match self.allowed_root(&name) {
            Some(root)
                if self
                    .data
                    .as_ref()
                    .is_some_and(|it| it.is_reached_from(&root)) =>
            {
                let message = format!("`{name}` leads to the node's data folder");
                self.refuse(place, message, "its files are secrets of this node");
            }
            Some(root) => files.root.value = root,
            None => {
                let message = format!("`{name}` is not a folder of the bundle");
                let remedy = if name.starts_with('/') {
                    format!("static-roots \"{name}\"")
                } else {
                    format!("static-roots \"{name}=/path\"")
                };
                self.require_permission(Some(place), message, &remedy);
            }
        }
    }

    /// The canonical path of a static root that the node allows.
    fn allowed_root(&self, name: &str) -> Option<PathBuf> {
        let mut roots = self.allowed(|it| &it.static_roots);
        if let Some(root) = roots.find(|root| root.name == name) {
            return root.path.canonicalize().ok();
        }
        let wanted = Path::new(name).is_absolute().then_some(name)?;
        let wanted = Path::new(wanted).canonicalize().ok()?;
        let mut roots = self.allowed(|it| &it.static_roots);
        let is_below = |root: &Setting<NamedPath>| {
            let root = root.path.canonicalize();
            root.is_ok_and(|root| wanted.starts_with(root))
        };
        roots.any(is_below).then_some(wanted)
    }

    fn upstream(&mut self, upstream: &Upstream) {
        for target in &upstream.targets {
            let TargetAddress { host, port } = &target.address.value;
            let ip = match host {
                Host::Ip(ip) => *ip,
                Host::Name(name) | Host::Service(name) if is_localhost(name) => {
                    Ipv4Addr::LOCALHOST.into()
                }
                // Names are skipped here, because each answer of DNS is checked.
                Host::Name(_) | Host::Service(_) => continue,
            };
            let Err(fault) = self.peers.check(SocketAddr::new(ip, *port), is_own) else {
                continue;
            };
            let message = format!("the target {} is refused: {fault}", target.address);
            match fault {
                PeerFault::Loopback => {
                    self.require_permission(
                        target.address.place(),
                        message,
                        "upstreams-on-loopback #true",
                    );
                }
                PeerFault::LinkLocal | PeerFault::Metadata | PeerFault::Admin => {
                    let place = target.address.place().unwrap_or(target.place);
                    self.refuse(place, message, "no bundle may have such a target");
                }
            }
        }
        if let Some(tls) = &upstream.tls {
            let UpstreamTls {
                place: _,
                sni: _,
                ca_file,
                cert_file,
                key_file,
                verify: _,
                pins: _,
            } = tls;
            for file in [ca_file, cert_file, key_file] {
                self.file(file.as_ref());
            }
        }
    }

    fn agent(&mut self, agent: &mut Agent) {
        // The targets of its upstream are checked by the rules for all upstreams.
        let AgentAddress::Socket(written) = &mut agent.address else {
            return;
        };
        let place = written.place().unwrap_or(agent.place);
        if !written.as_os_str().is_empty() {
            let message = format!("the bundle contains the socket of agent \"{}\"", agent.name);
            let help = "leave it out, and write `control-plane { allow { agents \"name=/path\" } }` in the \
                        node's own file";
            return self.refuse(place, message, help);
        }
        let socket = self
            .allowed(|it| &it.agents)
            .find(|socket| socket.name == agent.name);
        if let Some(path) = socket.map(|socket| socket.path.clone()) {
            written.value = path;
            return;
        }
        let message = format!("agent \"{}\" belongs to the machine", agent.name);
        let remedy = format!("agents \"{}=/path\"", agent.name);
        self.require_permission(Some(place), message, &remedy);
    }

    /// Reports a file outside of the bundle.
    fn file(&mut self, file: Option<&Setting<PathBuf>>) {
        if let Some(file) = file {
            self.path(&file.value, file.place());
        }
    }

    fn path(&mut self, file: &Path, place: Option<Place>) {
        let Some(place) = place else {
            return;
        };
        let written = file.to_string_lossy();
        if self.bundle.relative(&written).is_none() {
            let name = self.name_as_written(&written, place);
            self.faults.push(outside(&name, place));
        }
    }

    /// The settings of one list of the node's `allow` block.
    fn allowed<T: 'static>(
        &self,
        list: impl Fn(&Allow) -> &Vec<Setting<T>>,
    ) -> impl Iterator<Item = &Setting<T>> {
        self.allow.iter().flat_map(list)
    }

    /// Converts a path back to its form before it was resolved against the folder of its file.
    fn name_as_written(&self, path: &str, place: Place) -> String {
        let file = self.sources.name(place.file);
        let folder = file.rsplit_once('/').map(|(folder, _)| folder);
        let name = folder.and_then(|folder| path.strip_prefix(folder)?.strip_prefix('/'));
        name.unwrap_or(path).to_owned()
    }

    fn in_folder(&self, relative: &str) -> String {
        match &*self.bundle.folder {
            "" => relative.to_owned(),
            folder => format!("{folder}/{relative}"),
        }
    }

    /// Reports a use that `remedy` in the node's own file allows: an error on the node, a warning
    /// elsewhere.
    fn require_permission(&mut self, place: Option<Place>, message: String, remedy: &str) {
        let (code, label) = match self.allow {
            Some(_) => (DiagnosticCode::BundleReach, "this node does not allow it"),
            None => (
                DiagnosticCode::NodeAllowance,
                "nodes reject it unless they allow it",
            ),
        };
        let fault = Diagnostic::new(code, place.unwrap_or_default(), message);
        let help =
            format!("write `control-plane {{ allow {{ {remedy} }} }}` in the node's own file");
        self.faults.push(fault.label(label).help(help));
    }

    fn refuse(&mut self, place: Place, message: String, help: &str) {
        let fault = Diagnostic::new(DiagnosticCode::BundleReach, place, message);
        self.faults
            .push(fault.label("never in a bundle").help(help));
    }
}

/// The setting of the `allow` block that allows `name`, which may be a path.
fn suggested(list: &str, name: &str) -> String {
    if name.starts_with('/') {
        format!("{list} \"{name}\"")
    } else {
        format!("{list} \"{name}=/path\"")
    }
}

/// Returns true if a listener may bind `own` where `allowed` is allowed.
fn covers(allowed: &BindAddress, own: &BindAddress) -> bool {
    match (allowed, own) {
        (BindAddress::Tcp(allowed), BindAddress::Tcp(own)) => {
            let any = match allowed.ip() {
                IpAddr::V4(ip) => ip.is_unspecified() && own.is_ipv4(),
                IpAddr::V6(ip) => ip.is_unspecified(),
            };
            allowed.port() == own.port() && (any || allowed.ip() == own.ip())
        }
        (allowed, own) => allowed == own,
    }
}

fn is_localhost(name: &str) -> bool {
    name == "localhost" || name.ends_with(".localhost")
}

/// Returns true if this machine has the address: only then can a socket be bound to it.
fn is_own(ip: IpAddr) -> bool {
    UdpSocket::bind((ip, 0)).is_ok()
}
