//! The flags of the HTTP service, with S-harness's and S-history's names.
//!
//! Promises: each overrides a key of the config; a flag that is not given is `None`.
//! Does not: decide defaults (`settings` does).

use std::path::PathBuf;

use clap::Args;

use crate::tools::Toolsets;

/// What the command line says of the HTTP service.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "HTTP")]
pub struct HttpFlags {
    /// Only these tools, with commas between: history, query, catalog, workspace, projections, commands. Without it, http.toolsets of the configuration; else all but commands, and for mcp history, query and catalog.
    #[arg(long, value_name = "WORDS", value_parser = Toolsets::parse, help_heading = "Options")]
    pub toolsets: Option<Toolsets>,
    /// The address to listen on.
    #[arg(long, alias = "bind", value_name = "ADDRESS")]
    pub host: Option<String>,
    /// The port to listen on, 1 to 65535.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Option<u16>,
    /// The bearer token that every request must carry; better in RUNLORE_MCP_TOKEN or a file, where other processes do not see it.
    #[arg(long, value_name = "SECRET")]
    pub token: Option<String>,
    /// A file that holds the bearer token.
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// The path of an MCP endpoint; may be given several times.
    #[arg(long, value_name = "URL_PATH")]
    pub path: Vec<String>,
    /// A host name that is answered besides the loopback's; may be given several times.
    #[arg(long, value_name = "HOST")]
    pub allowed_host: Vec<String>,
    /// An origin of browsers that may call; may be given several times.
    #[arg(long, value_name = "ORIGIN")]
    pub allowed_origin: Vec<String>,
    /// The header in which a trusted proxy names the caller, such as X-Real-IP.
    #[arg(long, value_name = "HEADER")]
    pub client_header: Option<String>,
    /// A network whose client header is believed; the loopback always is; may be given several times.
    #[arg(long, value_name = "CIDR")]
    pub trusted_proxy: Vec<String>,
    /// Tool calls a minute of one caller; 0 for no limit.
    #[arg(long, value_name = "N")]
    pub rate: Option<u32>,
    /// Tool calls a minute that run, of all callers together; 0 for no limit.
    #[arg(long, value_name = "N")]
    pub rate_total: Option<u32>,
    /// Requests a minute from one address; 0 for no limit.
    #[arg(long, value_name = "N")]
    pub request_rate: Option<u32>,
    /// Heavy tools that run at once.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub concurrent: Option<u32>,
    /// Seconds that one call may run.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub timeout: Option<u64>,
    /// Bytes of a request's body.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1024..=16_777_216))]
    pub max_body: Option<u64>,
    /// Open connections.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub max_connections: Option<u32>,
    /// Anybody may read: no token, texts of cases and attempts hidden.
    #[arg(long)]
    pub public: bool,
    /// Where the private listener (livez, readyz, metrics) listens.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub admin_listen: Option<String>,
}

impl HttpFlags {
    /// The name of the first flag that was given, if any.
    #[must_use]
    pub fn given(&self) -> Option<&'static str> {
        let given = [
            ("host", self.host.is_some()),
            ("port", self.port.is_some()),
            ("token", self.token.is_some()),
            ("token-file", self.token_file.is_some()),
            ("path", !self.path.is_empty()),
            ("allowed-host", !self.allowed_host.is_empty()),
            ("allowed-origin", !self.allowed_origin.is_empty()),
            ("client-header", self.client_header.is_some()),
            ("trusted-proxy", !self.trusted_proxy.is_empty()),
            ("rate", self.rate.is_some()),
            ("rate-total", self.rate_total.is_some()),
            ("request-rate", self.request_rate.is_some()),
            ("concurrent", self.concurrent.is_some()),
            ("timeout", self.timeout.is_some()),
            ("max-body", self.max_body.is_some()),
            ("max-connections", self.max_connections.is_some()),
            ("public", self.public),
            ("admin-listen", self.admin_listen.is_some()),
        ];
        given.into_iter().find(|(_, given)| *given).map(|(name, _)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Command, FromArgMatches as _};

    #[test]
    fn every_flag_is_noticed() {
        let command = HttpFlags::augment_args(Command::new("x"));
        for argument in command.get_arguments() {
            let name = argument.get_long().unwrap();
            let value = match name {
                "port" | "concurrent" | "timeout" | "max-connections" => "5",
                "max-body" => "2048",
                "toolsets" => continue,
                _ => "1",
            };
            let words = if name == "public" {
                vec!["x".to_owned(), format!("--{name}")]
            } else {
                vec!["x".to_owned(), format!("--{name}"), value.to_owned()]
            };
            let flags = HttpFlags::from_arg_matches(&command.clone().get_matches_from(words)).unwrap();
            assert_eq!(flags.given(), Some(name));
        }
        assert_eq!(HttpFlags::default().given(), None);
    }
}
