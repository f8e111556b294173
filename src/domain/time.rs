//! Instants: UTC, to the millisecond, written as RFC 3339 with `Z`; and the `since` argument.
//!
//! Promises: what is written parses to the same instant; comparisons are by instant, whatever offset the source wrote; nothing that comes from
//! outside is beyond the years 1 to 9999, since RFC 3339 writes no other.
//! Does not: read a clock (`clock.rs` does).

use chrono::{DateTime, NaiveDate, SecondsFormat, Utc};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// An instant, in milliseconds since 1970 UTC.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp(i64);

/// 0001-01-01T00:00:00Z.
const FIRST_MS: i64 = -62_135_596_800_000;
/// 9999-12-31T23:59:59.999Z.
const LAST_MS: i64 = 253_402_300_799_999;

impl Timestamp {
    /// The instant `millis` milliseconds after 1970 (UTC). For numbers of our own; [`Timestamp::of_millis`] is for others'.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// The instant `millis` milliseconds after 1970 (UTC), where it is in the years 1 to 9999.
    #[must_use]
    pub const fn of_millis(millis: i64) -> Option<Self> {
        if millis >= FIRST_MS && millis <= LAST_MS { Some(Self(millis)) } else { None }
    }

    /// Milliseconds since 1970 (UTC).
    #[must_use]
    pub const fn millis(self) -> i64 {
        self.0
    }

    /// Reads RFC 3339 with any offset; a time without an offset is taken as UTC. None for anything else, the empty text and what
    /// is in no year from 1 to 9999 (UTC) included.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if let Ok(time) = DateTime::parse_from_rfc3339(text) {
            return Self::of_millis(time.timestamp_millis());
        }
        let naive = chrono::NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f")
            .or_else(|_| chrono::NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S%.f"));
        naive.ok().and_then(|time| Self::of_millis(time.and_utc().timestamp_millis()))
    }

    /// RFC 3339 in UTC with `Z`; the fraction only where there is one.
    #[must_use]
    pub fn rfc3339(self) -> String {
        let format = if self.0 % 1000 == 0 { SecondsFormat::Secs } else { SecondsFormat::Millis };
        DateTime::<Utc>::from_timestamp_millis(self.0).unwrap_or_default().to_rfc3339_opts(format, true)
    }

    /// This instant moved by `millis` (negative: earlier), held at the ends of the years 1 to 9999.
    #[must_use]
    pub const fn plus_millis(self, millis: i64) -> Self {
        let moved = self.0.saturating_add(millis);
        if moved < FIRST_MS {
            return Self(FIRST_MS);
        }
        Self(if moved > LAST_MS { LAST_MS } else { moved })
    }

    /// This instant moved by `millis`, where that is in the years 1 to 9999.
    #[must_use]
    pub const fn moved(self, millis: i64) -> Option<Self> {
        Self::of_millis(self.0.saturating_add(millis))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.rfc3339())
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| D::Error::custom(format!("\"{text}\" is no RFC 3339 time such as 2026-11-30T12:00:00Z")))
    }
}

impl JsonSchema for Timestamp {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Timestamp".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": "date-time"})
    }
}

const MINUTE_MS: i64 = 60_000;

/// The instant that a `since` argument means, seen from `now`: `7d`, `12h`, `30m`, `2w`, a date (its first instant, UTC) or an RFC 3339 time.
///
/// # Errors
/// A sentence that names the value and the forms allowed.
pub fn since(text: &str, now: Timestamp) -> Result<Timestamp, String> {
    ago(text, now)
        .or_else(|| {
            NaiveDate::parse_from_str(text, "%Y-%m-%d")
                .ok()?
                .and_hms_opt(0, 0, 0)
                .and_then(|time| Timestamp::of_millis(time.and_utc().timestamp_millis()))
        })
        .or_else(|| Timestamp::parse(text))
        .ok_or_else(|| {
            format!(
                "\"{}\" is no time; give an age such as 7d, 12h or 2w, a date such as 2026-11-23, or an RFC 3339 time",
                super::text::clean(text)
            )
        })
}

fn ago(text: &str, now: Timestamp) -> Option<Timestamp> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let unit_ms = match unit {
        "m" => MINUTE_MS,
        "h" => 60 * MINUTE_MS,
        "d" => 24 * 60 * MINUTE_MS,
        "w" => 7 * 24 * 60 * MINUTE_MS,
        _ => return None,
    };
    // Digits only: "-7d" would be the future, "+7d" a typo.
    let number = number.bytes().all(|byte| byte.is_ascii_digit()).then(|| number.parse::<i64>().ok())??;
    Some(now.plus_millis(-number.checked_mul(unit_ms)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_normalised_to_utc() {
        let time = Timestamp::parse("2024-11-05T13:31:45-05:00").unwrap();
        assert_eq!(time.rfc3339(), "2024-11-05T18:31:45Z");
        assert_eq!(Timestamp::parse("2026-11-30T11:01:17.757931+00:00").unwrap().rfc3339(), "2026-11-30T11:01:17.757Z");
        assert_eq!(Timestamp::parse(""), None);
    }

    #[test]
    fn there_is_no_time_outside_the_years_1_to_9999() {
        for wrong in [
            "9999-12-31T23:59:60Z",
            "9999-12-31T23:59:59-01:00",
            "0000-01-01T00:00:00+01:00",
            "0001-01-01T00:00:00+00:01",
            "0000-12-31T23:59:59.999",
            "0000-12-31 23:59:59.999",
            "+10000-01-01T00:00:00",
        ] {
            assert_eq!(Timestamp::parse(wrong), None, "{wrong}");
        }
        // A leap second inside them is the next second, as the clock of Unix has it.
        assert_eq!(Timestamp::parse("2016-12-31T23:59:60Z"), Timestamp::parse("2017-01-01T00:00:00Z"));
        let ends = ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z"];
        let [first, last] = ends.map(|text| Timestamp::parse(text).unwrap());
        assert_eq!([first, last].map(Timestamp::rfc3339), ends);
        assert_eq!((first.moved(-1), last.moved(1), last.moved(-1).is_some()), (None, None, true));
        assert_eq!((Timestamp::of_millis(first.millis() - 1), Timestamp::of_millis(i64::MAX)), (None, None));
        assert_eq!((first.plus_millis(-1), last.plus_millis(i64::MAX)), (first, last));
        assert!(since("0000-01-01", last).is_err() && since("9999-12-31T23:59:60Z", last).is_err());
        assert_eq!(since("9000000w", first), Ok(first));
    }

    #[test]
    fn since_takes_ages_dates_and_times() {
        let now = Timestamp::parse("2026-11-30T12:00:00Z").unwrap();
        let shown = |text| since(text, now).map(Timestamp::rfc3339);
        assert_eq!(shown("7d"), Ok("2026-11-23T12:00:00Z".into()));
        assert_eq!(shown("90m"), Ok("2026-11-30T10:30:00Z".into()));
        assert_eq!(shown("2026-11-23"), Ok("2026-11-23T00:00:00Z".into()));
        assert_eq!(shown("2026-11-23T01:00:00+01:00"), Ok("2026-11-23T00:00:00Z".into()));
        for wrong in ["", "d", "-7d", "7y", "yesterday", "2026-13-01", "99999999999999999999d", "7é"] {
            assert!(shown(wrong).unwrap_err().contains("7d"), "{wrong}");
        }
    }
}
