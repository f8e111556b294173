//! The dependency table: which module may name which, and which crates and clocks belong to whom. Data only, a reason on each row.
//!
//! Promises: every module under `src` has a row (the longest prefix of its path holds); the table has no cycle.
//! Does not: check anything; `imports` does.

/// A module, what it may name, and why.
pub struct Module {
    /// Its path below the crate, such as `store::sqlite`; `main` and `lib` are the two roots.
    pub path: &'static str,
    /// The modules that its code may name (their children too, but for those with a row of their own).
    pub may: &'static [&'static str],
    /// What its tests may name besides.
    pub tests: &'static [&'static str],
    /// Why this and no more.
    pub reason: &'static str,
}

/// A path of another crate, and the modules that may name it.
pub struct Foreign {
    /// How the path begins, or, where it starts with `*::`, how it ends.
    pub path: &'static str,
    /// The modules that may name it.
    pub only: &'static [&'static str],
    /// Whether the tests of every module may, too.
    pub tests: bool,
    /// Why.
    pub reason: &'static str,
}

/// Everything: for the places that put the house together.
pub const ALL: &[&str] = &["*"];

/// The layers: `domain, stats <- auth <- store <- tools <- mcp, tool_api, cli`.
pub const MODULES: &[Module] = &[
    Module {
        path: "domain",
        may: &["stats", "transcript"],
        tests: &[],
        reason: "words and rules without IO, async or clock; a rule may count with a formula, and an attempt owns its packed transcript",
    },
    Module {
        path: "stats",
        may: &[],
        tests: &[],
        reason: "pure functions over numbers: a formula is tested against published values, not against our types",
    },
    Module {
        path: "telemetry::redaction",
        may: &[],
        tests: &[],
        reason: "used at the bottom (import) and at the top (answers), so it knows neither",
    },
    Module { path: "transcript", may: &["telemetry::redaction"], tests: &[], reason: "lines are redacted before they are packed" },
    Module {
        path: "clock",
        may: &["domain"],
        tests: &[],
        reason: "the only source of time and randomness; it gives the domain's instants",
    },
    Module {
        path: "importers",
        may: &["domain", "transcript", "telemetry::redaction"],
        tests: &[],
        reason: "bytes to attempts: pure, so that a hostile log meets no store, clock or path",
    },
    Module {
        path: "config",
        may: &["domain", "importers", "tools", "store", "auth"],
        tests: &["store::sqlite"],
        reason: "hands each piece its limits as that piece's own type; its sentences shorten what they quote as all do",
    },
    Module {
        path: "telemetry",
        may: &["telemetry::redaction", "clock", "domain"],
        tests: &[],
        reason: "what the program says about itself; everyone may call it, so it calls no one",
    },
    Module {
        path: "auth",
        may: &["domain", "stats", "clock"],
        tests: &[],
        reason: "builds the Caller from what it is handed; asks no store",
    },
    Module {
        path: "store",
        may: &["domain", "stats", "auth", "transcript"],
        tests: &["store::model", "store::contract", "store::sqlite"],
        reason: "the port: it does not know who implements it",
    },
    Module {
        path: "store::model",
        may: &["store", "domain", "stats", "auth", "transcript"],
        tests: &["store::contract"],
        reason: "the plain memory model of the contract, for tests",
    },
    Module {
        path: "store::contract",
        may: &["store", "domain", "stats", "auth", "transcript", "telemetry::redaction"],
        tests: &["store::model"],
        reason: "one suite for every adapter",
    },
    Module {
        path: "store::sqlite",
        may: &["store", "domain", "stats", "auth", "transcript", "clock"],
        tests: &["store::contract", "store::model", "telemetry::redaction"],
        reason: "the adapter: SQL stays here",
    },
    Module {
        path: "local",
        may: &["domain", "auth", "store", "importers", "transcript", "config", "clock", "telemetry", "telemetry::redaction"],
        tests: &["store::sqlite", "store::model"],
        reason: "indexes a project's directories into a store that it is handed: the port, not the adapter",
    },
    Module {
        path: "tools",
        may: &["domain", "stats", "auth", "store", "transcript", "clock", "telemetry", "telemetry::redaction"],
        tests: &["store::model", "store::contract", "store::sqlite", "importers", "local"],
        reason: "what is answered, not how it came in (mcp, cli, HTTP) or where it lies (adapters)",
    },
    Module {
        path: "commands",
        may: &["domain", "config", "clock", "telemetry", "telemetry::redaction", "tools", "store", "transcript"],
        tests: &["store::model"],
        reason: "child processes: as tools, for questions that must starve nobody, and for queued runs, whose results go to a store that is handed in",
    },
    Module {
        path: "gate",
        may: &["domain", "auth", "store", "config", "clock", "telemetry", "telemetry::redaction", "tools"],
        tests: &["store::model"],
        reason: "the way of a request: sees callers, the registry's rows and the store's port that it hands on, never SQL or rmcp",
    },
    Module {
        path: "mcp",
        may: &["domain", "auth", "store", "tools", "gate", "health", "transcript", "config", "clock", "telemetry", "telemetry::redaction"],
        tests: &["store::model", "store::contract", "store::sqlite", "importers", "local"],
        reason: "the only place that knows rmcp: translates between it and the registry",
    },
    Module {
        path: "tool_api",
        may: &["domain", "auth", "tools", "gate", "config", "clock", "telemetry"],
        tests: &["store::model"],
        reason: "another face of the same registry",
    },
    Module {
        path: "health",
        may: &["store"],
        tests: &["store::model"],
        reason: "one answer for both listeners, which do not know each other: it asks the store whether it answers, and no more",
    },
    Module {
        path: "admin",
        may: &["config", "clock", "telemetry", "store", "health"],
        tests: &["store::model"],
        reason: "health and metrics only",
    },
    Module { path: "serve", may: ALL, tests: &[], reason: "the composition root knows everything, so that nothing else has to" },
    Module {
        path: "cli",
        may: ALL,
        tests: &[],
        reason: "opens the local store and puts a command together; the person runs what the agent runs",
    },
    Module { path: "main", may: &["cli"], tests: &[], reason: "the command line to an exit code" },
    Module { path: "lib", may: &[], tests: &[], reason: "declares the modules and says what they are" },
];

