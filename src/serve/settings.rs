//! What the HTTP service runs with: flags over config over what the binding calls for (decisions 17, 32, 54, 83, 87).
//!
//! Promises: everything is parsed and held against its rules before anything listens; a fault is a sentence that names the flag or key.
//! Does not: listen.

use std::{net::SocketAddr, time::Duration};

use ipnet::IpNet;

use super::flags::HttpFlags;
use crate::{
    auth::{
        Caller,
        token::{Sources, StaticToken},
    },
    config::{Config, keys::Http},
    mcp::http::Framing,
    tools::Toolsets,
};

/// Loopback networks: always trusted to name the caller (decision 55).
const LOOPBACK: [&str; 2] = ["127.0.0.0/8", "::1/128"];

/// An HTTP service, fully told.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where to listen, as given: a name or an address.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The MCP endpoints.
    pub endpoints: Vec<String>,
    /// Those that frame legacy answers as an event stream.
    pub event_streams: Vec<String>,
    /// Host names besides the loopback's.
    pub allowed_hosts: Vec<String>,
    /// Origins that may call.
    pub allowed_origins: Vec<String>,
    /// Networks whose client header is believed.
    pub trusted: Vec<IpNet>,
    /// Those of them that the operator named: their connections are many callers'.
    pub named_proxies: Vec<IpNet>,
    /// The header that names the caller.
    pub client_header: Option<String>,
    /// The bearer token, if one is asked for.
    pub token: Option<StaticToken>,
    /// Whether callers are those of organizations (`tenants.data_dir`).
    pub tenants: bool,
    /// Requests a minute of one organization; 0 is off.
    pub tenant_rate: u32,
    /// Whether those without the token may ask what there is (decision 5).
    pub discovery: bool,
    /// Whether anybody may read.
    pub public: bool,
    /// Whether anybody reads texts too (decision 35).
    pub publish_text: bool,
    /// The tools that are offered.
    pub toolsets: Toolsets,
    /// Limits a minute; 0 is off.
    pub rates: Rates,
    /// Heavy tools at once.
    pub concurrent: usize,
    /// How long one call may run.
    pub timeout: Duration,
    /// The rest of the section, for limits without a flag.
    pub http: Http,
    /// Where the private listener listens, if it does.
    pub admin: Option<String>,
    /// Whether it may listen beyond the loopback.
    pub admin_remote: bool,
    /// Whether the tool API writes; none where it is not served.
    pub tool_api_writes: Option<bool>,
}

/// Limits a minute; 0 is off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rates {
    /// Tool calls of one caller.
    pub caller: u32,
    /// Tool calls that run, of all.
    pub total: u32,
    /// Requests from one address.
    pub request: u32,
}

/// What a kind of binding calls for where nobody says otherwise (decision 32).
struct Usual {
    rates: Rates,
    concurrent: usize,
    timeout_s: u64,
}

fn usual(loopback: bool, public: bool) -> Usual {
    match (public, loopback) {
        (true, _) => Usual { rates: Rates { caller: 30, total: 120, request: 300 }, concurrent: 2, timeout_s: 60 },
        (false, true) => Usual { rates: Rates { caller: 0, total: 0, request: 0 }, concurrent: 4, timeout_s: 300 },
        (false, false) => Usual { rates: Rates { caller: 120, total: 600, request: 600 }, concurrent: 4, timeout_s: 300 },
    }
}

/// With organizations, each has a rate of its own (`tenants.rate_per_min`): one that all share would let one keep out the others, and so would
/// strangers' rates on a public server. What the operator says himself holds.
fn of_tenants(rates: Rates, flags: &HttpFlags, http: &Http) -> Rates {
    let usual = Http::default();
    let own = |flag: Option<u32>, key: u32, default: u32, resolved: u32, with_tenants: u32| {
        if flag.is_some() || key != default { resolved } else { with_tenants }
    };
    Rates {
        caller: own(flags.rate, http.rate_per_min, usual.rate_per_min, rates.caller, usual.rate_per_min),
        total: own(flags.rate_total, http.rate_total_per_min, usual.rate_total_per_min, rates.total, 0),
        request: rates.request,
    }
}

impl Settings {
    /// The service of `runlore mcp --http`: its endpoints are `--path` alone (decision 48).
    ///
    /// # Errors
    /// A sentence that names the flag or key.
    pub fn for_mcp(flags: &HttpFlags, config: &Config) -> Result<Self, String> {
        let endpoints = if flags.path.is_empty() { vec!["/mcp".to_owned()] } else { flags.path.clone() };
        let (mut settings, faults) = Self::resolve(flags, config, endpoints);
        settings.admin = flags.admin_listen.clone();
        // A fault of theirs is among the faults already.
        settings.toolsets = toolsets(flags, &config.http, Toolsets::local()).unwrap_or(settings.toolsets);
        settings.unless(faults)
    }

