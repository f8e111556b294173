//! What an executor may say, line by line.
//!
//! Promises: whatever bytes come, nothing that is no whole, true answer becomes a result.
//! Does not: start a program (`tests/it` does).

use proptest::prelude::*;

use super::*;

fn plan() -> Plan {
    Plan {
        evaluation: "math".to_owned(),
        arm: "default".to_owned(),
        cases: vec![("a".to_owned(), "1+1".to_owned(), Some("2".to_owned())), ("b".to_owned(), "2+2".to_owned(), None)],
        max_cost_usd: Some(1.0),
        spent_usd: None,
        line_bytes_max: 2000,
        output_bytes_max: 10_000,
        results_max: 5,
        text_bytes_max: 64,
    }
}

fn collected(text: &[u8]) -> Result<Results, String> {
    let mut collector = Collector::new(plan(), Arc::new(Redactor::patterns_only()));
    collector.take(text)?;
    collector.finish()
}

const A: &str = r#"{"type":"result","case":"a","outcome":"pass","score":1.0,"output":"2","costUsd":0.25,"durationMs":5,"usage":{"inputTokens":7},"transcript":[{"role":"user","content":"1+1"},"x"]}"#;
const B: &str =
    r#"{"type":"result","case":"b","outcome":"fail","reason":"said 5","n":2,"checks":[{"name":"equal","passed":false,"label":"5"}]}"#;
const END: &str = r#"{"type":"end"}"#;

#[test]
fn what_is_whole_comes_out_as_attempts() {
    let text = format!("{{\"type\":\"progress\",\"done\":0}}\n{A}\n\n{B}\r\n{END}\n");
    let results = collected(text.as_bytes()).unwrap();
    assert_eq!(results.cost_usd, Some(0.25));
    let [a, b] = &results.attempts[..] else { panic!("{results:?}") };
    assert_eq!((a.case.as_str(), a.epoch, a.outcome, a.score, a.duration_ms), ("a", 1, Outcome::Pass, Some(1.0), Some(5)));
    assert_eq!((a.input.as_deref(), a.target.as_deref(), a.output.as_deref()), (Some("1+1"), Some("2"), Some("2")));
    assert_eq!((a.usage.input_tokens, a.transcript.lines, a.checks[0].name.as_str()), (Some(7), 2, RESULT));
    assert_eq!(a.transcript.tail, "{\"role\":\"user\",\"content\":\"1+1\"}\n\"x\"\n");
    assert_eq!((b.case.as_str(), b.epoch, b.outcome), ("b", 2, Outcome::Fail));
    assert_eq!((b.checks[0].kind.as_str(), b.checks[0].reason.as_deref()), ("assertion", Some("said 5")));
    assert_eq!((b.evaluation.as_str(), b.arm.as_str(), b.error.as_deref()), ("math", "default", None));
}

#[test]
fn pieces_of_any_size_make_the_same() {
    let text = format!("{A}\n{B}\n{END}");
    let mut one = Collector::new(plan(), Arc::new(Redactor::patterns_only()));
    for byte in text.as_bytes() {
        one.take(std::slice::from_ref(byte)).unwrap();
    }
    assert_eq!(one.done(), 2);
    assert_eq!(one.finish(), collected(text.as_bytes()));
}

