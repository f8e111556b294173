//! The demo's logs, inside the binary. They are made by `tests/fixtures/demo/make_demo_logs.py` with Inspect's mock model.
//!
//! Promises: the same files that the tests read.
//! Does not: hold anything else.

use std::{fs, io, path::Path};

macro_rules! bundled {
    ($($name:literal)+) => {
        const LOGS: &[(&str, &[u8])] = &[$(($name, include_bytes!(concat!("../../../tests/fixtures/demo/logs/", $name)))),+];
    };
}

bundled! {
    "2026-11-14T09-02-11-00-00_refund-policy_4MvGKmtdCmtmAvZehag9qo.eval"
    "2026-11-14T09-02-11-00-00_sql-generation_bGMqWqEe8TTTjtn7phP3Wa.eval"
    "2026-11-14T09-02-11-00-00_summarize-ticket_fbzWpTaCRwSMxYk73SZJW2.eval"
    "2026-11-14T09-02-11-00-00_tool-use_VpUpVvyrAarYM24ajjS2JA.eval"
    "2026-11-17T08-31-46-00-00_refund-policy_nrjoRfPjHoBD4kxETQM4uv.eval"
    "2026-11-17T08-31-46-00-00_sql-generation_aCxjHmjxai8xT45GJ9Smcf.eval"
    "2026-11-17T08-31-46-00-00_summarize-ticket_5bJSB6PhpvCDrXC4NtwAGJ.eval"
    "2026-11-17T08-31-46-00-00_tool-use_2BZg6ioXw69ZUYr9ioZtRA.eval"
    "2026-11-19T13-47-02-00-00_refund-policy_T4JZrA2zuVrEAqqS3xC6hA.eval"
    "2026-11-19T13-47-02-00-00_sql-generation_9gecCbHMhTzF8KDAJzySqN.eval"
    "2026-11-19T13-47-02-00-00_summarize-ticket_8M7KKzgRgnFpruVyscxvsd.eval"
    "2026-11-19T13-47-02-00-00_tool-use_YBNFAfiSNp6SowJ8N5WEgz.eval"
    "2026-11-21T07-15-29-00-00_refund-policy_eY9ofuujsVn7cavRTA8TvR.eval"
    "2026-11-21T07-15-29-00-00_sql-generation_QxPK7tRgqQCyAj7gwgRD9G.eval"
    "2026-11-21T07-15-29-00-00_summarize-ticket_RVdcaGMdwnKTKaFSEjj9mo.eval"
    "2026-11-21T07-15-29-00-00_tool-use_LePqHXuR8MitUdpWPAmahu.eval"
    "2026-11-25T10-58-37-00-00_refund-policy_FuHxTKGZjcX6LhD75BGD5Y.eval"
    "2026-11-25T10-58-37-00-00_sql-generation_2ngkvwKm5YUJqD8i7Wf7Hn.eval"
    "2026-11-25T10-58-37-00-00_summarize-ticket_ggbU5vuqFw72rAWM2zNNFS.eval"
    "2026-11-25T10-58-37-00-00_tool-use_FuViaMDADYkeTGfPmbhSLq.eval"
    "2026-11-28T08-22-54-00-00_refund-policy_7noADTXug9ekrYAZbRJ6zb.eval"
    "2026-11-28T08-22-54-00-00_sql-generation_kWwwMfhGy2niRsLY4uf2fd.eval"
    "2026-11-28T08-22-54-00-00_summarize-ticket_2Tf2y9jMAFDUeWsFS6RPs6.eval"
    "2026-11-28T08-22-54-00-00_tool-use_PEzK85ytsU2HGiEBMASKNy.eval"
}

/// Writes the logs into `folder`.
///
/// # Errors
/// What the file system says.
pub(super) fn write(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    LOGS.iter().try_for_each(|(name, bytes)| fs::write(folder.join(name), bytes))
}

#[cfg(test)]
mod tests {
    use super::LOGS;

    #[test]
    fn every_log_of_the_folder_is_bundled() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/demo/logs");
        let mut there: Vec<String> =
            std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        there.sort();
        assert_eq!(there, LOGS.iter().map(|(name, _)| (*name).to_owned()).collect::<Vec<_>>());
    }
}
