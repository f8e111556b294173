//! The cursor of an evaluation's runs: where a page begins, and which way it goes, as one opaque word (decision 75).
//!
//! Promises: shorter than 64 characters; whoever has not the project's key can neither make nor alter one; it is good for its own project,
//! evaluation and order only; it stays good when the program is started anew. What is wrong with one is not told.
//! Does not: read the list.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::{
    domain::{log::RunStatus, time::Timestamp},
    store::ProjectionPlace,
    tools::ToolError,
};

/// The form of what follows; another one is refused.
const VERSION: u8 = 1;
/// Version, direction, status, time, number.
const PLACE: usize = 3 + 8 + 8;
/// Of the authentication code; nobody guesses 128 bits.
const CODE: usize = 16;

/// What a cursor says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// Whether the page before the place is meant, rather than the one after it.
    pub back: bool,
    /// The place.
    pub place: ProjectionPlace,
}

/// Makes and reads the cursors of one list.
pub struct Cursors(Hmac<Sha256>);

impl Cursors {
    /// Those of the list that `of` names (the project, the evaluation, the order), under the project's `key`.
    ///
    /// # Errors
    /// [`ToolError::Internal`] where the key is none.
    pub fn new(key: &[u8], of: &[&str]) -> Result<Self, ToolError> {
        let mut code = Hmac::<Sha256>::new_from_slice(key).map_err(|error| ToolError::Internal(error.to_string()))?;
        for part in of {
            // With its length, so that no two lists of parts are one text.
            code.update(&(part.len() as u64).to_be_bytes());
            code.update(part.as_bytes());
        }
        Ok(Self(code))
    }

    /// The word for `cursor`.
    #[must_use]
    pub fn write(&self, cursor: Cursor) -> String {
        let place = bytes(cursor);
        let code = self.0.clone().chain_update(place).finalize().into_bytes();
        let whole: Vec<u8> = place.into_iter().chain(code.into_iter().take(CODE)).collect();
        BASE64_URL_SAFE_NO_PAD.encode(whole)
    }

    /// What `word` says; none where it is not one of this list's.
    #[must_use]
    pub fn read(&self, word: &str) -> Option<Cursor> {
        let whole = BASE64_URL_SAFE_NO_PAD.decode(word).ok()?;
        let (place, code) = whole.split_first_chunk::<PLACE>().filter(|(_, code)| code.len() == CODE)?;
        self.0.clone().chain_update(place).verify_truncated_left(code).ok()?;
        cursor(*place)
    }
}

fn bytes(Cursor { back, place }: Cursor) -> [u8; PLACE] {
    let status = RunStatus::ALL.iter().position(|status| *status == place.status).and_then(|at| u8::try_from(at).ok());
    let head = [VERSION, u8::from(back), status.unwrap_or(u8::MAX)];
    let numbers = [place.created_at.millis().to_be_bytes(), place.number.to_be_bytes()];
    let mut out = [0; PLACE];
    out.iter_mut().zip(head.into_iter().chain(numbers.into_iter().flatten())).for_each(|(to, from)| *to = from);
    out
}

fn cursor(place: [u8; PLACE]) -> Option<Cursor> {
    let ([version, back, status], numbers) = place.split_first_chunk::<3>()?;
    let (at, number) = numbers.split_first_chunk::<8>()?;
    let place = ProjectionPlace {
        status: RunStatus::ALL.get(usize::from(*status)).copied()?,
        created_at: Timestamp::from_millis(i64::from_be_bytes(*at)),
        number: i64::from_be_bytes(number.try_into().ok()?),
    };
    (*version == VERSION && *back <= 1).then_some(Cursor { back: *back == 1, place })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn list(of: &[&str]) -> Cursors {
        Cursors::new(&[7; 32], of).unwrap()
    }

    fn any_cursor() -> impl Strategy<Value = Cursor> {
        (any::<bool>(), proptest::sample::select(&RunStatus::ALL[..]), any::<i64>(), any::<i64>()).prop_map(|(back, status, at, number)| {
            Cursor { back, place: ProjectionPlace { status, created_at: Timestamp::from_millis(at), number } }
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_and_nothing_else_is(cursor in any_cursor(), place in 0..35_usize, flip in 1..=255_u8) {
            let own = list(&["p", "e", "created_at", "desc"]);
            let word = own.write(cursor);
            prop_assert!(word.len() < 64 && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)));
            prop_assert_eq!(own.read(&word), Some(cursor));
            let mut bytes = BASE64_URL_SAFE_NO_PAD.decode(&word).unwrap();
            bytes[place] ^= flip;
            prop_assert_eq!(own.read(&BASE64_URL_SAFE_NO_PAD.encode(bytes)), None);
        }
    }

    fn some() -> Cursor {
        Cursor { back: true, place: ProjectionPlace { status: RunStatus::Failed, created_at: Timestamp::from_millis(-1), number: 9 } }
    }

    #[test]
    fn every_bit_and_every_letter_counts() {
        let own = list(&["p"]);
        let word = own.write(some());
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(&word).unwrap();
        for bit in 0..bytes.len() * 8 {
            let mut altered = bytes.clone();
            altered[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(own.read(&BASE64_URL_SAFE_NO_PAD.encode(altered)), None, "bit {bit}");
        }
        for at in 0..word.len() {
            for letter in ['A', 'B', 'z', '9', '-', '_', '=', '+', ' ', 'é'] {
                let altered: String = word.chars().enumerate().map(|(place, own)| if place == at { letter } else { own }).collect();
                assert!(altered == word || own.read(&altered).is_none(), "{altered}");
            }
            let shorter: String = word.chars().take(at).collect();
            assert_eq!(own.read(&shorter), None);
        }
        for longer in [format!("{word}A"), format!("{word}AAAA"), format!("{word}="), format!(" {word}")] {
            assert_eq!(own.read(&longer), None);
        }
    }

    #[test]
    fn it_is_good_for_its_own_list_and_key_only() {
        let own = list(&["p", "e", "created_at", "desc"]);
        let word = own.write(some());
        let others: [&[&str]; 6] = [
            &["q", "e", "created_at", "desc"],
            &["p", "f", "created_at", "desc"],
            &["p", "e", "status", "desc"],
            &["p", "e", "created_at", "asc"],
            &["pe", "", "created_at", "desc"],
            &["p", "e", "created_at"],
        ];
        assert!(others.iter().all(|other| list(other).read(&word).is_none()));
        assert_eq!(Cursors::new(&[8; 32], &["p", "e", "created_at", "desc"]).unwrap().read(&word), None);
    }

    #[test]
    fn another_version_is_refused_though_it_is_ours() {
        let own = list(&["p"]);
        for (at, value) in [(0, VERSION + 1), (0, 0), (1, 2), (2, 6)] {
            let mut place = bytes(some());
            place[at] = value;
            let code = own.0.clone().chain_update(place).finalize().into_bytes();
            let word = BASE64_URL_SAFE_NO_PAD.encode([&place[..], &code[..CODE]].concat());
            assert_eq!(own.read(&word), None, "{at} {value}");
        }
    }
}
