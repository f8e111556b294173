//! The handle of an approval: leave for one call, as one opaque word (decision 31).
//!
//! Promises: whoever has not the project's key can neither make nor alter one; it is good for one project, caller, tool, arguments (to the
//! letter) and way of giving it, and until its end; compared in constant time. Hexadecimal, so that it never looks like a secret to the redactor,
//! which stands on the way out.
//! Does not: know which handles were used; the store does, in the transaction of the write.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};

use crate::{
    clock,
    domain::{hex::hex, time::Timestamp},
    store::workspace::Approval,
    tools::{Ctx, ToolError},
};

/// Keeps these codes apart from all others under the same key.
const DOMAIN: &str = "runlore approval";
/// The form of what follows, and the way: see [`Way`].
const HEAD: usize = 1;
/// Until when, in seconds.
const END: usize = 4;
/// So that no two are the same.
const NONCE: usize = 8;
/// Of the authentication code; nobody guesses 128 bits.
const CODE: usize = 16;
const BODY: usize = HEAD + END + NONCE;
/// Characters of every handle.
pub const CHARS: usize = 2 * (BODY + CODE);

const REFUSED: &str = "argument approval: this handle is not for this call; one holds for the project, caller, tool and arguments (to the letter) that it was given to, and comes back the way it was asked for; call without approval to ask for another";

/// How a handle comes back. What one is asked to answer in a form does not do as an argument: who declined has not given leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// As the argument `approval`.
    Argument,
    /// With the answer to a form.
    Form,
}

impl Way {
    /// The first byte of its handles.
    const fn head(self) -> u8 {
        match self {
            Self::Argument => 1,
            Self::Form => 2,
        }
    }
}

/// What leave is for.
#[derive(Debug, Clone, Copy)]
pub struct Bound<'a> {
    /// The caller's identity.
    pub identity: &'a str,
    /// The tool.
    pub tool: &'static str,
    /// The digest of the canonical arguments.
    pub digest: &'a str,
    /// How it comes back.
    pub way: Way,
}

/// A handle that was given out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handle {
    /// The word.
    pub word: String,
    /// Until when it holds.
    pub expires_at: Timestamp,
}

impl Bound<'_> {
    fn code(&self, ctx: &Ctx) -> Result<Hmac<Sha256>, ToolError> {
        let key = ctx.store.cursor_key()?;
        let mut code = Hmac::<Sha256>::new_from_slice(&key).map_err(|error| ToolError::Internal(error.to_string()))?;
        for part in [DOMAIN, &ctx.project, self.identity, self.tool, self.digest] {
            // With its length, so that no two lists of parts are one text.
            code.update(&(part.len() as u64).to_be_bytes());
            code.update(part.as_bytes());
        }
        Ok(code)
    }

    /// A handle that holds for `for_ms` from now.
    ///
    /// # Errors
    /// [`ToolError`] where the store or the system fails.
    pub fn given(&self, ctx: &Ctx, for_ms: i64) -> Result<Handle, ToolError> {
        // Whole seconds, never later than said.
        let end = u32::try_from(ctx.now.millis().saturating_add(for_ms) / 1000).unwrap_or(u32::MAX);
        let nonce = clock::random::<NONCE>().map_err(ToolError::Internal)?;
        let body = [&[self.way.head()][..], &end.to_be_bytes(), &nonce].concat();
        let code = self.code(ctx)?.chain_update(&body).finalize().into_bytes();
        let word = format!("{}{}", hex(&body), hex(code.get(..CODE).unwrap_or_default()));
        Ok(Handle { word, expires_at: instant(end) })
    }

    /// What the store uses up, where `word` is leave for this.
    ///
    /// # Errors
    /// [`ToolError::Argument`] where it is not; that it has ended the store says, which knows the moment of the write.
    pub fn taken(&self, ctx: &Ctx, word: &str) -> Result<Approval, ToolError> {
        let refused = || ToolError::Argument(REFUSED.to_owned());
        let whole = unhex(word).ok_or_else(refused)?;
        let (body, code) = whole.split_at_checked(BODY).filter(|(_, code)| code.len() == CODE).ok_or_else(refused)?;
        if body.first() != Some(&self.way.head()) {
            return Err(refused());
        }
        self.code(ctx)?.chain_update(body).verify_truncated_left(code).map_err(|_| refused())?;
        let end = body.get(HEAD..HEAD + END).and_then(|end| end.try_into().ok()).map(u32::from_be_bytes).ok_or_else(refused)?;
        Ok(Approval { handle: hex(&Sha256::digest(word)), expires_at: instant(end) })
    }
}

fn instant(seconds: u32) -> Timestamp {
    Timestamp::from_millis(i64::from(seconds) * 1000)
}

/// The bytes of digits in lower case: another spelling would be another word to the store.
fn unhex(word: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let pairs = word.as_bytes().chunks(2);
    pairs.map(|pair| if let [high, low] = pair { Some(digit(*high)? * 16 + digit(*low)?) } else { None }).collect()
}
