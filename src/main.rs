//! The command line to an exit code; everything else is in the library.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    ExitCode::from(runlore::cli::run(std::env::args_os()))
}
