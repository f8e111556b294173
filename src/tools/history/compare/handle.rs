//! The handle of an evidence: one opaque word that says what was compared and what was found, so that whoever reads a number can compute it again.
//!
//! Promises: it goes by ids alone, so that it means the same in every copy of a project's history; it has a version and a checksum, and what was
//! altered or cut is refused; it holds what its reader has already seen.
//! Does not: prove who made it: a handle is a question to the store, and the store answers.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Input, Output, page::RowKey};
use crate::{
    domain::{
        attempt::shorten,
        evidence::{Evidence, MarginWord},
        text::clean,
        time::Timestamp,
    },
    stats::Word,
    tools::{
        ToolError,
        cursor::{CHARS_MAX, CHECK, check},
    },
};

/// What every handle begins with: what it is, and the version of what is behind it.
const BEGIN: &str = "ev1_";

/// The figures of an evidence, as they were shown.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Figures {
    /// Head minus base.
    pub difference: Option<f64>,
    /// Its 95% interval.
    pub interval: Option<[f64; 2]>,
    /// Cases counted on both sides.
    pub n: u64,
    /// The two-sided p value.
    pub p: Option<f64>,
    /// The same over the family.
    pub adjusted_p: Option<f64>,
    /// Rows of the family.
    pub family: Option<usize>,
    /// What so many cases detect.
    pub mde: Option<f64>,
    /// What errors could make of the difference.
    pub bounds: Option<[f64; 2]>,
    /// The one-sided bounds.
    pub margin_bounds: Option<[f64; 2]>,
    /// What they say.
    pub margin_verdict: Option<MarginWord>,
    /// What to make of it.
    pub verdict: Word,
}

/// [`Figures`] without names: there is one in each row of an answer.
type Bare = (Numbers, Option<usize>, Option<MarginWord>, Word);
type Numbers = (Option<f64>, Option<[f64; 2]>, u64, Option<f64>, Option<f64>, Option<f64>, Option<[f64; 2]>, Option<[f64; 2]>);

impl Figures {
    /// Those of an evidence as shown, whose p was adjusted over `family` rows.
    #[must_use]
    pub fn of(evidence: &Evidence, family: Option<usize>) -> Self {
        let margin = evidence.margin.as_ref();
        Self {
            difference: evidence.difference,
            interval: evidence.interval,
            n: evidence.n,
            p: evidence.p,
            adjusted_p: evidence.adjusted_p,
            family: family.filter(|_| evidence.adjusted_p.is_some()),
            mde: evidence.mde,
            bounds: evidence.bounds,
            margin_bounds: margin.map(|margin| margin.bounds),
            margin_verdict: margin.map(|margin| margin.verdict),
            verdict: evidence.word,
        }
    }

    fn bare(&self) -> Bare {
        let numbers = (self.difference, self.interval, self.n, self.p, self.adjusted_p, self.mde, self.bounds, self.margin_bounds);
        (numbers, self.family, self.margin_verdict, self.verdict)
    }

    fn named((numbers, family, margin_verdict, verdict): Bare) -> Self {
        let (difference, interval, n, p, adjusted_p, mde, bounds, margin_bounds) = numbers;
        Self { difference, interval, n, p, adjusted_p, family, mde, bounds, margin_bounds, margin_verdict, verdict }
    }
}

/// What was compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// The newer run; none of a suite with `since`.
    pub head: Option<String>,
    /// The older run.
    pub base: Option<String>,
    /// The instant that `since` meant and the newest run of *now*, in milliseconds.
    pub since: Option<(i64, Option<i64>)>,
    /// The filter, which decides the family.
    pub filter: Option<String>,
    /// The margin.
    pub margin: Option<f64>,
    /// The row; none for the suite.
    pub row: Option<RowKey>,
}

type BareCompared = (Option<String>, Option<String>, Option<(i64, Option<i64>)>, Option<String>, Option<f64>, Option<RowKey>);

/// The word for `compared` with `figures`.
#[must_use]
pub fn word(compared: &Compared, figures: &Figures) -> String {
    let Compared { head, base, since, filter, margin, row } = compared.clone();
    let bare: (BareCompared, Bare) = ((head, base, since, filter, margin, row), figures.bare());
    let text = serde_json::to_vec(&bare).unwrap_or_default();
    BEGIN.to_owned() + &BASE64_URL_SAFE_NO_PAD.encode([&check(&[BEGIN.as_bytes(), &text])[..], &text].concat())
}

