//! The engine from outside: on trees in a temporary directory, and side by side with ripgrep.

#[cfg(test)]
mod against_rg;
#[cfg(test)]
mod glob;
#[cfg(test)]
mod grep;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod kept;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod kept_above;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod kept_again;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod kept_disk;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod kept_limits;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod kept_mounts;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod kept_random;
#[cfg(test)]
mod random;
#[cfg(test)]
mod swaps;
#[cfg(test)]
mod tree;
