//! What every adapter must do with names that are looked up, and with whole transcripts.
//!
//! Promises: runs on any store, from empty.
//! Does not: know an adapter.

use super::*;

pub(crate) fn names_are_looked_up(store: &dyn Store) {
    let of = |of: Named<'_>, part: &str, limit: usize| store.names(of, part, limit).unwrap();
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<String>>();
    assert_eq!(of(Named::Runs, "", 9), (vec![], 0));
    log("a", 1).run("nightly-1").with([attempt("x", Pass), attempt("Äx", Fail)]).put(store).unwrap();
    log("b", 2).run("x nightly").of(evaluation("tool/Use")).put(store).unwrap();
    log("c", 3).run("Nightly-2").put(store).unwrap();
    // Newest first, those that begin with it before those that hold it; case is ignored in every script.
    assert_eq!(of(Named::Runs, "", 9), (owned(&["Nightly-2", "x nightly", "nightly-1"]), 3));
    assert_eq!(of(Named::Runs, "NIGHT", 9), (owned(&["Nightly-2", "nightly-1", "x nightly"]), 3));
    assert_eq!(of(Named::Runs, "night", 2), (owned(&["Nightly-2", "nightly-1"]), 3));
    assert_eq!(of(Named::Runs, "night", 0), (vec![], 3));
    assert_eq!(of(Named::Runs, "none", 9), (vec![], 0));
    assert_eq!(of(Named::Evaluations, "", 9), (owned(&["e", "tool/Use"]), 2));
    assert_eq!(of(Named::Evaluations, "use", 9), (owned(&["tool/Use"]), 1));
    assert_eq!(of(Named::Attempts("nightly-1"), "", 9), (owned(&["e/x#1", "e/Äx#1"]), 2));
    assert_eq!(of(Named::Attempts("nightly-1"), "äX", 9), (owned(&["e/Äx#1"]), 1));
    assert_eq!(of(Named::Attempts("nightly"), "", 9), (vec![], 0), "no prefix of a run's id is the run");
    store.apply(Change::Vanished { paths: vec!["b.json".into()] }).unwrap();
    assert_eq!(of(Named::Evaluations, "", 9), (owned(&["e"]), 1), "no run holds the other any more");
    assert_eq!(of(Named::Runs, "", 9).1, 2);
}

pub(crate) fn transcripts_are_read_whole(store: &dyn Store) {
    let redactor = Redactor::patterns_only();
    let mut packer = Packer::new(&redactor);
    let lines: Vec<String> = (0..1300).map(|number| format!("{{\"n\":{number},\"text\":\"é{}\"}}", "x".repeat(number % 300))).collect();
    lines.iter().for_each(|line| packer.line(line));
    let mut long = attempt("1", Pass);
    long.transcript = packer.finish();
    log("a", 1).with([long, attempt("2", Pass)]).put(store).unwrap();
    let whole: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let text = |bytes_max: usize| store.transcript_text("Ra", "e/1#1", bytes_max).unwrap().unwrap();
    assert_eq!(text(usize::MAX), Beginning { total: 1300, lines: 1300, text: whole.clone() });
    assert_eq!(text(whole.len()), Beginning { total: 1300, lines: 1300, text: whole.clone() });
    let short = text(whole.len() - 1);
    assert_eq!((short.total, short.lines, short.text + &lines[1299] + "\n"), (1300, 1299, whole));
    let first = lines[0].len() + 1;
    assert_eq!((text(first).lines, text(first).text), (1, format!("{}\n", lines[0])));
    assert_eq!(text(first - 1), Beginning { total: 1300, lines: 0, text: String::new() });
    assert_eq!(store.transcript_text("Ra", "e/2#1", 9).unwrap(), Some(Beginning::default()));
    assert_eq!((store.transcript_text("Ra", "e/3#1", 9).unwrap(), store.transcript_text("R", "e/1#1", 9).unwrap()), (None, None));
}

/// Short transcripts of several logs, of which one goes.
pub(crate) fn short_transcripts_stand_together(store: &dyn Store) {
    let redactor = Redactor::patterns_only();
    let short = |log: &str, count: u32| {
        let mut packer = Packer::new(&redactor);
        (0..count).for_each(|number| packer.line(&format!("{log}{count} {number}")));
        Attempt { transcript: packer.finish(), ..attempt(&count.to_string(), Pass) }
    };
    for (id, at) in [("b", 2), ("c", 3), ("d", 4)] {
        log(id, at).with((0..4).map(|count| short(id, count))).put(store).unwrap();
    }
    store.apply(Change::Vanished { paths: vec!["c.json".into()] }).unwrap();
    let page = |run, case| store.transcript(run, &format!("e/{case}#1"), 1, 2).unwrap().map(|page| (page.total, page.lines.join(" ")));
    for (run, id) in [("Rb", "b"), ("Rd", "d")] {
        let pages = [0, 1, 2, 3].map(|case| page(run, case).unwrap());
        assert_eq!(pages, [(0, String::new()), (1, String::new()), (2, format!("{id}2 1")), (3, format!("{id}3 1 {id}3 2"))]);
        let text = store.transcript_text(run, "e/3#1", 9).unwrap().unwrap();
        assert_eq!((text.text, text.lines, text.total), (format!("{id}3 0\n"), 1, 3));
    }
    assert_eq!(page("Rc", 3), None);
}
