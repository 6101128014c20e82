//! The kinds of diagnostics, under stable names.

use std::fmt;

/// Declares the codes. A code's documentation comment is also its meaning in the operator's
/// reference, so that the two cannot differ.
macro_rules! fault_codes {
    ($($(#[doc = $doc:literal])+ $code:ident = $name:literal, $severity:ident;)+) => {
        /// The kind of a diagnostic. Names are stable across releases.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum DiagnosticCode {
            $($(#[doc = $doc])+ $code,)+
        }

        impl DiagnosticCode {
            /// All codes, in the order of the reference.
            pub const ALL: &[Self] = &[$(Self::$code),+];

            /// The name in reports and in JSON.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$code => $name,)+
                }
            }

            /// The meaning, in a sentence.
            pub const fn meaning(self) -> &'static str {
                let doc = match self {
                    $(Self::$code => concat!($($doc),+),)+
                };
                doc.trim_ascii()
            }

            /// Severity: errors prevent the configuration from being used.
            pub const fn severity(self) -> Severity {
                match self {
                    $(Self::$code => Severity::$severity,)+
                }
            }
        }
    };
}

fault_codes! {
    /// A file cannot be read.
    UnreadableFile = "unreadable-file", Error;
    /// A file of a bundle on the node's disk is not as the control plane signed it.
    ChangedFile = "changed-file", Error;
    /// A file is larger than 16 MiB, or all files together are larger than 64 MiB or have more than 2 000 000 names and
    /// values.
    FileTooLarge = "file-too-large", Error;
    /// A file is not UTF-8; text after that place is not read.
    NotUtf8 = "not-utf-8", Error;
    /// A file is neither KDL 2 nor KDL 1. The faults are KDL 2's.
    Syntax = "syntax", Error;
    /// A file is in the notation of another program: nginx, Caddy, `HAProxy`, YAML, JSON or TOML.
    ForeignFormat = "foreign-format", Error;
    /// Blocks are nested more than 32 deep.
    NestingTooDeep = "nesting-too-deep", Error;
    /// An `include` matches no file.
    IncludeWithoutMatch = "include-without-match", Error;
    /// A file includes itself, directly or through other files.
    IncludeCycle = "include-cycle", Error;
    /// Includes are nested more than 8 deep.
    IncludeTooDeep = "include-too-deep", Error;
    /// More than 20 000 patterns and files are included; a file counts each time.
    TooManyIncludes = "too-many-includes", Error;
    /// A value names an environment variable that is not set, and no default.
    MissingVariable = "missing-variable", Error;
    /// The name is unknown in this block.
    UnknownSetting = "unknown-setting", Error;
    /// A setting of the system that the language follows has no counterpart here; the report
    /// describes a workaround.
    NoCounterpart = "no-counterpart", Error;
    /// The value is not one of the setting's words.
    UnknownWord = "unknown-word", Error;
    /// The value is of another type than the setting's.
    WrongType = "wrong-type", Error;
    /// The number, size or time is outside the setting's range.
    OutOfRange = "out-of-range", Error;
    /// The text does not have the form that the setting requires.
    BadValue = "bad-value", Error;
    /// The regular expression does not compile.
    BadRegex = "bad-regex", Error;
    /// All regular expressions together take more than 72 MiB of memory.
    RegexesTooLarge = "regexes-too-large", Error;
    /// The hosts and paths of routes make more than 500 000 pairs together.
    TooManyConditions = "too-many-conditions", Error;
    /// The tests would compare their requests with too many routes, or more than 32 of them are
    /// live.
    TooManyTests = "too-many-tests", Error;
    /// A required setting is absent.
    MissingSetting = "missing-setting", Error;
    /// A setting is written without its value, or a block without its name.
    MissingValue = "missing-value", Error;
    /// There is a surplus value, or a value where none is allowed.
    UnexpectedValue = "unexpected-value", Error;
    /// A setting without a block has one.
    UnexpectedBlock = "unexpected-block", Error;
    /// A value has a type annotation, which no setting takes.
    UnexpectedAnnotation = "unexpected-annotation", Error;
    /// A setting is written twice, so its value is ambiguous.
    RepeatedSetting = "repeated-setting", Error;
    /// A list has a value twice.
    RepeatedValue = "repeated-value", Error;
    /// Two blocks of one kind have the same name.
    DuplicateName = "duplicate-name", Error;
    /// A reference names a route, upstream or agent that does not exist.
    UndefinedName = "undefined-name", Error;
    /// A file or folder that is named does not exist.
    MissingFile = "missing-file", Error;
    /// Settings exclude each other, or need each other.
    Conflict = "conflict", Error;
    /// A bundle of the control plane has a setting that only the node's own file may have.
    NodeSetting = "node-setting", Error;
    /// A bundle of the control plane uses a part of the machine that no node allows, or that this node does
    /// not allow in `control-plane { allow { … } }`.
    BundleReach = "bundle-reach", Error;
    /// A header is edited that frames the message or that the proxy itself sets.
    ProtectedHeader = "protected-header", Error;
    /// The admin interface listens on an address other than loopback without a token.
    AdminWithoutToken = "admin-without-token", Error;
    /// The control plane's URL is `http` off loopback, without `allow-plain-http`.
    PlainControlPlane = "plain-control-plane", Error;
    /// A test of the configuration expects another decision.
    ConfigTestFailed = "config-test-failed", Error;
    /// A reload would close every listener: the new file has none. A file that was cut off while it was written has
    /// none either.
    NoListenerLeft = "no-listener-left", Error;
    /// Another process, another listener of this file or its admin interface has the address.
    AddressInUse = "address-in-use", Error;
    /// An address cannot be bound: it is not an address of this host, permission is missing, or the
    /// path of a Unix socket is occupied.
    CannotListen = "cannot-listen", Error;
    /// The file of the admin interface's token cannot be read, or holds no token.
    BadToken = "bad-token", Error;
    /// A log's file cannot be opened.
    UnwritableLog = "unwritable-log", Error;
    /// A certificate or its key cannot be used.
    BadCertificate = "bad-certificate", Error;
    /// A bundle of the control plane uses a part of the machine: nodes reject it unless their own files allow
    /// that in `control-plane { allow { … } }`.
    NodeAllowance = "node-allowance", Warning;
    /// There is no listener, or no route.
    NothingServed = "nothing-served", Warning;
    /// Another route takes every request that this one could take.
    UnreachableRoute = "unreachable-route", Warning;
    /// A route loses requests to another one with a more specific host or path, although it is
    /// narrower in a condition of lower precedence.
    RouteOrder = "route-order", Warning;
    /// A path that other servers may read differently, with a reading that matches another route: every request for
    /// it is refused under `path-policy "strict"`.
    AmbiguousPath = "ambiguous-path", Warning;
    /// No route names the upstream.
    UnusedUpstream = "unused-upstream", Warning;
    /// Every target of an upstream has weight 0, so none receives new requests: they are answered
    /// 503.
    NoWeight = "no-weight", Warning;
    /// A target on port 443 gets plaintext, because its upstream has no `tls` block.
    PlaintextToTlsPort = "plaintext-to-tls-port", Warning;
    /// Certificates of an upstream's targets are not verified, only their keys.
    UnverifiedTargets = "unverified-targets", Warning;
    /// The connection limit exceeds the process's limit of open files less 100.
    TooManyConnections = "too-many-connections", Warning;
    /// The limits on connections, requests and bodies allow more memory than `max-memory-bytes` or
    /// `max-memory-percent` does.
    MemoryBeyondLimit = "memory-beyond-limit", Warning;
    /// A regular expression matches the same as `path` or `path-prefix`, which are faster.
    RegexCouldBePrefix = "regex-could-be-prefix", Warning;
    /// A value uses another server's notation and is taken literally here: `/api/*`, the host `_`,
    /// a variable in a header's value, `{$API-KEY}`, a group of a regex in a plain path.
    ForeignNotation = "foreign-notation", Warning;
    /// `max-body-size 0` refuses every body; in other servers it means no limit.
    NoBodies = "no-bodies", Warning;
    /// A setting has no effect, because another one switches its part off.
    WithoutEffect = "without-effect", Warning;
    /// The secret of HMAC signatures is too short for some of the algorithms that tokens may have: such
    /// tokens are refused.
    ShortSecret = "short-secret", Warning;
    /// The fallback file, sent for paths that match no file, does not exist; such requests get 404.
    MissingFallback = "missing-fallback", Warning;
    /// A setting has the name or place used by the system that the language follows; `config
    /// migrate` writes ours.
    Alias = "alias", Warning;
    /// A setting has a successor; `config migrate` writes it.
    DeprecatedSetting = "deprecated-setting", Warning;
    /// A certificate expires within 14 days, or has expired.
    CertificateExpires = "certificate-expires", Warning;
    /// A certificate serves fewer clients than intended: it is not valid yet, names no host, or its
    /// OCSP response is stale.
    DoubtfulCertificate = "doubtful-certificate", Warning;
    /// The authority of an `acme` block connects to port 80 or 443, where no listener of the file is bound.
    ChallengePort = "challenge-port", Warning;
}

impl fmt::Display for DiagnosticCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The configuration is refused.
    Error,
    /// The configuration is accepted; it may not have the intended effect.
    Warning,
}

impl Severity {
    /// The word in a report.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}
