//! A valid configuration, and the warnings that depend on its host.

use crate::diagnostic::Diagnostic;
use crate::diagnostic_code::DiagnosticCode;
use crate::report::Report;
use proxy_model::{FailedTest, Model, Place, RESERVED_DESCRIPTORS, Setting};

/// A valid configuration.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The configuration, valid as a whole.
    pub model: Model,
    /// Doubtful settings.
    pub warnings: Report,
}

impl Loaded {
    /// The configuration, unless tests of it have failed.
    ///
    /// # Errors
    /// A diagnostic for each failed test, and the warnings.
    pub fn unless_failed(self, failed: Vec<FailedTest>) -> Result<Self, Report> {
        if failed.is_empty() {
            return Ok(self);
        }
        let mut report = self.warnings;
        for FailedTest {
            name,
            place,
            request,
            difference,
            explain,
        } in failed
        {
            let message = format!("test \"{name}\" fails: {difference}");
            let fault = Diagnostic::new(DiagnosticCode::ConfigTestFailed, place, message)
                .label("expected here")
                .help(format!("`{explain}` shows the reason"));
            report.push(if request == place {
                fault
            } else {
                fault.related(request, "of this request")
            });
        }
        Err(report)
    }

    /// Adds a warning if no request could be served. A part of a configuration may lack listeners
    /// or routes; one that is about to be applied should not. The file of a node that follows a
    /// control plane has neither: a bundle brings them.
    pub fn expect_to_serve(&mut self) {
        let message = if self.model.control_plane.is_some() {
            return;
        } else if self.model.listeners.is_empty() {
            "there is no listener: no client can connect"
        } else if self.model.routes.is_empty() {
            "there is no route: every request is answered 404"
        } else {
            return;
        };
        let nowhere = Place::default();
        self.warnings.push(Diagnostic::new(
            DiagnosticCode::NothingServed,
            nowhere,
            message,
        ));
    }

    /// Adds a warning if the connection limit exceeds `descriptors`, the process's limit of open
    /// files, less the reserve.
    pub fn compare_with_descriptors(&mut self, descriptors: u64) {
        let limit = &self.model.limits.max_total_connections;
        let permitted = descriptors.saturating_sub(RESERVED_DESCRIPTORS);
        if u64::from(limit.value) <= permitted {
            return;
        }
        let message = format!(
            "`max-total-connections` is {limit}, but the limit of open files is {descriptors}"
        );
        let place = limit.place().unwrap_or_default();
        let label = if limit.place().is_some() {
            "too many"
        } else {
            "nothing is written here; this is the default"
        };
        let help = if permitted > 0 {
            format!("set it to {permitted} or less, or raise the limit (`ulimit -n`)")
        } else {
            format!("raise the limit (`ulimit -n`): {RESERVED_DESCRIPTORS} are reserved")
        };
        self.warnings.push(
            Diagnostic::new(DiagnosticCode::TooManyConnections, place, message)
                .label(label)
                .help(help),
        );
    }

    /// Adds a warning that `worst_bytes`, the maximum memory of the configuration, exceeds
    /// `limit_bytes`, the memory limit.
    pub fn compare_with_memory(&mut self, worst_bytes: u64, limit_bytes: u64) {
        let limits = &self.model.limits;
        let bytes = limits.max_memory_bytes.as_ref().and_then(Setting::place);
        let percent = limits.max_memory_percent.as_ref().and_then(Setting::place);
        let place = bytes.or(percent).unwrap_or_default();
        let message = format!(
            "the limit on memory is {limit_bytes} bytes, but peers can make the process hold \
             {worst_bytes}"
        );
        self.warnings.push(
            Diagnostic::new(DiagnosticCode::MemoryBeyondLimit, place, message)
                .label("new connections are refused before other limits are reached")
                .help(
                    "`--test --verbose` shows the sum; lower the limits in it, or raise this one",
                ),
        );
    }
}