    /// The service of `runlore serve`.
    ///
    /// # Errors
    /// A sentence that names the flag or key.
    pub fn for_serve(flags: &HttpFlags, config: &Config) -> Result<Self, String> {
        let endpoints = if flags.path.is_empty() { config.http.endpoints.clone() } else { flags.path.clone() };
        let (mut settings, mut faults) = Self::resolve(flags, config, endpoints);
        settings.admin = Some(flags.admin_listen.clone().unwrap_or_else(|| config.admin.listen.clone()));
        settings.discovery = config.auth.anonymous_discovery;
        settings.tool_api_writes = Some(tool_api_writes(config.tool_api.writes, |name| std::env::var(name).ok()));
        settings.tenants = !config.tenants.data_dir.is_empty();
        if settings.tenants {
            settings.rates = of_tenants(settings.rates, flags, &config.http);
        }
        if settings.tenants && settings.token.is_some() {
            faults.push("--token and tenants.data_dir exclude each other: callers of organizations have keys of their own".to_owned());
        }
        if !settings.tenants && (!config.auth.issuer.is_empty() || !config.auth.local_key_file.is_empty()) {
            faults.push("auth.issuer and auth.local_key_file need tenants.data_dir: tokens are those of organizations' callers".to_owned());
        }
        settings.unless(faults)
    }

    /// Itself, unless there are faults: then all of them, a line each.
    fn unless(self, faults: Vec<String>) -> Result<Self, String> {
        if faults.is_empty() { Ok(self) } else { Err(faults.join("\n")) }
    }

    /// The settings, and what is wrong with them.
    fn resolve(flags: &HttpFlags, config: &Config, endpoints: Vec<String>) -> (Self, Vec<String>) {
        let mut faults = Vec::new();
        let http = &config.http;
        let host = flags.host.clone().unwrap_or_else(|| http.host.clone());
        let public = flags.public || http.public;
        let proxies = chosen(&flags.trusted_proxy, &http.trusted_proxies);
        let header = flags.client_header.clone().unwrap_or_else(|| http.client_header.clone());
        // Whoever names a header stands behind a proxy, which is usually on this machine: its connections are many callers'.
        let behind = LOOPBACK.into_iter().filter(|_| !header.is_empty());
        let usual = usual(is_loopback(&host), public);
        let settings = Self {
            toolsets: toolsets(flags, http, Toolsets::served()).unwrap_or_else(|fault| {
                faults.push(fault);
                Toolsets::served()
            }),
            port: flags.port.unwrap_or(http.port),
            endpoints,
            event_streams: http.event_stream_endpoints.clone(),
            allowed_hosts: chosen(&flags.allowed_host, &http.allowed_hosts),
            allowed_origins: chosen(&flags.allowed_origin, &http.allowed_origins),
            named_proxies: networks(behind.chain(proxies.iter().map(String::as_str)), &mut Vec::new()),
            trusted: networks(LOOPBACK.into_iter().chain(proxies.iter().map(String::as_str)), &mut faults),
            client_header: Some(header.clone()).filter(|name| !name.is_empty()),
            token: token(flags).unwrap_or_else(|fault| {
                faults.push(fault);
                None
            }),
            // Only `serve` knows organizations.
            tenants: false,
            tenant_rate: config.tenants.rate_per_min,
            // `mcp --http --token` asks the token of every request, as S-history does.
            discovery: false,
            rates: Rates {
                caller: flags.rate.unwrap_or_else(|| said(http.rate_per_min, Http::default().rate_per_min, usual.rates.caller)),
                total: flags
                    .rate_total
                    .unwrap_or_else(|| said(http.rate_total_per_min, Http::default().rate_total_per_min, usual.rates.total)),
                request: flags
                    .request_rate
                    .unwrap_or_else(|| said(http.request_rate_per_min, Http::default().request_rate_per_min, usual.rates.request)),
            },
            concurrent: flags
                .concurrent
                .map_or_else(|| said(http.concurrent, Http::default().concurrent, usual.concurrent), |number| number as usize),
            timeout: Duration::from_secs(flags.timeout.unwrap_or_else(|| said(http.timeout_s, Http::default().timeout_s, usual.timeout_s))),
            http: limits(flags, http),
            admin: None,
            admin_remote: config.admin.allow_remote,
            // Only `serve` has it (decision 48).
            tool_api_writes: None,
            public,
            publish_text: http.publish_text,
            host,
        };
        faults.extend(settings.faults());
        (settings, faults)
    }

    fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if self.public && self.token.is_some() {
            faults.push("--public and --token exclude each other: what anybody may read needs no token".to_owned());
        }
        let unspecified = matches!(self.host.as_str(), "0.0.0.0" | "::" | "[::]");
        if unspecified && self.allowed_hosts.is_empty() {
            faults.push(format!("--host {} answers on every address: say with --allowed-host under which names", self.host));
        }
        let path = self.endpoints.iter().filter(|path| !is_path(path));
        faults.extend(path.map(|path| format!("--path {path}: give a path such as /mcp, without a trailing slash")));
        let origin = self.allowed_origins.iter().filter(|origin| !is_origin(origin));
        faults
            .extend(origin.map(|origin| format!("--allowed-origin {origin}: give an origin such as https://app.example, without a path")));
        let host = self.allowed_hosts.iter().filter(|host| host.parse::<http::uri::Authority>().is_err() || host.contains('@'));
        faults.extend(host.map(|host| format!("--allowed-host {host}: give a host name such as evals.example, or with its port")));
        let header = self.client_header.iter().filter(|name| http::HeaderName::from_bytes(name.as_bytes()).is_err());
        faults.extend(header.map(|name| format!("--client-header {name}: give a header's name such as X-Real-IP")));
        faults
    }

    /// Who everyone is where no token is asked for.
    #[must_use]
    pub fn anonymous(&self) -> Caller {
        match (self.public, self.publish_text) {
            (true, false) => Caller::public(),
            (true, true) => Caller::public_with_texts(),
            (false, _) => Caller::open(),
        }
    }

    /// Who is who brings no credential; none where that is refused.
    #[must_use]
    pub fn stranger(&self) -> Option<Caller> {
        let asks = self.token.is_some() || self.tenants;
        if asks && !self.public { Some(Caller::nobody()).filter(|_| self.discovery) } else { Some(self.anonymous()) }
    }

    /// How the endpoint at `path` frames answers to clients of the older era.
    #[must_use]
    pub fn framing(&self, path: &str) -> Framing {
        if self.event_streams.iter().any(|endpoint| endpoint == path) { Framing::EventStream } else { Framing::Json }
    }

    /// Whether the service listens on the loopback only.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        is_loopback(&self.host)
    }
}

/// The tools that are offered: the flag, then the config, then what is `usual`.
///
/// # Errors
/// A sentence that names the word that is no group of tools.
pub fn toolsets(flags: &HttpFlags, http: &Http, usual: Toolsets) -> Result<Toolsets, String> {
    match (flags.toolsets, http.toolsets.as_slice()) {
        (Some(chosen), _) => Ok(chosen),
        (None, []) => Ok(usual),
        (None, words) => Toolsets::parse(&words.join(",")).map_err(|sentence| format!("http.{sentence}")),
    }
}

fn is_path(path: &str) -> bool {
    path.starts_with('/') && path.len() > 1 && !path.ends_with('/') && !path.contains(['?', '#', ' ', '%'])
}

/// A scheme, a host and perhaps a port, and nothing else.
fn is_origin(origin: &str) -> bool {
    let uri = origin.parse::<http::Uri>().ok().filter(|uri| matches!(uri.scheme_str(), Some("http" | "https")));
    let bare = |uri: &http::Uri| uri.host().is_some_and(|host| !host.is_empty()) && uri.path() == "/" && uri.query().is_none();
    uri.is_some_and(|uri| bare(&uri)) && !origin.ends_with('/') && !origin.contains('@')
}

/// Whether `host` is one of S-history's loopback spellings, or a loopback address.
fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn chosen(flags: &[String], config: &[String]) -> Vec<String> {
    if flags.is_empty() { config.to_vec() } else { flags.to_vec() }
}

/// What the config says where it says something of its own, else what is usual.
fn said<T: PartialEq>(config: T, default: T, usual: T) -> T {
    if config == default { usual } else { config }
}

fn limits(flags: &HttpFlags, http: &Http) -> Http {
    let mut http = http.clone();
    http.body_bytes_max = flags.max_body.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(http.body_bytes_max);
    http.connections_max = flags.max_connections.map_or(http.connections_max, |number| number as usize);
    http
}

