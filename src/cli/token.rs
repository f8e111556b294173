//! `runlore token keygen` and `runlore token mint`: tokens for teams without an identity provider.
//!
//! Promises: `keygen` prints the public key set and nothing secret; `mint` prints the token alone, for a pipe or a variable.
//! Does not: ask a server, or keep what it made.

use std::path::PathBuf;

use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand};

use super::{CliError, output::Output};
use crate::{
    auth::{
        Role, jwt,
        local::{Grant, KeyError, LocalKey, TTL_MAX_S},
    },
    clock,
};

/// Characters of a name or URL in a token; the whole must fit a header.
const TEXT_CHARS_MAX: usize = 255;

/// What to do.
#[derive(Debug, Clone, Subcommand)]
enum Action {
    /// Makes an Ed25519 key, in a file that only you may read, and prints its public key set (JWKS) for servers
    Keygen(KeygenArgs),
    /// Prints a token that the key signs
    Mint(MintArgs),
}

#[derive(Debug, Clone, Args)]
struct KeygenArgs {
    /// The file to write the key to; it must not be there
    #[arg(long, value_name = "PATH")]
    out: PathBuf,
}

#[derive(Debug, Clone, Args)]
struct MintArgs {
    /// The file of the key
    #[arg(long, value_name = "PATH")]
    key_file: PathBuf,
    /// The issuer: what the server's configuration calls this key
    #[arg(long, value_name = "NAME", value_parser = named)]
    issuer: String,
    /// The audience: what the server's configuration calls the server
    #[arg(long, value_name = "NAME", value_parser = named)]
    audience: String,
    /// The organization that the token is good for
    #[arg(long, value_name = "NAME", value_parser = named)]
    organization: String,
    /// viewer, member, admin or owner
    #[arg(long, value_name = "WORD", default_value = "viewer")]
    role: Role,
    /// A scope, such as eval:read; may be given several times. Without any: *, all that the role allows
    #[arg(long, value_name = "WORD", value_parser = scope)]
    scope: Vec<String>,
    /// Who it is for, as logs shall name them; without it each token has a name of its own
    #[arg(long, value_name = "NAME", value_parser = named)]
    subject: Option<String>,
    /// How long it holds, such as 90s, 45m, 1h or 7d; at most 30d
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = seconds)]
    ttl: u64,
}

/// The verb.
#[must_use]
pub fn command() -> Command {
    Action::augment_subcommands(Command::new("token"))
        .about("Makes a key and tokens for a server's callers, for teams without an identity provider")
        .subcommand_required(true)
        .arg_required_else_help(true)
}

/// Makes a key or a token.
///
/// # Errors
/// [`CliError`], where a file cannot be used.
pub fn run(matches: &ArgMatches, output: &mut Output) -> Result<u8, CliError> {
    match Action::from_arg_matches(matches).map_err(|error| CliError::Usage(error.to_string()))? {
        Action::Keygen(args) => output.say(&LocalKey::generate(&args.out).map_err(|error| refused(&error))?.jwks()),
        Action::Mint(args) => {
            let key = LocalKey::load(&args.key_file).map_err(|error| refused(&error))?;
            output.say(&key.mint(&args.grant(), clock::now_s()).map_err(|error| refused(&error))?);
        }
    }
    Ok(0)
}

fn refused(error: &KeyError) -> CliError {
    CliError::Refused(error.to_string())
}

impl MintArgs {
    fn grant(self) -> Grant {
        let scopes = if self.scope.is_empty() { vec!["*".to_owned()] } else { self.scope };
        Grant {
            issuer: self.issuer,
            audience: self.audience,
            subject: self.subject,
            organization: self.organization,
            role: self.role,
            scopes,
            ttl_s: self.ttl,
        }
    }
}

fn named(text: &str) -> Result<String, String> {
    if jwt::named(text) {
        Ok(text.to_owned())
    } else {
        Err(format!("give 1 to {TEXT_CHARS_MAX} characters, none of them a control character"))
    }
}

/// A scope as RFC 6749, section 3.3, has it: a quote or a space in it would make two, or none.
fn scope(text: &str) -> Result<String, String> {
    let good = (1..=TEXT_CHARS_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"\\".contains(&byte));
    if good { Ok(text.to_owned()) } else { Err("give one scope, such as eval:read, without spaces or quotes".to_owned()) }
}

fn seconds(text: &str) -> Result<u64, String> {
    let unit = |letter| match letter {
        's' => Some(1),
        'm' => Some(60),
        'h' => Some(3600),
        'd' => Some(86_400),
        _ => None,
    };
    let seconds = text.char_indices().next_back().and_then(|(at, letter)| {
        let digits = text.get(..at)?;
        let number: u64 = digits.parse().ok().filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
        number.checked_mul(unit(letter)?)
    });
    let good = seconds.filter(|seconds| (1..=TTL_MAX_S).contains(seconds));
    good.ok_or_else(|| "give a time such as 90s, 45m, 1h or 7d; at most 30d".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit_and_an_end() {
        assert_eq!(["90s", "45m", "1h", "30d", "720h"].map(seconds), [Ok(90), Ok(2700), Ok(3600), Ok(2_592_000), Ok(2_592_000)]);
        for bad in
            ["", "0s", "1", "h", "31d", "721h", "-1h", "+1h", "1.5h", "1 h", "1w", "99999999999999999999d", "18446744073709551615d", "1é"]
        {
            assert!(seconds(bad).is_err_and(|text| text.contains("at most 30d")), "{bad}");
        }
    }

    #[test]
    fn words_are_held_against_their_rules() {
        assert!(scope("eval:read").is_ok() && scope("*").is_ok());
        for bad in ["", "a b", "a\"b", "a\\b", "é", "a\n"] {
            assert!(scope(bad).is_err(), "{bad:?}");
        }
        assert!(named("acme").is_ok() && named("").is_err() && named("a\u{7}").is_err() && named(&"x".repeat(256)).is_err());
    }
}