#[test]
fn each_lie_is_one_sentence_and_no_attempt() {
    let long = format!("{{\"type\":\"progress\",\"done\":{}}}", "1".repeat(3000));
    let many = format!("{A}\n").repeat(1) + &(3..9).map(|n| B.replace("\"n\":2", &format!("\"n\":{n}")) + "\n").collect::<String>();
    let cases = [
        (A.replace("\"a\"", "\"z\""), "line 1 of the executor is of the case \"z\", which is none of this run"),
        (format!("{A}\n{A}"), "line 2 of the executor is a second result of try 1 of the case \"a\""),
        (format!("{A}\n{B}\n{END}\n{A}"), "line 4 of the executor came after its end"),
        (format!("{A}\n{B}\n{END}\n{END}"), "line 4 of the executor came after its end"),
        ("hello\n".to_owned(), "line 1 of the executor is no document of ours: expected value"),
        (format!("{A}\n{B}\n{END}\n\u{1}"), "line 4 of the executor came after its end"),
        (long, "line 1 of the executor has more than 2000 bytes (line_bytes_max)"),
        (format!("{A}\n{B}\n{END}\n{}", " \n".repeat(6000)), "the executor wrote more than 10000 bytes (output_bytes_max)"),
        (format!("{A}\n{B}\n"), "the executor ended in the middle of its results: it never wrote {\"type\":\"end\"}"),
        (String::new(), "the executor ended without a result: it never wrote {\"type\":\"end\"}"),
        (format!("{A}\n{END}\n"), "the executor gave no result for 1 of 2 cases, the first of them \"b\""),
        (END.to_owned(), "the executor gave no result for 2 of 2 cases, the first of them \"a\""),
        (A.replace("0.25", "1.5"), "line 1 of the executor brings the cost to 1.5 dollars; the run may cost 1"),
        (A.replace("0.25", "-1"), "line 1 of the executor says that it cost -1 dollars; from 0 to 10000 are believed of one attempt"),
        (A.replace("\"pass\"", "\"cancelled\""), "line 1 of the executor is no result: unknown variant `cancelled`"),
        (A.replace("\"score\":1.0", "\"score\":NaN"), "line 1 of the executor is no document of ours: expected value"),
        (A.replace("\"score\"", "\"scored\""), "line 1 of the executor is no result: unknown field `scored`"),
        (A.replace("\"case\":\"a\",", ""), "line 1 of the executor is a result without a case"),
        (A.replace("\"score\":1.0", "\"n\":0"), "line 1 of the executor is try 0 of the case \"a\"; tries count from 1"),
        ("{\"type\":\"done\"}".to_owned(), "line 1 of the executor has the type \"done\"; there are result, progress and end"),
        ("{\"type\":\"end\",\"ok\":true}".to_owned(), "line 1 of the executor is no end: unknown field `ok`"),
        ("{\"type\":\"progress\"}".to_owned(), "line 1 of the executor is no progress: missing field `done`"),
        (many, "line 6 of the executor is one result more than 5 (results_max)"),
    ];
    for (text, sentence) in cases {
        let told = collected(text.as_bytes()).expect_err(&text);
        assert!(told.starts_with(sentence), "{text:.200}\n{told}\nis not\n{sentence}");
    }
    assert_eq!(collected(b"\xff\n"), Err("line 1 of the executor is no UTF-8".to_owned()));
}

#[test]
fn secrets_are_replaced_and_long_texts_cut() {
    let key = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789";
    let text = A.replace("\"2\"", &format!("\"{key}\"")).replace("\"x\"", &format!("\"key {key}\""));
    let text = format!("{text}\n{}\n{END}", B.replace("said 5", &"long ".repeat(40)));
    let results = collected(text.as_bytes()).unwrap();
    let all = format!("{results:?}");
    assert!(!all.contains("abcdefghijklmnop") && all.contains("[REDACTED]"), "{all}");
    assert!(results.attempts[1].checks[0].reason.as_deref().unwrap().ends_with("bytes cut]"));
}

#[test]
fn what_broke_says_why_and_has_no_check_of_ours() {
    let broke = A.replace("\"pass\"", "\"infra_error\"").replace("\"score\":1.0", "\"reason\":\"no network\"");
    let results = collected(format!("{broke}\n{B}\n{END}").as_bytes()).unwrap();
    assert_eq!((results.attempts[0].error.as_deref(), results.attempts[0].checks.len()), (Some("no network"), 0));
}

/// Lines that are ours, nearly ours and not at all.
fn line() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => Just(A.as_bytes().to_vec()),
        4 => Just(B.as_bytes().to_vec()),
        4 => Just(END.as_bytes().to_vec()),
        1 => Just(A.replace("\"a\"", "\"b\"").into_bytes()),
        1 => Just(b"{\"type\":\"progress\",\"done\":9}".to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 0..40),
        1 => (0..A.len()).prop_map(|at| A.as_bytes()[..at].to_vec()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    /// Whatever is written, attempts come out only of a text whose lines, read by themselves, give each case its result and then the end.
    #[test]
    fn nothing_but_the_whole_passes(lines in proptest::collection::vec(line(), 0..7), cut in 0..4_usize) {
        let text = lines.join(&b'\n');
        let mut collector = Collector::new(plan(), Arc::new(Redactor::off()));
        let (first, second) = text.split_at(text.len() * cut / 4);
        let taken = collector.take(first).and_then(|()| collector.take(second)).and_then(|()| collector.finish());
        let said: Vec<&[u8]> = text.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()).collect();
        let is = |line: &&[u8], other: &str| line.trim_ascii() == other.as_bytes();
        let whole = said.last().is_some_and(|last| is(last, END)) && said.iter().filter(|line| is(line, END)).count() == 1;
        let a = said.iter().filter(|line| is(line, A)).count();
        let results = said.iter().filter(|line| line.starts_with(b"{\"type\":\"result\"")).count();
        match taken {
            Ok(results_out) => {
                prop_assert!(whole && a <= 1 && results_out.attempts.len() == results);
                prop_assert!(["a", "b"].iter().all(|case| results_out.attempts.iter().any(|attempt| attempt.case == *case)));
            }
            Err(sentence) => prop_assert!(!sentence.is_empty() && !sentence.contains('\n')),
        }
    }

    /// Bytes of any kind end in attempts or a sentence.
    #[test]
    fn any_bytes_end_in_a_sentence(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        prop_assert!(collected(&bytes).is_err());
    }
}