/// Who may name which crate, and what of the standard library.
pub const FOREIGN: &[Foreign] = &[
    Foreign { path: "rusqlite", only: &["store::sqlite"], tests: false, reason: "SQL and its errors stay in the adapter" },
    Foreign {
        path: "moka",
        only: &["gate::cache", "auth::jwt"],
        tests: false,
        reason: "what is kept and for how long is decided in two places: answers, and tokens that were verified",
    },
    Foreign {
        path: "jsonwebtoken",
        only: &["auth::jwt", "auth::jwks", "auth::local"],
        tests: true,
        reason: "signatures are held against keys in one place; claims are read by our own strict types",
    },
    Foreign { path: "ed25519_dalek", only: &["auth::local"], tests: true, reason: "one place makes keys" },
    Foreign { path: "getrandom", only: &["clock"], tests: true, reason: "randomness has one source, as time has" },
    Foreign {
        path: "ureq",
        only: &["auth::jwks", "cli::push", "telemetry::outside"],
        tests: false,
        reason: "what the program asks of other servers is asked in one place each: keys, what is pushed, and what hooks tell",
    },
    Foreign { path: "opentelemetry", only: &["telemetry::otlp"], tests: false, reason: "one file knows how spans travel" },
    Foreign { path: "opentelemetry_sdk", only: &["telemetry::otlp"], tests: false, reason: "one file knows how spans travel" },
    Foreign { path: "opentelemetry_otlp", only: &["telemetry::otlp"], tests: false, reason: "one file knows how spans travel" },
    Foreign { path: "opentelemetry_http", only: &["telemetry::otlp"], tests: false, reason: "one file knows how spans travel" },
    Foreign { path: "sentry", only: &["telemetry::sentry"], tests: false, reason: "one file knows how faults travel" },
    Foreign { path: "governor", only: &["gate::limiter"], tests: false, reason: "one way to count a rate" },
    Foreign {
        path: "prometheus",
        only: &["telemetry"],
        tests: false,
        reason: "every metric is a row of the table; other parts count for themselves and are read",
    },
    Foreign { path: "rmcp", only: &["mcp"], tests: false, reason: "the protocol library can be replaced in one place" },
    Foreign { path: "quick_xml", only: &["importers"], tests: true, reason: "XML is a matter of formats" },
    Foreign {
        path: "zip",
        only: &["importers", "local::bundle"],
        tests: true,
        reason: "archives are a matter of formats, and of what is sent",
    },
    Foreign {
        path: "zstd",
        only: &["importers", "transcript"],
        tests: true,
        reason: "compressed bytes do not leave the formats and the transcript's chunks",
    },
    Foreign {
        path: "governor",
        only: &["gate::limiter"],
        tests: true,
        reason: "stable but old: one file knows it, so that it can be replaced",
    },
    Foreign { path: "subtle", only: &["auth::token"], tests: false, reason: "secrets are compared in one place" },
    Foreign { path: "statrs", only: &["stats"], tests: false, reason: "one formula, one place" },
    Foreign {
        path: "toml",
        only: &["config", "local", "cli"],
        tests: true,
        reason: "files that people write are read where they are found",
    },
    Foreign {
        path: "indicatif",
        only: &["cli", "local::progress"],
        tests: false,
        reason: "progress is drawn in one place, for a person at a terminal",
    },
    Foreign {
        path: "tokio",
        only: &["main", "cli", "serve", "admin", "health", "gate", "mcp", "tool_api", "tools", "commands", "local", "telemetry", "auth"],
        tests: true,
        reason: "domain, stats, importers, transcripts and the store are plain blocking code; auth reads key sets beside the requests",
    },
    Foreign {
        path: "std::process",
        only: &["main", "cli", "serve", "commands", "local::git"],
        tests: true,
        reason: "children are started under one set of rules, and git read in one place",
    },
    Foreign {
        path: "std::fs",
        only: &["main", "cli", "serve", "config", "local", "store::sqlite", "store::kept", "auth", "commands", "telemetry", "clock"],
        tests: true,
        reason: "the inside (domain, stats, importers, tools, gate, mcp) opens no file",
    },
    Foreign {
        path: "std::net",
        only: &["serve", "gate", "admin", "cli", "config", "auth", "telemetry", "store::workspace"],
        tests: true,
        reason: "the inside opens no socket; the workspace's trail keeps an address",
    },
    Foreign {
        path: "std::env",
        only: &["main", "cli", "serve", "commands", "telemetry", "telemetry::redaction", "local::git"],
        tests: true,
        reason: "what the environment says is read where a command starts, and handed on (git: its search path only)",
    },
    Foreign { path: "*::SystemTime::now", only: &["clock"], tests: true, reason: "time has one source, so that a test can set it" },
    Foreign { path: "*::Instant::now", only: &["clock"], tests: true, reason: "time has one source, so that a test can set it" },
    Foreign { path: "*::Utc::now", only: &["clock"], tests: true, reason: "time has one source, so that a test can set it" },
    Foreign { path: "*::Local::now", only: &["clock"], tests: true, reason: "time has one source, and nothing here has a time zone" },
];
