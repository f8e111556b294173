//! Cursors: where a list goes on, as one opaque word.
//!
//! Promises: a cursor holds the place of the last row, so that pages neither repeat nor skip rows while others come and go; it is bound to the
//! project, the list and its arguments, and one that was altered, or that is used with other arguments, is refused with what is wrong.
//! Does not: keep anything back: it holds what its reader has already seen, and whoever makes one up gets no more than the list gives.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{Ctx, ToolError};
use crate::domain::{attempt::shorten, text::clean};

/// Bytes of each check: enough that no accident passes.
pub(super) const CHECK: usize = 6;
/// What every cursor begins with: as text it is a letter, so that a command line does not take a cursor for a flag.
const FIRST: u8 = 0;
/// A longer one is none of ours: the longest ids make some kilobytes.
pub(super) const CHARS_MAX: usize = 16 * 1024;

/// The list that a cursor is bound to: a tool's name and its arguments but for `cursor` itself.
pub struct List<'a> {
    name: &'a str,
    bound: [u8; CHECK],
}

impl<'a> List<'a> {
    /// The list that `name` gives for `arguments` in the call's project.
    #[must_use]
    pub fn of(ctx: &Ctx, name: &'a str, arguments: &impl Serialize) -> Self {
        Self::in_project(&ctx.project, name, arguments)
    }

    fn in_project(project: &str, name: &'a str, arguments: &impl Serialize) -> Self {
        let mut arguments = serde_json::to_value(arguments).unwrap_or_default();
        if let Value::Object(map) = &mut arguments {
            map.remove("cursor");
        }
        Self { name, bound: check(&[b"list", project.as_bytes(), name.as_bytes(), arguments.to_string().as_bytes()]) }
    }

    /// The cursor of `place`.
    #[must_use]
    pub fn at(&self, place: &impl Serialize) -> String {
        let place = serde_json::to_vec(place).unwrap_or_default();
        let bytes = [&[FIRST], &self.bound[..], &check(&[b"place", &self.bound, &place]), &place].concat();
        BASE64_URL_SAFE_NO_PAD.encode(bytes)
    }

    /// The place that `cursor` is of; none without a cursor.
    ///
    /// # Errors
    /// [`ToolError::Argument`] where it is none of this list's.
    pub fn place<T: DeserializeOwned>(&self, cursor: Option<&str>) -> Result<Option<T>, ToolError> {
        let Some(cursor) = cursor else { return Ok(None) };
        let unknown = || {
            let shown = clean(&shorten(cursor, 80));
            ToolError::Argument(format!("argument cursor: \"{shown}\" is not a cursor that {} gave; begin again without it", self.name))
        };
        let bytes = Some(cursor).filter(|text| text.len() <= CHARS_MAX).and_then(|text| BASE64_URL_SAFE_NO_PAD.decode(text).ok());
        let bytes = bytes.ok_or_else(unknown)?;
        let bytes = bytes.strip_prefix(&[FIRST]).ok_or_else(unknown)?;
        let (bound, rest) = bytes.split_at_checked(CHECK).ok_or_else(unknown)?;
        let (checked, place) = rest.split_at_checked(CHECK).ok_or_else(unknown)?;
        if checked != check(&[b"place", bound, place]) {
            return Err(unknown());
        }
        if bound != self.bound {
            let name = self.name;
            return Err(ToolError::Argument(format!(
                "argument cursor: it goes on from an answer to other arguments; give {name} the same ones, or begin again without it"
            )));
        }
        serde_json::from_slice(place).map(Some).map_err(|_| unknown())
    }
}

/// The beginning of a digest over `parts`, each with its length, so that no two lists of parts are one text.
pub(super) fn check(parts: &[&[u8]]) -> [u8; CHECK] {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    }
    let mut out = [0; CHECK];
    out.iter_mut().zip(digest.finalize()).for_each(|(to, from)| *to = from);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    type Place = (i64, String);

    fn said(list: &List<'_>, cursor: &str) -> String {
        list.place::<Place>(Some(cursor)).unwrap_err().to_string()
    }

    #[test]
    fn a_cursor_is_read_back_whatever_the_id_holds() {
        let list = List::in_project("p", "list", &json!({"filter": "a", "cursor": null}));
        for id in ["a.b.c", "", "é#@/ \u{0}", "x"] {
            let place: Place = (-5, id.to_owned());
            assert!(list.at(&place).starts_with('A'), "never a dash");
            assert_eq!(list.place(Some(&list.at(&place))).unwrap(), Some(place));
        }
        assert_eq!(list.place::<Place>(None).unwrap(), None);
    }

    #[test]
    fn an_altered_one_is_refused_wherever_it_is_altered() {
        let list = List::in_project("p", "list", &json!({}));
        let cursor = list.at(&(1_i64, "run".to_owned()));
        for place in 0..cursor.len() {
            for other in ['A', 'z', '-', '=', 'é'] {
                let altered: String = cursor.chars().enumerate().map(|(at, own)| if at == place { other } else { own }).collect();
                if altered != cursor {
                    assert!(said(&list, &altered).contains("is not a cursor that list gave"), "{altered}");
                }
            }
        }
        let shorter: String = cursor.chars().skip(1).collect();
        for none in [String::new(), shorter, format!("{cursor}A"), format!("{cursor}AAAA"), "x".repeat(CHARS_MAX + 1)] {
            assert!(said(&list, &none).contains("is not a cursor"), "{none}");
        }
    }

    #[test]
    fn it_goes_with_its_own_arguments_only() {
        let arguments = json!({"filter": "a", "limit": 3, "cursor": "whatever"});
        let list = List::in_project("p", "list", &arguments);
        let cursor = list.at(&(1_i64, "run".to_owned()));
        assert!(List::in_project("p", "list", &json!({"filter": "a", "limit": 3})).place::<Place>(Some(&cursor)).is_ok());
        for other in [
            List::in_project("p", "list", &json!({"filter": "b", "limit": 3})),
            List::in_project("p", "other", &arguments),
            List::in_project("q", "list", &arguments),
        ] {
            assert!(said(&other, &cursor).contains("it goes on from an answer to other arguments"));
        }
    }
}
