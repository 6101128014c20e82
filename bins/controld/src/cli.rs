//! The command line.

use clap::{ArgAction, Args, Parser, Subcommand};
use control_app::AcmeAuthorities;
use control_domain::{HeartbeatInterval, Quotas, Retention};
use control_sso::WebUrl;
use ipnet::IpNet;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// Control plane of a fleet of proxies.
#[derive(Debug, Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) serve: ServeArgs,
    /// A KDL file of settings with the names of these flags; flags and the environment override it.
    #[arg(long, env = "CONTROLD_CONFIG", global = true)]
    pub(crate) config: Option<PathBuf>,
}

/// Commands other than serving.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Administrators of the installation.
    #[command(subcommand)]
    Admin(AdminCommand),
    /// The audit log.
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Copies a SQLite database while it is in use, without its sessions. The key file is not in the copy.
    Backup(BackupArgs),
    /// Checks the settings and the files that they name, without serving; exit code 1 for a fault.
    Check(ServeArgs),
    /// The keys that seal secrets.
    #[command(subcommand)]
    Key(KeyCommand),
}

/// Commands for administrators.
#[derive(Debug, Subcommand)]
pub(crate) enum AdminCommand {
    /// Creates an administrator, and the organization if it does not exist.
    Create(CreateAdminArgs),
    /// Sets a user's password and ends its sessions.
    SetPassword(SetPasswordArgs),
    /// Removes a user's second factor and ends its sessions.
    ResetSecondFactor(UserArgs),
    /// Switches an organization's single sign-on off and ends its sessions.
    DeleteSso(OrgArgs),
    /// Ends every session.
    EndSessions(StateArgs),
    /// Ends every session, API key, enrolment token, invitation and link, as after the restore of a backup.
    EndCredentials(StateArgs),
}

/// Commands for the audit log.
#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// Compares every entry with the hash chain; exit code 1 if one was changed or removed.
    Verify(VerifyArgs),
}

/// The log to verify, and its archives.
#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    pub(crate) state: StateArgs,
    /// Reads the archives in the object store, too, and compares their digests.
    #[arg(long)]
    pub(crate) archives: bool,
}

/// Commands for the keys that seal secrets.
#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Creates a key, and seals all secrets with it. A second run continues an interrupted one.
    Rotate(StateArgs),
    /// Drops keys that no secret needs.
    Prune(StateArgs),
}

/// The location of the state.
#[derive(Clone, Debug, Args)]
pub(crate) struct StateArgs {
    /// The folder of the keys, and of the database unless `--database` is given. Closed to other users; one that is
    /// open to them, and has files but no state of a control plane, is refused.
    #[arg(long, env = "CONTROLD_DATA_DIR", default_value = "data")]
    pub(crate) data_dir: PathBuf,
    /// `postgres://…` instead of a file in the data directory.
    #[arg(long, env = "CONTROLD_DATABASE")]
    pub(crate) database: Option<String>,
    /// `s3://BUCKET/PREFIX`, perhaps with `?endpoint=URL&region=NAME`, instead of a folder in the data
    /// directory; credentials are read from `AWS_ACCESS_KEY_ID` and further `AWS_…` variables. Shared by replicas.
    #[arg(long, env = "CONTROLD_OBJECT_STORE")]
    pub(crate) object_store: Option<String>,
    /// The file of the keys that seal secrets; shared by replicas. Created at the first start.
    #[arg(long, env = "CONTROLD_MASTER_KEY_FILE")]
    pub(crate) master_key_file: Option<PathBuf>,
}

/// The destination of the copy.
#[derive(Debug, Args)]
pub(crate) struct BackupArgs {
    #[command(flatten)]
    pub(crate) state: StateArgs,
    /// The file to create.
    #[arg(long)]
    pub(crate) to: PathBuf,
}

