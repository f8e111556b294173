//! Evidence by hand, against a slow plain computation, and under chance alone.

use proptest::prelude::*;

use super::*;
use crate::domain::cell::{CellKey, Verdict};

fn cell(case: usize, passed: u32, failed: u32, infra: u32) -> Cell {
    let counts = Counts { passed, failed, infra, ..Counts::default() };
    Cell {
        key: CellKey { evaluation: "e".into(), case: Some(case.to_string()), arm: "m".into() },
        run_id: "r".into(),
        counts,
        threshold: None,
        several_cases: true,
        declared: false,
        verdict: Verdict::judge(counts, None),
    }
}

/// One attempt a case: `P`, `F` or `E`.
fn side(letters: &str) -> Vec<Cell> {
    let is = |letter: char, wanted: char| u32::from(letter == wanted);
    letters.chars().enumerate().map(|(case, letter)| cell(case, is(letter, 'P'), is(letter, 'F'), is(letter, 'E'))).collect()
}

fn told(head: &[Cell], base: &[Cell], margin: Option<f64>) -> Evidence {
    evidence(&head.iter().collect::<Vec<_>>(), &base.iter().collect::<Vec<_>>(), margin)
}

fn near(got: Option<f64>, want: f64) {
    assert!(got.is_some_and(|got| (got - want).abs() < 1e-9), "{got:?} {want}");
}

#[test]
fn errors_bound_the_difference() {
    // Case by case, head against base: E F, P F, P F, P P: 0..1, 1, 1, 0.
    let found = told(&side("EPPP"), &side("FFFP"), None);
    assert_eq!((found.n, found.bounds), (3, Some([0.5, 0.75])));
    near(found.difference, 2.0 / 3.0);
    // Three more errors at the base: there nothing is known of them, so the sign is not.
    let found = told(&side("EPPPFFF"), &side("FFFPEEE"), None);
    let [low, high] = found.bounds.unwrap();
    near(Some(low), (2.0 - 3.0) / 7.0);
    near(Some(high), 3.0 / 7.0);
    assert_eq!((found.word, found.reason.as_deref()), (Word::Inconclusive, Some("its sign depends on how 4 errored attempts count")));
    // Where nothing errored there are no bounds.
    assert_eq!(told(&side("PF"), &side("FF"), None).bounds, None);
}

#[test]
fn a_confirmed_difference_that_errors_could_turn_is_inconclusive() {
    let (head, base) = ("F".repeat(8) + &"P".repeat(12), "P".repeat(20));
    assert_eq!(told(&side(&head), &side(&base), None).word, Word::Confirmed);
    // The same eight lost, with eight errors at the base that may all have failed: the lowest is -8/28, the highest 0.
    let (head, base) = (head + &"P".repeat(8), base + &"E".repeat(8));
    let found = told(&side(&head), &side(&base), None);
    assert_eq!((found.word, found.n), (Word::Inconclusive, 20));
    let [low, high] = found.bounds.unwrap();
    near(Some(low), -8.0 / 28.0);
    near(Some(high), 0.0);
    assert!(found.p.unwrap() < 0.05, "the figures stay");
}

#[test]
fn a_margin_is_judged_by_bounds_and_errors() {
    let word = |head: &str, base: &str, margin| told(&side(head), &side(base), Some(margin)).margin.unwrap().verdict;
    let same = "P".repeat(200);
    assert_eq!(word(&same, &same, 0.05), MarginWord::Equivalent);
    let worse = "F".repeat(60) + &"P".repeat(140);
    assert_eq!(word(&worse, &same, 0.05), MarginWord::Inferior);
    assert_eq!(word(&same, &worse, 0.05), MarginWord::NonInferior);
    assert_eq!(word("PP", "PP", 0.05), MarginWord::Inconclusive, "two cases show nothing");
    // Twenty errors at the head are 10% that may have failed.
    let broken = "E".repeat(20) + &"P".repeat(180);
    assert_eq!(word(&broken, &same, 0.05), MarginWord::Inconclusive);
    assert_eq!(word(&broken, &same, 0.2), MarginWord::Equivalent);
    let found = told(&side(&same), &side(&same), Some(0.05)).margin.unwrap();
    assert_eq!(found.method, "clopper_pearson");
    assert!(found.bounds[0] < 0.0 && found.bounds[0] > -0.05);
}