/// What `word` is of.
///
/// # Errors
/// [`ToolError::Argument`] where it is no handle, one of another version, or altered.
pub fn read(word: &str) -> Result<(Compared, Figures), ToolError> {
    let unknown = || {
        let shown = clean(&shorten(word, 80));
        ToolError::Argument(format!("argument handle: \"{shown}\" is no handle of an evidence; give it whole, as compare gave it"))
    };
    let rest = word.trim().strip_prefix(BEGIN).filter(|rest| rest.len() <= CHARS_MAX).ok_or_else(unknown)?;
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(rest).map_err(|_| unknown())?;
    let (checked, text) = bytes.split_at_checked(CHECK).ok_or_else(unknown)?;
    if checked != check(&[BEGIN.as_bytes(), text]) {
        return Err(unknown());
    }
    let (bare, figures): (BareCompared, Bare) = serde_json::from_slice(text).map_err(|_| unknown())?;
    let (head, base, since, filter, margin, row) = bare;
    Ok((Compared { head, base, since, filter, margin, row }, Figures::named(figures)))
}

/// Gives every evidence of an answer its handle.
pub(super) fn give(output: &mut Output, input: &Input) {
    let id = |side: &Option<super::RunSide>| side.as_ref().map(|side| side.run_id.clone());
    let all = Compared {
        head: id(&output.head),
        base: id(&output.base),
        since: output.since.map(|since| (since.millis(), output.until.map(Timestamp::millis))),
        filter: input.filter.clone(),
        margin: input.margin.map(|margin| margin.get()),
        row: None,
    };
    let family = output.family.map(|family| family.size);
    for row in &mut output.rows {
        let Some(evidence) = &mut row.evidence else { continue };
        let own = |side: &Option<super::super::record::CellSide>| Some(side.as_ref()?.run.as_ref()?.run_id.clone());
        let compared = Compared {
            head: own(&row.head).or_else(|| all.head.clone()),
            base: own(&row.base).or_else(|| all.base.clone()),
            row: Some((row.id.clone(), row.case.clone(), row.arm.clone())),
            ..all.clone()
        };
        evidence.handle = Some(word(&compared, &Figures::of(evidence, family)));
    }
    if let Some(suite) = &mut output.suite {
        suite.handle = Some(word(&all, &Figures::of(suite, None)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures() -> Figures {
        Figures {
            difference: Some(-0.25),
            interval: Some([-0.4321, -0.1]),
            n: 40,
            p: Some(0.007_812),
            adjusted_p: Some(0.015_62),
            family: Some(2),
            mde: None,
            bounds: None,
            margin_bounds: Some([-0.4, -0.1]),
            margin_verdict: Some(MarginWord::Inferior),
            verdict: Word::Confirmed,
        }
    }

    fn compared() -> Compared {
        let row = Some(("é \"b\"".to_owned(), Some(String::new()), None));
        Compared { head: Some("h".into()), base: Some("b".into()), since: Some((-5, Some(7))), filter: None, margin: Some(0.05), row }
    }

    #[test]
    fn a_handle_is_read_back() {
        assert_eq!(read(&word(&compared(), &figures())).unwrap(), (compared(), figures()));
        let suite = Compared { head: None, base: None, since: None, filter: Some("x".into()), margin: None, row: None };
        assert_eq!(read(&format!(" {}\n", word(&suite, &figures()))).unwrap().0, suite);
    }

    #[test]
    fn an_altered_one_is_refused_wherever_it_is_altered() {
        let whole = word(&compared(), &figures());
        let said = |text: &str| read(text).unwrap_err().to_string();
        for place in 0..whole.len() {
            for other in ['A', 'z', '-', '=', 'é'] {
                let altered: String = whole.chars().enumerate().map(|(at, own)| if at == place { other } else { own }).collect();
                assert!(altered == whole || said(&altered).contains("is no handle of an evidence"), "{altered}");
            }
        }
        let (shorter, newer) = (whole.get(..whole.len() - 4).unwrap(), whole.replacen("ev1_", "ev2_", 1));
        for none in ["", "ev1_", shorter, &newer, &format!("{whole}AAAA"), &"x".repeat(CHARS_MAX + 9)] {
            assert!(said(none).contains("is no handle of an evidence"), "{none}");
        }
    }
}