fn networks<'a>(texts: impl Iterator<Item = &'a str>, faults: &mut Vec<String>) -> Vec<IpNet> {
    let network = |text: &str| {
        let single = || text.parse::<std::net::IpAddr>().ok().map(IpNet::from);
        let found = text.parse::<IpNet>().ok().or_else(single);
        if found.is_none() {
            faults.push(format!("--trusted-proxy {text}: give a network such as 10.0.0.0/8, or an address"));
        }
        found
    };
    texts.filter_map(network).collect()
}

/// Flag, then RUNLORE_MCP_TOKEN, then a file (decision 17).
fn token(flags: &HttpFlags) -> Result<Option<StaticToken>, String> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let (given, file) =
        (variable("RUNLORE_MCP_TOKEN"), flags.token_file.clone().or_else(|| variable("RUNLORE_MCP_TOKEN_FILE").map(Into::into)));
    let sources = Sources { flag: flags.token.as_deref(), variable: given.as_deref(), file: file.as_deref() };
    StaticToken::load(sources).map_err(|error| error.to_string())
}

/// A variable comes before the config; only the exact text `true` switches on (decision 73).
fn tool_api_writes(config: bool, variable: impl Fn(&str) -> Option<String>) -> bool {
    let said = ["RUNLORE_TOOL_API_WRITES", "EVALGATE_TOOL_API_WRITES"]
        .into_iter()
        .find_map(|name| variable(name).filter(|value| !value.is_empty()));
    said.map_or(config, |value| value == "true")
}

/// The addresses that `host` and `port` mean.
///
/// # Errors
/// A sentence that names the value.
pub async fn addresses(host: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let found = tokio::net::lookup_host((bare, port)).await.map_err(|error| format!("--host {host}: {error}"))?;
    Ok(found.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(flags: HttpFlags) -> Result<Settings, String> {
        Settings::for_mcp(&flags, &Config::default())
    }

    #[test]
    fn limits_follow_the_binding() {
        let rates = |flags: HttpFlags| {
            resolved(flags).map(|settings| {
                (settings.rates.caller, settings.rates.total, settings.rates.request, settings.concurrent, settings.timeout.as_secs())
            })
        };
        assert_eq!(rates(HttpFlags::default()), Ok((0, 0, 0, 4, 300)));
        assert_eq!(rates(HttpFlags { host: Some("10.1.2.3".into()), ..HttpFlags::default() }), Ok((120, 600, 600, 4, 300)));
        assert_eq!(rates(HttpFlags { public: true, ..HttpFlags::default() }), Ok((30, 120, 300, 2, 60)));
        assert_eq!(rates(HttpFlags { public: true, rate: Some(0), timeout: Some(5), ..HttpFlags::default() }), Ok((0, 120, 300, 2, 5)));
    }

    #[test]
    fn only_the_exact_word_switches_writes_of_the_tool_api_on() {
        let said = |config, runlore: Option<&str>, evalgate: Option<&str>| {
            tool_api_writes(config, |name| if name.starts_with("RUNLORE") { runlore } else { evalgate }.map(str::to_owned))
        };
        assert!(!said(false, None, None) && said(true, None, None));
        assert!(said(false, Some("true"), None) && said(false, None, Some("true")) && said(false, Some(""), Some("true")));
        for word in ["TRUE", "True", "1", "yes", "on", " true", "true ", "false"] {
            assert!(!said(false, Some(word), None) && !said(false, None, Some(word)) && !said(true, Some(word), None), "{word:?}");
        }
        assert!(!said(true, Some("false"), Some("true")), "ours comes first");
        let served = Settings::for_serve(&HttpFlags::default(), &Config::default()).unwrap();
        assert!(served.tool_api_writes.is_some() && resolved(HttpFlags::default()).unwrap().tool_api_writes.is_none());
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        for (flags, said) in [
            (HttpFlags { public: true, token: Some("x".into()), ..HttpFlags::default() }, "--public"),
            (HttpFlags { token: Some(String::new()), ..HttpFlags::default() }, "--token"),
            (HttpFlags { host: Some("0.0.0.0".into()), ..HttpFlags::default() }, "--allowed-host"),
            (HttpFlags { path: vec!["mcp".into()], ..HttpFlags::default() }, "--path"),
            (HttpFlags { trusted_proxy: vec!["everyone".into()], ..HttpFlags::default() }, "--trusted-proxy"),
            (HttpFlags { token_file: Some("/nowhere/at/all".into()), ..HttpFlags::default() }, "token file"),
        ] {
            let fault = resolved(flags).map(|_| ()).expect_err(said);
            assert!(fault.contains(said), "{fault}");
        }
    }
}
