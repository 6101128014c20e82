//! Python programs for tests, each in its own environment below the target folder.

use crate::site;
use std::path::Path;
use xtask_kit::command;
use xtask_kit::task_error::TaskError;
use xtask_kit::workspace::Workspace;

/// A Python environment and its packages.
pub(super) struct PythonEnvironment {
    /// Name of its folder.
    pub(super) name: &'static str,
    requirements: &'static [&'static str],
    proof: Proof,
}

/// Proof that the packages are installed.
enum Proof {
    /// A file in the environment.
    Program(&'static str),
    /// A module that can be imported.
    Module(&'static str),
}

pub(super) const PYTHON_ENVIRONMENTS: &[PythonEnvironment] = &[
    // S3-compatible server for tests of the object store. They parse the port in the output of this
    // release.
    PythonEnvironment {
        name: "moto",
        requirements: &["moto[server]>=5.2,<6"],
        proof: Proof::Program("bin/moto_server"),
    },
    // Authorization servers for tests of agents: gRPC with Envoy's messages, and HTTP.
    PythonEnvironment {
        name: "agent-servers",
        requirements: &["grpcio>=1.80,<2", "xds-protos>=1.80,<2", "waitress>=3,<4"],
        proof: Proof::Program("bin/waitress-serve"),
    },
    // HTTP/3 client for tests of `proxyd`.
    PythonEnvironment {
        name: "aioquic",
        requirements: &["aioquic>=1.7,<2"],
        proof: Proof::Module("aioquic"),
    },
    // Generator of the documentation's web pages.
    PythonEnvironment {
        name: site::ENVIRONMENT,
        requirements: &["mkdocs>=1.6,<2"],
        proof: Proof::Program(site::PROGRAM),
    },
    // Validator of the CycloneDX JSON schema.
    PythonEnvironment {
        name: "cyclonedx",
        requirements: &["cyclonedx-python-lib[json-validation]>=11,<12"],
        proof: Proof::Program("bin/jsonschema"),
    },
];

/// Validator with the schemas of Kubernetes.
pub(super) const KUBERNETES: PythonEnvironment = PythonEnvironment {
    name: "kubernetes",
    requirements: &["kubernetes-validate>=1.37,<2"],
    proof: Proof::Program("bin/kubernetes-validate"),
};

/// Counterparts for `cargo xtask identity`: an identity provider, an authenticator, and a reader of
/// QR codes.
pub(super) const IDENTITY: PythonEnvironment = PythonEnvironment {
    name: "identity-python",
    requirements: &[
        "pysaml2>=7.5,<8",
        "pyotp>=2.9,<3",
        "opencv-python-headless>=4.10,<5",
    ],
    proof: Proof::Program("bin/make_metadata"),
};

impl PythonEnvironment {
    /// Installs the environment. Returns true if it was missing.
    pub(super) fn install(&self, workspace: &Workspace) -> Result<bool, TaskError> {
        let folder = workspace.target_dir()?.join(self.name);
        let is_missing = match self.proof {
            Proof::Program(program) => !folder.join(program).is_file(),
            Proof::Module(module) => {
                let python = folder.join("bin/python3");
                let mut python = workspace.command(&python.to_string_lossy());
                !command::works(python.args(["-c", &format!("import {module}")]))
            }
        };
        if is_missing {
            self.install_into(workspace, &folder)?;
        }
        Ok(is_missing)
    }

    fn install_into(&self, workspace: &Workspace, folder: &Path) -> Result<(), TaskError> {
        let mut environment = workspace.command("python3");
        command::run(environment.args(["-m", "venv"]).arg(folder))?;
        let pip = folder.join("bin/pip");
        let mut pip = workspace.command(&pip.to_string_lossy());
        command::run(pip.args(["install", "--quiet"]).args(self.requirements))
    }
}
