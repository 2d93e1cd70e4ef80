//! A place of its own for each run: home, state and a git repository; the binary in it; and a look at what lives.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use alisio_store::Store;
use serde_json::Value;

use crate::Failed;

/// How long an unkilled command may take before it counts as hanging.
const HANG: Duration = Duration::from_secs(60);

/// A place of its own.
pub(crate) struct Place {
    pub(crate) root: PathBuf,
    pub(crate) workspace: PathBuf,
    /// The side file of the processes; not part of the workspace.
    pub(crate) log: PathBuf,
    pub(crate) state: PathBuf,
}

impl Place {
    /// Makes the place with a repository that holds `files`.
    pub(crate) fn new(root: &Path, files: &[(&str, &str)]) -> Self {
        let place = Self {
            root: root.to_owned(),
            workspace: root.join("work"),
            log: root.join("effects.log"),
            state: root.join("state"),
        };
        for folder in [root, &place.workspace, &place.state] {
            fs::create_dir_all(folder).expect("the temporary folder takes folders");
        }
        fs::write(&place.log, "").expect("the temporary folder takes files");
        for (path, content) in files {
            fs::write(place.workspace.join(path), content).expect("the temporary folder takes files");
        }
        place.git(&["init", "--quiet"]);
        place.git(&["add", "."]);
        place.git(&["-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "--quiet", "-m", "start"]);
        place
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> Output {
        let mut git = self.command("git");
        let output = git.current_dir(&self.workspace).args(arguments).output().expect("git is installed");
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        output
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.state.join("alisio.db")
    }

    pub(crate) fn store(&self) -> Result<Store, Failed> {
        Store::open(&self.database()).map_err(|error| format!("the store does not open: {error}"))
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("HOME", &self.root).env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
    }

    /// The binary in this place; `base_url` is where its model is.
    pub(crate) fn alisio(&self, base_url: &str, arguments: &[&str]) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_alisio"));
        command.env("ALISIO_STATE_HOME", &self.state).env("OPENAI_BASE_URL", base_url);
        command.env("ALISIO_MODEL", "scripted").env("OPENAI_API_KEY", "none");
        command.arg("--db").arg(self.database()).arg("--cwd").arg(&self.workspace).args(arguments);
        command.stdin(Stdio::null());
        command
    }

    /// Runs the binary to its end.
    pub(crate) fn ended(&self, base_url: &str, arguments: &[&str]) -> Result<Output, Failed> {
        let mut command = self.alisio(base_url, arguments);
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        let pid = child.id();
        let (sender, receiver) = channel();
        std::thread::spawn(move || sender.send(child.wait_with_output()));
        match receiver.recv_timeout(HANG) {
            Ok(output) => output.map_err(|error| error.to_string()),
            Err(_) => {
                kill(pid);
                Err(format!("`alisio {}` hangs", arguments.join(" ")))
            }
        }
    }

    /// Runs the binary to its end, which has to be this exit code; returns what it printed.
    pub(crate) fn expect(&self, code: i32, base_url: &str, arguments: &[&str]) -> Result<String, Failed> {
        let output = self.ended(base_url, arguments)?;
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        if output.status.code() == Some(code) {
            return Ok(out.into_owned());
        }
        Err(format!(
            "`alisio {}` ended with {}, not {code}:\n{out}\n{err}",
            arguments.join(" "),
            output.status
        ))
    }

    /// Waits until nothing of this place lives; says how long that took.
    pub(crate) fn wait_for_silence(&self, running: &Running, limit: Duration) -> Result<Duration, Failed> {
        let start = Instant::now();
        loop {
            let alive = self.alive(running);
            if alive.is_empty() {
                return Ok(start.elapsed());
            }
            if start.elapsed() > limit {
                return Err(format!("still alive after {limit:?}: {}", alive.join("; ")));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Whether a process lives whose command line holds `what`.
    pub(crate) fn lives(&self, running: &Running, what: &str) -> bool {
        self.alive(running).iter().any(|line| line.contains(what))
    }

    /// Processes that have this place as their home, or are of the session that the binary led: those that it started
    /// in whatever way, since its children inherit both, and the supervisor, whose environment is empty.
    pub(crate) fn alive(&self, running: &Running) -> Vec<String> {
        let home = format!("HOME={}", self.root.display()).into_bytes();
        let mut alive = Vec::new();
        for (pid, stat) in processes() {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            let is_ours =
                stat.session == running.pid || environment.split(|byte| *byte == 0).any(|one| one == home);
            if is_ours && stat.is_alive {
                let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                alive.push(format!("{pid} {}", String::from_utf8_lossy(&line).replace('\0', " ")));
            }
        }
        alive
    }
}

/// The binary at work, its output read line by line. It leads a session of its own.
pub(crate) struct Running {
    child: Child,
    pub(crate) pid: u32,
    lines: Receiver<Vec<u8>>,
    pub(crate) seen: Vec<Value>,
    pub(crate) started: Instant,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        // SAFETY: `setsid` may be called between fork and exec.
        unsafe {
            command.pre_exec(|| match libc::setsid() {
                -1 => Err(std::io::Error::last_os_error()),
                _ => Ok(()),
            });
        }
        let started = Instant::now();
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary was built for this test");
        let (sender, lines) = channel();
        let mut out = BufReader::new(child.stdout.take().expect("it is piped"));
        std::thread::spawn(move || {
            let mut line = Vec::new();
            // A line that was cut has no end, and so was never told.
            while out.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) && line.ends_with(b"\n") {
                if sender.send(std::mem::take(&mut line)).is_err() {
                    return;
                }
            }
        });
        Self { pid: child.id(), child, lines, seen: Vec::new(), started }
    }

    /// Reads until `is_due` says so of a line, the moment has come, or the output ends. Says whether it ended.
    pub(crate) fn read_until(
        &mut self,
        moment: Instant,
        mut is_due: impl FnMut(&Value) -> bool,
    ) -> Result<bool, Failed> {
        loop {
            match self.lines.recv_timeout(moment.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    let event: Value = serde_json::from_slice(&line).map_err(|error| {
                        format!("a line is not JSON ({error}): {}", String::from_utf8_lossy(&line))
                    })?;
                    let due = is_due(&event);
                    self.seen.push(event);
                    if due {
                        return Ok(false);
                    }
                }
                Err(RecvTimeoutError::Timeout) => return Ok(false),
                Err(RecvTimeoutError::Disconnected) => return Ok(true),
            }
        }
    }

    /// The supervisor of this run, where it has one.
    pub(crate) fn supervisor(&self) -> Option<u32> {
        processes().find(|(_, stat)| stat.parent == self.pid && stat.is_alive).map(|(pid, _)| pid)
    }

    /// Kills it as with `kill -9`, unless it has ended, and reads what it still told. Returns its exit code, if it
    /// ended by itself, and its standard error.
    pub(crate) fn kill(&mut self) -> Result<(Option<i32>, String), Failed> {
        self.child.kill().map_err(|error| error.to_string())?;
        self.finish()
    }

    /// The same for a command that tells no events.
    pub(crate) fn kill_unread(&mut self) -> Result<(Option<i32>, String), Failed> {
        self.child.kill().map_err(|error| error.to_string())?;
        while self.lines.recv_timeout(HANG).is_ok() {}
        self.finish()
    }

    /// Waits for its end and reads what it still told.
    pub(crate) fn finish(&mut self) -> Result<(Option<i32>, String), Failed> {
        self.read_until(Instant::now() + HANG, |_| false)?;
        let status = self.child.wait().map_err(|error| error.to_string())?;
        let mut err = String::new();
        if let Some(mut pipe) = self.child.stderr.take() {
            // What was cut within a letter is of no interest.
            let _ = pipe.read_to_string(&mut err);
        }
        Ok((status.code(), err))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // After `finish` there is nothing left to kill or to wait for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Stat {
    parent: u32,
    session: u32,
    is_alive: bool,
}

fn processes() -> impl Iterator<Item = (u32, Stat)> {
    fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        // The name of a program may hold anything, so the fields are counted from behind it.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let is_alive = !matches!(*fields.first()?, "Z" | "X");
        Some((
            pid,
            Stat { parent: fields.get(1)?.parse().ok()?, session: fields.get(3)?.parse().ok()?, is_alive },
        ))
    })
}

/// Kills a process that this test started.
pub(crate) fn kill(pid: u32) {
    // SAFETY: a plain system call.
    unsafe { libc::kill(pid.cast_signed(), libc::SIGKILL) };
}
