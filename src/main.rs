//! The command line to an exit code; everything else is in the library.

use std::process::ExitCode;

/// Without huge pages: each thread keeps small pages of many sizes, and of 2 MB at a time most would be touched for nothing (41 MB resident
/// rather than 63 after the same calls, for no more CPU).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Where the system gives huge pages to who does not ask for them (`always`); a system that cannot is no worse off.
    #[cfg(target_os = "linux")]
    let _ = nix::sys::prctl::set_thp_disable(true);
    ExitCode::from(runlore::cli::run(std::env::args_os()))
}