/// Settings of `serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) state: StateArgs,
    /// The address to listen on.
    #[arg(
        long,
        env = "CONTROLD_LISTEN",
        default_value = "127.0.0.1:8443",
        value_parser = listen_address
    )]
    pub(crate) listen: SocketAddr,
    /// The certificate chain to serve TLS with, in PEM; read again on SIGHUP.
    #[arg(long, env = "CONTROLD_TLS_CERT", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The certificate's private key, in PEM.
    #[arg(long, env = "CONTROLD_TLS_KEY", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Networks or addresses of balancers with a trusted `X-Forwarded-For`, such as 10.0.0.0/8. Without a
    /// certificate, connections from other addresses than these and loopback are closed.
    #[arg(
        long,
        env = "CONTROLD_TRUSTED_PROXIES",
        value_delimiter = ',',
        value_parser = network
    )]
    pub(crate) trusted_proxies: Vec<IpNet>,
    /// A separate address for `/metrics`, without TLS. Absent: `/metrics` is served at `--listen`, to clients on this
    /// machine only.
    #[arg(long, env = "CONTROLD_METRICS_LISTEN", value_parser = listen_address)]
    pub(crate) metrics_listen: Option<SocketAddr>,
    /// Seconds between two heartbeats of a node, 1 to 300; a node that misses three is offline. Gates of
    /// rollouts get figures at the same interval. The same for all replicas.
    #[arg(
        long,
        env = "CONTROLD_HEARTBEAT_SECS",
        default_value_t = HeartbeatInterval::default().secs(),
        value_parser = clap::value_parser!(u16).range(1..=300)
    )]
    pub(crate) heartbeat_secs: u16,
    /// Maximum number of open connections; further ones are closed at once. Each node keeps one open.
    #[arg(
        long,
        env = "CONTROLD_MAX_CONNECTIONS",
        default_value_t = 32_768,
        value_parser = clap::value_parser!(u32).range(1..=1_000_000)
    )]
    pub(crate) max_connections: u32,
    #[command(flatten)]
    pub(crate) quotas: QuotaArgs,
    #[command(flatten)]
    pub(crate) retention: RetentionArgs,
    /// The address under which browsers reach the control plane, such as `https://control.example.com`. Required for
    /// single sign-on by OpenID Connect. The same for all replicas.
    #[arg(long, env = "CONTROLD_PUBLIC_URL", value_parser = public_url)]
    pub(crate) public_url: Option<String>,
    /// Allows identity providers in private networks, and without TLS.
    #[arg(
        long,
        env = "CONTROLD_SSO_PRIVATE_ADDRESSES",
        default_value_t = false,
        action = ArgAction::Set
    )]
    pub(crate) sso_private_addresses: bool,
    #[command(flatten)]
    pub(crate) acme: AcmeArgs,
}

/// Certificate authorities for managed certificates. The same for all replicas.
#[derive(Clone, Debug, Args)]
pub(crate) struct AcmeArgs {
    /// URLs of the directories of the certificate authorities that tenants may choose from, exactly as they write
    /// them. One in a private network has to be named here; what it names elsewhere has to be public.
    #[arg(
        long,
        env = "CONTROLD_ACME_DIRECTORIES",
        value_delimiter = ',',
        default_values_t = AcmeAuthorities::default().directories,
        value_parser = directory_url
    )]
    acme_directories: Vec<String>,
    /// Root certificates for the servers of these authorities, in PEM, instead of the system's.
    #[arg(long, env = "CONTROLD_ACME_CA_FILE")]
    acme_ca_file: Option<PathBuf>,
}

impl From<AcmeArgs> for AcmeAuthorities {
    fn from(args: AcmeArgs) -> Self {
        let AcmeArgs {
            acme_directories,
            acme_ca_file,
        } = args;
        Self {
            directories: acme_directories,
            ca_file: acme_ca_file,
        }
    }
}

/// Retention of values that have ended. The same for all replicas.
#[derive(Clone, Copy, Debug, Args)]
#[expect(clippy::struct_field_names, reason = "the names of the settings")]
pub(crate) struct RetentionArgs {
    /// Days that a rollout is kept after its end; 0: no limit.
    #[arg(long, env = "CONTROLD_ROLLOUT_RETENTION_DAYS", default_value_t = Retention::default().rollouts)]
    rollout_retention_days: u32,
    /// Days since its creation that a bundle without nodes, orders and rollouts is kept; 0: no limit.
    #[arg(long, env = "CONTROLD_BUNDLE_RETENTION_DAYS", default_value_t = Retention::default().bundles)]
    bundle_retention_days: u32,
    /// Days that a drift event is kept after it was resolved; 0: no limit.
    #[arg(long, env = "CONTROLD_DRIFT_RETENTION_DAYS", default_value_t = Retention::default().drift)]
    drift_retention_days: u32,
    /// Days that an enrolment token or an API key is kept after it expired or was revoked; 0: no limit.
    #[arg(long, env = "CONTROLD_TOKEN_RETENTION_DAYS", default_value_t = Retention::default().tokens)]
    token_retention_days: u32,
    /// Days that an entry of the audit log stays in the database; older ones are moved to archives in the object store,
    /// about one a day. At least 9 are kept; 0: no limit.
    #[arg(long, env = "CONTROLD_AUDIT_RETENTION_DAYS", default_value_t = Retention::default().audit)]
    audit_retention_days: u32,
    /// Days that counts of requests per six hours are kept; a week and the week before require 15. Counts per hour are
    /// kept for at most nine days, per five minutes for three hours. 0: no limit.
    #[arg(long, env = "CONTROLD_TRAFFIC_RETENTION_DAYS", default_value_t = Retention::default().traffic)]
    traffic_retention_days: u32,
}

impl From<RetentionArgs> for Retention {
    fn from(args: RetentionArgs) -> Self {
        let RetentionArgs {
            rollout_retention_days,
            bundle_retention_days,
            drift_retention_days,
            token_retention_days,
            audit_retention_days,
            traffic_retention_days,
        } = args;
        Self {
            rollouts: rollout_retention_days,
            bundles: bundle_retention_days,
            drift: drift_retention_days,
            tokens: token_retention_days,
            audit: audit_retention_days,
            traffic: traffic_retention_days,
        }
    }
}