#[test]
fn each_figure_names_its_method() {
    let plain = told(&side("FFFPPPPP"), &side("PPPPPPPP"), None);
    assert_eq!(
        (plain.method, plain.interval_method, plain.mde_method),
        (Some("exact_mcnemar"), Some("agresti_min"), Some("mcnemar_power"))
    );
    // b = 0, c = 3: p = 2 * 1/8.
    near(plain.p, 0.25);
    let several: Vec<Cell> = (0..8).map(|case| cell(case, if case < 3 { 1 } else { 3 }, if case < 3 { 2 } else { 0 }, 0)).collect();
    let graded = told(&several, &(0..8).map(|case| cell(case, 3, 0, 0)).collect::<Vec<_>>(), None);
    // Three of eight changed: too few for Student's interval.
    assert_eq!(
        (graded.method, graded.interval_method, graded.mde_method),
        (Some("sign_flip"), Some("pseudo_cases"), Some("paired_t_power"))
    );
    let half: Vec<Cell> = (0..8).map(|case| cell(case, 3 - u32::from(case < 5), u32::from(case < 5), 0)).collect();
    let graded = told(&half, &(0..8).map(|case| cell(case, 3, 0, 0)).collect::<Vec<_>>(), None);
    assert_eq!(graded.interval_method, Some("student_t"));
}

/// One attempt a case, the cases in groups of `size`.
fn told_in_groups(head: &str, base: &str, size: usize, margin: Option<f64>) -> Evidence {
    let (head, base) = (side(head), side(base));
    let names: Vec<String> = (0..head.len()).map(|case| format!("g{}", case / size)).collect();
    let group = |cell: &Cell, _: &Cell| names.get(cell.key.case.as_ref()?.parse::<usize>().ok()?).map(String::as_str);
    evidence_in_groups(&head.iter().collect::<Vec<_>>(), &base.iter().collect::<Vec<_>>(), &group, margin)
}

#[test]
fn cases_of_a_group_are_one_observation() {
    // Eight cases lost in two groups of four: alone p would be 2/256.
    let (head, base) = ("F".repeat(8) + &"P".repeat(32), "P".repeat(40));
    let found = told_in_groups(&head, &base, 4, None);
    assert_eq!((found.n, found.groups, found.changed, found.word), (40, Some(10), 2, Word::Inconclusive));
    assert_eq!(
        (found.method, found.interval_method, found.mde_method),
        (Some("group_sign_flip"), Some("clustered_agresti_min"), Some("clustered_t_power"))
    );
    // Of four ways that two groups can turn, two reach the sum.
    near(found.p, 0.5);
    near(found.difference, -0.2);
    let [low, high] = found.interval.unwrap();
    assert!(low < -0.45 && high > 0.0, "{low} {high}");
    // The same eight in eight groups are eight observations: 2/256, as alone.
    let spread: String = (0..40).map(|case| if case % 4 == 0 && case < 32 { 'F' } else { 'P' }).collect();
    let found = told_in_groups(&spread, &base, 4, Some(0.1));
    assert_eq!((found.groups, found.changed, found.word), (Some(10), 8, Word::Confirmed));
    near(found.p, 2.0 / 256.0);
    assert_eq!(found.margin.map(|margin| margin.method), Some("clustered_tango_score"));
    // A group of one each is none.
    let plain = told_in_groups(&head, &base, 1, None);
    assert_eq!((plain.groups, plain.method), (None, Some("exact_mcnemar")));
}

