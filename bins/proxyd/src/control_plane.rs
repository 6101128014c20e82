//! Client of the control plane, on its own thread.

mod metrics;

use crate::control_plane::metrics::ClientMetrics;
use crate::traffic::TrafficMeter;
use control_client::{
    Certificates, Client, HeldCertificate, Host, Measured, Observation, Renewed, Settings, Started,
};
use control_wire::HttpChallenge;
use proxy_model::ControlPlane;
use proxy_model::registry::top;
use proxy_server::{
    BundleCheck, BundleFiles, Deliveries, Delivery, Follower, LiveOutcome, PrivateKeys, Stop,
};
use proxy_telemetry::Process;
use rustix::time::{ClockId, clock_gettime};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::sync::oneshot;

const ENTRY_FILE: &str = "proxy.kdl";
/// Interval of attempts to open an unusable data folder.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);

/// Opens the data folder, and finds the bundle to start with.
/// An unusable folder does not prevent the proxy from serving; the client tries again later.
pub(crate) fn follow(settings: &ControlPlane, deliveries: Deliveries) -> Follower {
    let settings = client_settings(settings);
    let mut host = ProxyHost::new(deliveries);
    match Client::open(settings.clone()) {
        Ok((mut client, started)) => Follower {
            first: started.as_ref().map(|started| host.begin(started)),
            start: Box::new(move |outcome| {
                if matches!(outcome, Some(Err(_))) {
                    host.in_force = None;
                }
                if let Some((started, outcome)) = started.zip(outcome) {
                    client.started(&started, outcome);
                }
                spawn(async move || client.run(&mut host).await)
            }),
        },
        Err(error) => {
            tracing::error!(%error, "the control plane client has not started");
            Follower {
                first: None,
                start: Box::new(move |_| spawn(async move || retry(settings, &mut host).await)),
            }
        }
    }
}

async fn retry(settings: Settings, host: &mut ProxyHost) {
    loop {
        tokio::time::sleep(RETRY_INTERVAL).await;
        let Ok((mut client, started)) = Client::open(settings.clone()) else {
            continue;
        };
        if let Some(started) = started {
            let outcome = host.activate(started.clone()).await;
            client.started(&started, outcome);
        }
        client.run(host).await;
    }
}

/// Runs `work` on its own thread, until the result is dropped.
fn spawn<F: Future<Output = ()>>(work: impl FnOnce() -> F + Send + 'static) -> Stop {
    let (stop, stopped) = oneshot::channel::<()>();
    let run = move || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        match runtime.enable_all().build() {
            Ok(runtime) => runtime.block_on(async {
                tokio::select! {
                    () = work() => {}
                    _ = stopped => {}
                }
            }),
            Err(error) => tracing::error!(%error, "the control plane client cannot start"),
        }
    };
    let thread = thread::Builder::new().name("control-plane".to_owned());
    if let Err(error) = thread.spawn(run) {
        tracing::error!(%error, "the control plane client cannot start");
    }
    Box::new(stop)
}

fn client_settings(settings: &ControlPlane) -> Settings {
    let ControlPlane {
        place: _,
        url,
        allow_plain_http: _, // Checked with the configuration.
        project,
        enrolment_token_file,
        data_dir,
        machine_key_file,
        ca_file,
        node_name,
        labels,
        allow: _, // The load of a bundle reads it.
    } = settings;
    let labels = labels
        .iter()
        .map(|label| (label.value.name.clone(), label.value.value.clone()));
    Settings {
        url: url.value.clone(),
        project: project.as_ref().map(|project| project.value.clone()),
        enrolment_token_file: enrolment_token_file.as_ref().map(|file| file.value.clone()),
        data_dir: data_dir.value.clone(),
        machine_key_file: machine_key_file.as_ref().map(|file| file.value.clone()),
        ca_file: ca_file.as_ref().map(|file| file.value.clone()),
        name: node_name
            .as_ref()
            .map_or_else(host_name, |name| name.value.clone()),
        labels: labels.collect(),
        version: env!("CARGO_PKG_VERSION"),
        schema_version: top::SCHEMA_VERSION.default(),
    }
}

fn host_name() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}

/// Interface of this process for the client.
struct ProxyHost {
    metrics: ClientMetrics,
    deliveries: Deliveries,
    traffic: TrafficMeter,
    /// The active bundle, with its current certificates; `None` for the node's own configuration.
    in_force: Option<Delivery>,
    /// Tokens of HTTP-01 challenges that the listeners answer for the control plane.
    tokens: Vec<String>,
    /// Processor time and clock at the last heartbeat.
    last: Option<(Duration, Duration)>,
}

