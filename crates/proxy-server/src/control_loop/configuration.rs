//! Loading of the configuration, with every check that needs no serving.

use crate::config::delivery::{Delivery, PrivateKeys};
use crate::config::options::Source;
use crate::config::worst_case::WorstCase;
use crate::runtime::system_clock::now;
use crate::runtime::system_memory;
use crate::worker::worker_pool::worker_count;
use crate::{admin, tls};
use proxy_config::{Diagnostic, DiagnosticCode, Files, Loaded, Report};
use proxy_model::{ConfigTest, FailedTest, Model, Place, Sources};
use proxy_plan::failed_tests;
use rustix::process::{Resource, getrlimit};

/// Loads the configuration of `config`, and checks it as far as possible without serving:
/// certificates and the admin interface's token are read, too.
///
/// # Errors
/// All diagnostics.
pub fn load(config: &Source) -> Result<Loaded, Report> {
    check(read(config)?, &PrivateKeys::default())
}

/// A way to load a configuration.
pub(crate) type Load = fn(&Source) -> Result<Loaded, Report>;

/// Loads like [`load`], for a first start: stored certificates of ACME that cannot be used are
/// renamed before, and ordered anew. Reloads and upgrades refuse them: a process serves already,
/// with good certificates in memory.
pub(crate) fn load_for_first_start(config: &Source) -> Result<Loaded, Report> {
    let loaded = read(config)?;
    tls::set_damaged_aside(&loaded.model);
    check(loaded, &PrivateKeys::default())
}

/// Loads a bundle over the node's own configuration, and checks it like [`load`].
pub(crate) fn load_over(config: &Source, delivery: &Delivery) -> Result<Loaded, Report> {
    check(read_over(config, delivery)?, &delivery.keys)
}

/// Loads like [`load_over`], for the first bundle of a process, like [`load_for_first_start`].
pub(crate) fn load_over_for_first_start(
    config: &Source,
    delivery: &Delivery,
) -> Result<Loaded, Report> {
    let loaded = read_over(config, delivery)?;
    tls::set_damaged_aside(&loaded.model);
    check(loaded, &delivery.keys)
}

fn read_over(config: &Source, delivery: &Delivery) -> Result<Loaded, Report> {
    let Source::File(own) = config else {
        // Only a file can name a control plane.
        return read(config);
    };
    delivery.files.check.run().map_err(|reason| {
        let code = DiagnosticCode::ChangedFile;
        let fault = Diagnostic::new(code, Place::default(), reason);
        Report::new(Sources::default(), vec![fault])
    })?;
    let files = Files::DiskAnd(delivery.keys.files());
    let bundle = delivery.files.entry_file.to_string_lossy();
    proxy_config::load_over(files, &bundle, &own.to_string_lossy())
}

/// The tests of `model` that fail, checked with the certificates and files of this host.
///
/// # Errors
/// Unusable files.
pub fn failed_tests_and_files(model: &Model) -> Result<Vec<FailedTest>, Vec<Diagnostic>> {
    let mut failed = failed_tests(model);
    let is_about_files = |test: &ConfigTest| {
        let mut expected = test.expectations.iter();
        expected.any(|one| one.value.needs_files())
    };
    if model.tests.iter().any(is_about_files) {
        let found = tls::check(model, &PrivateKeys::default(), now())?.failed;
        failed.extend(found.into_iter().map(|one| one.test));
    }
    Ok(failed)
}

fn check(loaded: Loaded, keys: &PrivateKeys) -> Result<Loaded, Report> {
    let mut failed = failed_tests(&loaded.model);
    let token = admin::check(&loaded.model.admin).err();
    let mut faults: Vec<Diagnostic> = token.into_iter().collect();
    let mut warnings = Vec::new();
    match tls::check(&loaded.model, keys, now()) {
        Ok(checked) => {
            // Expiry only warns: a configuration that is being served must survive a restart.
            let (late, wrong): (Vec<_>, Vec<_>) =
                checked.failed.into_iter().partition(|one| one.is_expiry);
            failed.extend(wrong.into_iter().map(|one| one.test));
            warnings = checked.warnings;
            warnings.extend(late.iter().map(|one| expiry_warning(&one.test)));
        }
        Err(bad) => faults.extend(bad),
    }
    let mut loaded = unless_faulty(loaded, failed, faults)?;
    for warning in warnings {
        loaded.warnings.push(warning);
    }
    loaded.expect_to_serve();
    let files = getrlimit(Resource::Nofile).maximum;
    loaded.compare_with_descriptors(files.unwrap_or(u64::MAX));
    let worst = worst_case(&loaded.model);
    if let Some(limit_bytes) = worst.exceeded_limit() {
        loaded.compare_with_memory(worst.total_bytes(), limit_bytes);
    }
    Ok(loaded)
}

/// The configuration, unless tests of it have failed or files of it are unusable.
///
/// # Errors
/// A diagnostic for each failed test, and `faults`.
fn unless_faulty(
    loaded: Loaded,
    failed: Vec<FailedTest>,
    faults: Vec<Diagnostic>,
) -> Result<Loaded, Report> {
    let sources = loaded.model.sources.clone();
    match loaded.unless_failed(failed) {
        Ok(loaded) if faults.is_empty() => Ok(loaded),
        Ok(_) => Err(Report::new(sources, faults)),
        Err(mut report) => {
            for fault in faults {
                report.push(fault);
            }
            Err(report)
        }
    }
}

fn expiry_warning(test: &FailedTest) -> Diagnostic {
    let FailedTest {
        name, difference, ..
    } = test;
    let message = format!("test \"{name}\" fails: {difference}");
    Diagnostic::new(DiagnosticCode::CertificateExpires, test.place, message)
}

/// Maximum memory of `model` on this machine.
#[must_use]
pub fn worst_case(model: &Model) -> WorstCase {
    let workers = worker_count(model) as u64;
    let total_bytes = system_memory::total_bytes().unwrap_or(u64::MAX);
    WorstCase::estimate(model, workers, total_bytes)
}

fn read(config: &Source) -> Result<Loaded, Report> {
    match config {
        Source::File(path) => proxy_config::load(path),
        Source::Text(text) => proxy_config::parse(text, "(text)"),
        Source::Embedded => proxy_config::embedded(),
    }
}
