//! Any bytes as a picture for Read: no panic, no more memory than allowed, and what is sent is a
//! picture of the size that is told.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| haft_tools::fuzzing::check_image(bytes));