#[test]
fn few_groups_are_said_to_be() {
    let found = told_in_groups(&"F".repeat(40), &"P".repeat(40), 10, None);
    assert_eq!((found.groups, found.word, found.mde), (Some(4), Word::Inconclusive, None));
    assert_eq!(found.reason.as_deref(), Some("its 40 cases come in 4 groups: a difference takes at least 6"));
    near(found.p, 2.0 / 16.0);
    let one = told_in_groups(&"F".repeat(40), &"P".repeat(40), 40, Some(0.1));
    assert_eq!((one.groups, one.word, one.interval, one.margin.is_none()), (Some(1), Word::Inconclusive, None, true));
    assert_eq!(one.reason.as_deref(), Some("its 40 cases come in 1 group: a difference takes at least 6"));
    near(one.p, 1.0);
    assert_eq!(adjust([found, one].iter_mut()), None);
}

#[test]
fn p_is_adjusted_over_the_rows_that_could_be_found() {
    // Eight of eight lost: p = 2/256. Six lost: p = 2/64. Two changed, and none: neither can be found. One that cannot be compared.
    let row = |lost: usize| told(&side(&("F".repeat(lost) + &"P".repeat(12 - lost))), &side(&"P".repeat(12)), None);
    let mut rows = [row(8), row(6), row(2), row(0), Evidence::none(3, "changed")];
    let family = adjust(rows.iter_mut()).unwrap();
    assert_eq!(family, Family { size: 2, compared: 5, method: "benjamini_hochberg" });
    near(rows[0].adjusted_p, 4.0 / 256.0);
    near(rows[1].adjusted_p, 2.0 / 64.0);
    assert_eq!(rows.each_ref().map(|row| row.adjusted_p.is_some()), [true, true, false, false, false]);
    assert_eq!(rows.each_ref().map(|row| row.word).first(), Some(&Word::Confirmed));
    // Of many that changed as much by chance, one that changed a little more is not confirmed.
    let mixed = || told(&side("FFFPPPPP"), &side("PPPFFFPP"), None);
    let mut rows: Vec<Evidence> = std::iter::once(row(6)).chain((0..9).map(|_| mixed())).collect();
    assert_eq!((rows[0].word, adjust(rows.iter_mut()).unwrap().size), (Word::Confirmed, 10));
    assert_eq!((rows[0].word, rows[0].reason.as_deref()), (Word::Inconclusive, Some("not after adjusting p over 10 rows")));
    near(rows[0].adjusted_p, 10.0 / 32.0);
    assert_eq!(adjust([row(2)].iter_mut()), None);
}

#[test]
fn what_changed_is_the_reason_and_no_figure_stands() {
    let (head, base) = (side("PPE"), side("FFP"));
    let found = not_comparable(&head.iter().collect::<Vec<_>>(), &base.iter().collect::<Vec<_>>(), &["dataset".to_owned()]);
    assert_eq!((found.word, found.n, found.p, found.difference), (Word::NotComparable, 2, None, None));
    assert_eq!(found.reason.as_deref(), Some("changed since the base: dataset"));
}

#[test]
fn numbers_are_shown_short() {
    assert!((four_digits(0.012_345_6) - 0.012_35).abs() < 1e-12);
    assert!(round4(-0.000_01).is_sign_positive());
}

/// Twenty evaluations of thirty cases in which nothing differs: how often any of them is called confirmed.
#[test]
fn chance_alone_is_rarely_confirmed() {
    let mut state = 20_260_101_u64;
    let mut chance = move |rate: f64| {
        // SplitMix64: Steele, Lea and Flood (2014).
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64 <= rate
    };
    let (answers, mut wrong) = (1000, 0);
    for _ in 0..answers {
        let mut rows: Vec<Evidence> = (0..20)
            .map(|row| {
                let mut side = || -> Vec<Cell> {
                    let passed = (0..30).map(|_| chance(0.3 + 0.02 * f64::from(row)));
                    passed.enumerate().map(|(case, passed)| cell(case, passed.into(), (!passed).into(), 0)).collect()
                };
                told(&side(), &side(), None)
            })
            .collect();
        adjust(rows.iter_mut());
        wrong += u32::from(rows.iter().any(|row| row.word == Word::Confirmed));
    }
    assert!(f64::from(wrong) / f64::from(answers) <= 0.055, "{wrong} of {answers}");
    assert!(wrong > 0, "a test that never finds anything would pass too");
}