/// Maxima of each organization. The same for all replicas.
#[derive(Clone, Copy, Debug, Args)]
#[expect(clippy::struct_field_names, reason = "the names of the settings")]
pub(crate) struct QuotaArgs {
    /// Projects that an organization may have.
    #[arg(long, env = "CONTROLD_MAX_PROJECTS_PER_ORG", default_value_t = Quotas::default().projects)]
    max_projects_per_org: u64,
    /// Nodes that an organization may have in all projects.
    #[arg(long, env = "CONTROLD_MAX_NODES_PER_ORG", default_value_t = Quotas::default().nodes)]
    max_nodes_per_org: u64,
    /// API keys that an organization may have, revoked ones too until they are deleted.
    #[arg(long, env = "CONTROLD_MAX_API_KEYS_PER_ORG", default_value_t = Quotas::default().api_keys)]
    max_api_keys_per_org: u64,
    /// Bundles that an organization may have, rejected and revoked ones too until they are deleted.
    #[arg(long, env = "CONTROLD_MAX_BUNDLES_PER_ORG", default_value_t = Quotas::default().bundles)]
    max_bundles_per_org: u64,
    /// Bytes of archives that an organization may have in all bundles.
    #[arg(
        long,
        env = "CONTROLD_MAX_ARCHIVE_BYTES_PER_ORG",
        default_value_t = Quotas::default().archive_bytes
    )]
    max_archive_bytes_per_org: u64,
    /// Webhooks that an organization may have in all projects.
    #[arg(long, env = "CONTROLD_MAX_WEBHOOKS_PER_ORG", default_value_t = Quotas::default().webhooks)]
    max_webhooks_per_org: u64,
}

impl From<QuotaArgs> for Quotas {
    fn from(args: QuotaArgs) -> Self {
        let QuotaArgs {
            max_projects_per_org,
            max_nodes_per_org,
            max_api_keys_per_org,
            max_bundles_per_org,
            max_archive_bytes_per_org,
            max_webhooks_per_org,
        } = args;
        Self {
            projects: max_projects_per_org,
            nodes: max_nodes_per_org,
            api_keys: max_api_keys_per_org,
            bundles: max_bundles_per_org,
            archive_bytes: max_archive_bytes_per_org,
            webhooks: max_webhooks_per_org,
        }
    }
}

/// An address without a path, to which paths are added.
fn public_url(text: &str) -> Result<String, String> {
    let form = "is not an address such as https://control.example.com";
    let base = text.strip_suffix('/').unwrap_or(text);
    let (_, authority) = base.split_once("://").ok_or(form)?;
    let is_bare = WebUrl::parse(base).is_some() && !authority.contains(['/', '?']);
    is_bare.then(|| base.to_owned()).ok_or(form.to_owned())
}

/// A directory over TLS, as authorities demand.
fn directory_url(text: &str) -> Result<String, String> {
    let form = "is not an address such as https://ca.example.com/acme/directory";
    let url = WebUrl::parse(text).filter(WebUrl::is_https);
    url.map(|_| text.to_owned()).ok_or(form.to_owned())
}

/// A network; an address is one of its own.
fn network(text: &str) -> Result<IpNet, String> {
    let form = "is neither a network nor an IP address, such as 10.0.0.0/8 or 10.0.0.1";
    let address = || text.parse::<IpAddr>().map(IpNet::from);
    let network = text.parse().or_else(|_| address());
    network.map_err(|_| form.to_owned())
}

/// Names are not resolved: one may have several addresses, or another tomorrow.
fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let form = "is not an IP address with a port, such as 127.0.0.1:8443";
    text.parse().map_err(|_| form.to_owned())
}

/// A user, by its address.
#[derive(Debug, Args)]
pub(crate) struct UserArgs {
    #[command(flatten)]
    pub(crate) state: StateArgs,
    /// The address that the user signs in with.
    #[arg(long)]
    pub(crate) email: String,
}

/// An organization.
#[derive(Debug, Args)]
pub(crate) struct OrgArgs {
    #[command(flatten)]
    pub(crate) state: StateArgs,
    /// Its identifier or its name.
    #[arg(long)]
    pub(crate) org: String,
}

/// A user's next password.
#[derive(Debug, Args)]
pub(crate) struct SetPasswordArgs {
    #[command(flatten)]
    pub(crate) user: UserArgs,
    /// A file with the password in its first line; absent: one is created and printed.
    #[arg(long)]
    pub(crate) password_file: Option<PathBuf>,
}

/// The new administrator.
#[derive(Debug, Args)]
pub(crate) struct CreateAdminArgs {
    #[command(flatten)]
    pub(crate) state: StateArgs,
    /// The address to sign in with.
    #[arg(long)]
    pub(crate) email: String,
    /// The name to show.
    #[arg(long, default_value = "Administrator")]
    pub(crate) name: String,
    /// The organization, which is created if it does not exist. Absent: the only one there is, or a new one, "default".
    #[arg(long)]
    pub(crate) org_name: Option<String>,
    /// A file with the password in its first line; absent: one is created and printed.
    #[arg(long)]
    pub(crate) password_file: Option<PathBuf>,
    /// Creates an API key of this name with full access, and prints it.
    #[arg(long)]
    pub(crate) api_key_name: Option<String>,
}
