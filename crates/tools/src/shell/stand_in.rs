//! STAND-IN until the crate arrives; never merged.
#![allow(missing_docs, dead_code, unreachable_pub, clippy::all, clippy::allow_attributes, clippy::allow_attributes_without_reason)]
use std::{ffi::OsString, path::PathBuf, time::Duration};
pub use haft_sandbox::{Network, Profile, Reading, Workspace};
#[derive(Debug, Clone)]
pub struct Sandbox(std::sync::Arc<Setup>);
#[derive(Debug)]
pub struct Setup { pub program: PathBuf, pub shell: PathBuf, pub env: Vec<(OsString, OsString)>, pub full_env: Vec<(OsString, OsString)>, pub scratch: PathBuf, pub snapshot: Option<PathBuf> }
#[derive(Debug)]
pub struct Line { pub text: String, pub cwd: PathBuf, pub sourced: Option<PathBuf> }
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SandboxError(String);
pub type Output = tokio::net::unix::pipe::Receiver;
#[derive(Debug)]
pub struct Running { pub output: Option<Output>, child: tokio::process::Child, pid: u32, cwd: tempfile::NamedTempFile, ended: Option<Ended>, kill_at: Option<tokio::time::Instant> }
#[derive(Debug, Clone)]
pub struct Ended { pub how: How, pub cwd: Option<PathBuf>, pub left: u32 }
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How { Exited(i32), Killed(i32), Lost }
#[derive(Debug, Clone)]
pub struct Process { pub pid: u32, pub name: String }
impl Sandbox {
    pub fn new(setup: Setup) -> Self { Self(std::sync::Arc::new(setup)) }
    pub async fn start(&self, _: &Profile, line: Line) -> Result<Running, SandboxError> {
        use std::os::fd::OwnedFd;
        let (r, w) = std::io::pipe().unwrap();
        let w2 = w.try_clone().unwrap();
        let cwd = tempfile::NamedTempFile::new().unwrap();
        let source = line.sourced.map(|p| format!("source '{}'\n", p.display())).unwrap_or_default();
        let mut c = tokio::process::Command::new(&self.0.shell);
        let script = format!("{source}trap 'pwd -P > {}' EXIT\neval \"$1\"", cwd.path().display());
        c.arg("-c").arg(script).arg("bash").arg(line.text).current_dir(line.cwd)
            .stdin(std::process::Stdio::null()).stdout(OwnedFd::from(w)).stderr(OwnedFd::from(w2)).process_group(0);
        c.env_clear().envs(self.0.env.iter().cloned());
        let child = c.spawn().map_err(|e| SandboxError(e.to_string()))?;
        drop(c);
        let pid = child.id().unwrap();
        let r: OwnedFd = r.into();
        let output = tokio::net::unix::pipe::Receiver::from_owned_fd(r).unwrap();
        Ok(Running { output: Some(output), child, pid, cwd, ended: None, kill_at: None })
    }
}
impl Ended { pub fn lost() -> Self { Self { how: How::Lost, cwd: None, left: 0 } } }
impl Running {
    fn group(&self) -> Vec<Process> {
        let mut v = Vec::new();
        for e in std::fs::read_dir("/proc").unwrap().flatten() {
            let Some(pid) = e.file_name().to_str().and_then(|n| n.parse::<u32>().ok()) else { continue };
            let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { continue };
            let Some((name, rest)) = stat.rsplit_once(')') else { continue };
            let f: Vec<&str> = rest.split_whitespace().collect();
            if f[0] != "Z" && f[2].parse::<u32>().ok() == Some(self.pid) { v.push(Process { pid, name: name.split_once('(').unwrap().1.to_owned() }); }
        }
        v
    }
    fn signal(&self, s: &str) { let _ = std::process::Command::new("kill").arg(s).arg(format!("-{}", self.pid)).stderr(std::process::Stdio::null()).status(); }
    async fn killer(at: Option<tokio::time::Instant>) { match at { Some(at) => tokio::time::sleep_until(at).await, None => std::future::pending().await } }
    pub async fn exited(&mut self) -> Ended {
        use std::os::unix::process::ExitStatusExt;
        let status = loop { tokio::select! { s = self.child.wait() => break s.unwrap(), () = Self::killer(self.kill_at) => { self.kill_at = None; self.signal("-9"); } } };
        let how = match (status.code(), status.signal()) { (Some(c), _) => How::Exited(c), (_, Some(s)) => How::Killed(s), _ => How::Lost };
        let cwd = std::fs::read_to_string(self.cwd.path()).ok().filter(|s| !s.is_empty()).map(|s| PathBuf::from(s.trim_end_matches('\n')));
        let e = Ended { how, cwd, left: self.group().len() as u32 };
        self.ended = Some(e.clone());
        e
    }
    pub async fn gone(&mut self) {
        if self.ended.is_none() { self.exited().await; }
        while !self.group().is_empty() {
            tokio::select! { () = tokio::time::sleep(Duration::from_millis(5)) => {}, () = Self::killer(self.kill_at) => { self.kill_at = None; self.signal("-9"); } }
        }
    }
    pub fn kill(&mut self, grace: Duration) { self.signal("-15"); self.kill_at = Some(tokio::time::Instant::now() + grace); }
    pub fn processes(&self) -> Vec<Process> { self.group() }
}
impl Drop for Running { fn drop(&mut self) { self.signal("-9"); } }