/// Passed, failed, errored.
type Tries = (u32, u32, u32);

fn tries() -> impl Strategy<Value = Tries> {
    prop_oneof![Just((1, 0, 0)), Just((0, 1, 0)), Just((0, 0, 1)), (0..4_u32, 0..4_u32, 0..2_u32)]
}

/// The difference and its bounds with every errored attempt tried both ways, by counting; p by every assignment of signs.
fn plainly(head: &[Cell], base: &[Cell]) -> (Option<f64>, Option<f64>, [f64; 2]) {
    let rate = |passed: u32, of: u32| f64::from(passed) / f64::from(of);
    let (mut differences, mut low, mut high) = (Vec::new(), Vec::new(), Vec::new());
    for (h, b) in head.iter().zip(base).map(|(head, base)| (head.counts, base.counts)) {
        if h.counted() > 0 && b.counted() > 0 {
            differences.push(rate(h.passed, h.counted()) - rate(b.passed, b.counted()));
        }
        if h.counted() + h.infra > 0 && b.counted() + b.infra > 0 {
            let (of_head, of_base) = (h.counted() + h.infra, b.counted() + b.infra);
            low.push(rate(h.passed, of_head) - rate(b.passed + b.infra, of_base));
            high.push(rate(h.passed + h.infra, of_head) - rate(b.passed, of_base));
        }
    }
    let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
    let reach = differences.iter().sum::<f64>().abs() - 1e-9;
    let ways = 1_u32 << differences.len();
    let signed = |way: u32| differences.iter().enumerate().map(|(at, d)| if way >> at & 1 == 1 { *d } else { -d }).sum::<f64>();
    let extreme = (0..ways).filter(|way| signed(*way).abs() >= reach).count();
    let any = !differences.is_empty();
    (any.then(|| mean(&differences)), any.then(|| extreme as f64 / f64::from(ways)), [mean(&low), mean(&high)])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn evidence_is_what_a_slow_plain_computation_says(both in proptest::collection::vec((tries(), tries()), 1..10)) {
        let side = |of: fn(&(Tries, Tries)) -> Tries| -> Vec<Cell> {
            both.iter().map(of).enumerate().map(|(case, (passed, failed, infra))| cell(case, passed, failed, infra)).collect()
        };
        let (head, base) = (side(|both| both.0), side(|both| both.1));
        let found = told(&head, &base, None);
        let (difference, p, [low, high]) = plainly(&head, &base);
        prop_assert_eq!(found.difference.is_some(), difference.is_some());
        if let (Some(difference), Some(p)) = (difference, p) {
            near(found.difference, difference);
            near(found.p, p);
            if let Some(bounds) = found.bounds {
                near(Some(bounds[0]), low);
                near(Some(bounds[1]), high);
                prop_assert!(low > 0.0 || high < 0.0 || found.word == Word::Inconclusive);
            } else {
                prop_assert!((low - difference).abs() < 1e-9 && (high - difference).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn an_adjusted_p_confirms_no_more_than_its_own(lost in proptest::collection::vec(0..12_usize, 1..12)) {
        let row = |lost: &usize| told(&side(&("F".repeat(*lost) + &"P".repeat(12 - lost))), &side(&"P".repeat(12)), None);
        let before: Vec<Evidence> = lost.iter().map(row).collect();
        let mut after = before.clone();
        let family = adjust(after.iter_mut());
        prop_assert_eq!(family.map_or(0, |family| family.size), lost.iter().filter(|lost| **lost >= 6).count());
        for (before, after) in before.iter().zip(&after) {
            prop_assert!(after.adjusted_p.is_none_or(|adjusted| adjusted >= before.p.unwrap()));
            prop_assert!(after.word == before.word || before.word == Word::Confirmed);
        }
    }
}
