//! The words of a question; the rest is tested over SQLite, which ranks.

use super::*;

#[test]
fn a_question_is_its_words() {
    assert_eq!(words("What regressed, since \"last week\"? what"), ["What", "regressed", "since", "last", "week"]);
    assert_eq!(words("AND (NEAR -x* OR:"), ["AND", "NEAR", "x", "OR"]);
    assert!(words("\"-*' \u{0}").is_empty() && words(&"a b c d e f g ".repeat(9)).len() == 7);
}
