//! Lists of the search index: what is put in comes out, and damaged ones do no harm.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| haft_search::fuzzing::check_postings(bytes));