impl ProxyHost {
    fn new(deliveries: Deliveries) -> Self {
        Self {
            metrics: ClientMetrics::new(deliveries.registry()),
            deliveries,
            traffic: TrafficMeter::default(),
            in_force: None,
            tokens: Vec::new(),
            last: None,
        }
    }

    /// Records the bundle that the process starts with.
    fn begin(&mut self, started: &Started) -> Delivery {
        let delivery = delivery_of(started);
        self.in_force = Some(delivery.clone());
        delivery
    }

    /// Records a new active bundle, and counts its traffic from now on.
    fn switched_to(&mut self, delivery: Delivery) {
        self.in_force = Some(delivery);
        self.traffic.begin(&self.deliveries.registry().snapshot());
    }

    /// Processor use since the last call, in percent of one core.
    fn cpu_percent(&mut self) -> f64 {
        let now = monotonic();
        let Some(cpu) = Process::read().cpu else {
            return 0.0;
        };
        let (cpu_before, before) = self.last.replace((cpu, now)).unwrap_or_default();
        let elapsed = now.saturating_sub(before).as_secs_f64();
        let used = cpu.saturating_sub(cpu_before).as_secs_f64();
        if elapsed > 0.0 {
            used / elapsed * 100.0
        } else {
            0.0
        }
    }
}

impl Host for ProxyHost {
    async fn activate(&mut self, started: Started) -> Result<(), Vec<String>> {
        let delivery = delivery_of(&started);
        self.deliveries.apply(Some(delivery.clone())).await?;
        self.switched_to(delivery);
        Ok(())
    }

    async fn try_out(&mut self, started: Started) -> Result<Vec<String>, Vec<String>> {
        let delivery = delivery_of(&started);
        let tests = self.deliveries.rehearse_and_apply(delivery.clone()).await?;
        let LiveOutcome {
            mut failures,
            known,
        } = Box::pin(tests.outcome(monotonic)).await;
        if failures.is_empty() {
            // Excludes the requests of live tests from the new bundle's traffic.
            self.switched_to(delivery);
            return Ok(known);
        }
        if let Err(faults) = self.deliveries.apply(self.in_force.clone()).await {
            failures.extend(
                faults
                    .into_iter()
                    .map(|fault| format!("cannot revert: {fault}")),
            );
        }
        Err(failures)
    }

    async fn renew(&mut self, renewed: Renewed) -> Result<(), Vec<String>> {
        let Renewed {
            folder,
            certificates,
        } = renewed;
        let in_force = self.in_force.as_ref();
        let check = in_force.map(|delivery| delivery.files.check.clone());
        let check = check.unwrap_or_else(|| BundleCheck::new(|| Ok(())));
        let renewed = delivery(&folder, &certificates, check);
        self.deliveries.apply(Some(renewed.clone())).await?;
        self.in_force = Some(renewed);
        Ok(())
    }

    fn answer_challenges(&mut self, challenges: &[HttpChallenge]) {
        let answers = self.deliveries.challenges();
        for token in self.tokens.drain(..) {
            answers.withdraw(&token);
        }
        for HttpChallenge {
            host: _, // A token is of one host.
            token,
            key_authorization,
        } in challenges
        {
            answers.publish(token, key_authorization);
            self.tokens.push(token.clone());
        }
    }

    fn observe(&mut self, seen: Observation) {
        self.metrics.update(self.deliveries.registry(), &seen);
    }

    fn measure(&mut self) -> Measured {
        let cpu_percent = self.cpu_percent();
        let traffic = self.traffic.read(&self.deliveries.registry().snapshot());
        Measured {
            cpu_percent,
            traffic: Some(traffic),
        }
    }
}

fn delivery_of(started: &Started) -> Delivery {
    let Started {
        bundle,
        folder,
        certificates,
    } = started;
    let files = bundle.unpacked_in(folder);
    let check = BundleCheck::new(move || files.check());
    delivery(folder, certificates, check)
}

fn delivery(folder: &Path, certificates: &Certificates, check: BundleCheck) -> Delivery {
    let mut keys = PrivateKeys::default();
    for (file, held) in certificates.by_key_file() {
        let HeldCertificate { chain_pem, key_pem } = held;
        keys.insert(folder.join(file), chain_pem, key_pem.clone());
    }
    let entry_file = folder.join(ENTRY_FILE);
    Delivery {
        files: Arc::new(BundleFiles { entry_file, check }),
        keys,
    }
}

fn monotonic() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    Duration::try_from(now).unwrap_or_default()
}
