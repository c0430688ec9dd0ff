//! Command lines: what a command gets, what it printed, what came of it.

#[cfg_attr(
    not(test),
    expect(dead_code, reason = "the tool that uses it is not here yet")
)]
mod environment;
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "the tool that uses it is not here yet")
)]
mod limits;
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "the tool that uses it is not here yet")
)]
mod meaning;
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "the tool that uses it is not here yet")
)]
mod ports;
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "the tool that uses it is not here yet")
)]
mod refusal;
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "the tool that uses it is not here yet")
)]
mod snapshot;
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "the tool that uses it is not here yet")
)]
mod text;
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "the tool that uses it is not here yet")
)]
mod waiting;
