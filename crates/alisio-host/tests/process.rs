//! Processes through the public API, with a real supervisor: what they print, how they end, and that nothing of them
//! is left, whatever they try.
#![expect(
    clippy::disallowed_methods,
    reason = "the tests start processes that stand for Alisio, and read /proc"
)]
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use alisio_host::process::{
    Exit, Finished, Options, ProcessError, ProcessSpec, Processes, Program, Spill, Stream,
};
use alisio_host::supervisor;
use alisio_policy::{Basis, Issuer, LedgerSink, Permit, RecordError, Request, Scope, Verdict};
use alisio_protocol::{CallId, Effect, Sha256, VerdictSource};
use tokio_util::sync::CancellationToken;

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some(supervisor::ARGUMENT) => return supervisor::main(),
        Some("__alisio") => return be_alisio(),
        _ => {}
    }
    let arguments = libtest_mimic::Arguments::from_args();
    let tests: [(&str, fn()); _] = [
        ("nothing_is_left_of_a_call_that_exits", nothing_is_left_of_a_call_that_exits),
        ("nothing_is_left_of_a_call_that_is_cut", nothing_is_left_of_a_call_that_is_cut),
        ("killing_the_nanny_frees_nobody", killing_the_nanny_frees_nobody),
        (
            "a_killed_supervisor_takes_its_calls_along_and_is_replaced",
            a_killed_supervisor_takes_its_calls_along_and_is_replaced,
        ),
        ("nothing_outlives_alisio", nothing_outlives_alisio),
        (
            "alisio_ends_strays_when_nanny_and_supervisor_are_killed",
            alisio_ends_strays_when_nanny_and_supervisor_are_killed,
        ),
        ("a_dropped_call_is_ended", a_dropped_call_is_ended),
        (
            "a_program_gets_what_it_was_given_and_nothing_else",
            a_program_gets_what_it_was_given_and_nothing_else,
        ),
        ("keys_never_reach_a_child", keys_never_reach_a_child),
        ("limits_and_cancellation_ask_before_they_kill", limits_and_cancellation_ask_before_they_kill),
        ("output_is_streamed_bounded_and_spilled", output_is_streamed_bounded_and_spilled),
        ("calls_run_side_by_side", calls_run_side_by_side),
    ];
    let trials = tests.map(|(name, test)| {
        libtest_mimic::Trial::test(name, move || {
            test();
            Ok(())
        })
    });
    libtest_mimic::run(&arguments, trials.into()).exit_code()
}

/// Stands for Alisio in tests that kill it: runs the script of its environment.
fn be_alisio() -> ExitCode {
    let variable = |name: &str| std::env::var(name).expect("the test sets it");
    let mark = Mark(variable("MARK_1") + &variable("MARK_2"));
    let processes = processes(std::env::var_os("ADOPT").is_some());
    let result = block_on(run(&processes, &mark, &variable("SCRIPT"), Duration::from_secs(20)));
    assert!(matches!(result, Err(ProcessError::SupervisorEnded)), "{result:?}");
    // The same handle goes on with a new supervisor, and nothing of the first call is left by now.
    assert_eq!(mark.alive(), Vec::<String>::new());
    let finished =
        block_on(run(&processes, &mark, "echo again", Duration::from_secs(20))).expect("a new supervisor");
    assert_eq!(finished.exit, Exit::Code(0));
    ExitCode::from(WENT_ON)
}

/// How the stand-in for Alisio ends when all went well.
const WENT_ON: u8 = 42;

struct NoLedger;

impl LedgerSink for NoLedger {
    fn record(&self, _: &Verdict) -> Result<(), RecordError> {
        Ok(())
    }
}

fn permit(directory: &Path) -> Permit {
    let request = Request {
        call: CallId::new("call"),
        tool: "shell".into(),
        effect: Effect::Process,
        scope: Scope { spawns_in: Some(directory.to_owned()), ..Scope::default() },
        outside: Vec::new(),
        digest: Sha256::of(b""),
        subject: alisio_policy::Subject::default(),
    };
    let basis = Basis { source: VerdictSource::Flag, reason: "a test".into() };
    Issuer::new().record(request, Ok(basis), &NoLedger).expect("recorded").expect("allowed")
}

fn processes(adopt_strays: bool) -> Processes {
    let executable = std::env::current_exe().expect("this executable");
    Processes::new(Options {
        supervisor: vec![executable.into(), supervisor::ARGUMENT.into()],
        environment: alisio_host::process::environment(std::env::vars_os(), Some("read,process")),
        adopt_strays,
    })
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(future)
}

/// A word that every process of a call has in its environment or arguments.
struct Mark(String);

impl Mark {
    fn new() -> Self {
        let file = tempfile::NamedTempFile::new().expect("a unique name");
        Self(format!("mark-{}-{}", std::process::id(), file.path().file_name().unwrap().to_string_lossy()))
    }

    /// Every living process that carries the mark.
    fn alive(&self) -> Vec<String> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc").expect("/proc").flatten() {
            let read = |name| std::fs::read(entry.path().join(name)).unwrap_or_default();
            let all = [read("environ"), read("cmdline")].concat();
            if all.windows(self.0.len()).any(|window| window == self.0.as_bytes()) {
                let stat = String::from_utf8_lossy(&read("stat")).chars().take(60).collect::<String>();
                found.push(format!(
                    "{stat} | {}",
                    String::from_utf8_lossy(&read("cmdline")).replace('\0', " ")
                ));
            }
        }
        found
    }

    fn wait_until_gone(&self) {
        let end = Instant::now() + Duration::from_secs(15);
        while !self.alive().is_empty() {
            assert!(Instant::now() < end, "still alive: {:#?}", self.alive());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn spec(mark: &Mark, script: &str, limit: Duration) -> ProcessSpec {
    let argv = ["bash", "-c", script, &mark.0].map(Into::into).to_vec();
    let mut spec = ProcessSpec::new(Program::Argv(argv), "/", limit);
    spec.environment = vec![("MARK".into(), mark.0.clone().into())];
    spec.grace = Duration::from_millis(300);
    spec
}

async fn run(
    processes: &Processes,
    mark: &Mark,
    script: &str,
    limit: Duration,
) -> Result<Finished, ProcessError> {
    let spec = spec(mark, script, limit);
    processes.run(&permit(Path::new("/")), spec, |_, _| (), CancellationToken::new()).await
}

fn text(captured: &alisio_host::process::Captured) -> String {
    let (head, missing, tail) = captured.kept();
    assert_eq!(missing, 0);
    String::from_utf8_lossy(&[head, &tail].concat()).into_owned()
}

const PYTHON: &str = "command -v python3 >/dev/null || exit 0\n";

/// Ways to get away. Each leaves something running for minutes, or tries to.
const ESCAPES: &[(&str, &str)] = &[
    ("background", "sleep 300 &"),
    ("nohup", "nohup sleep 300 >/dev/null 2>&1 &"),
    ("disown", "sleep 300 & disown -a"),
    ("own session", "setsid sleep 300 &"),
    ("own session, forked", "setsid -f sleep 300"),
    ("double fork", "( ( setsid sleep 300 & ) & ) ; sleep 0.05"),
    ("held pipes", "(sleep 300; echo late) & echo done"),
    ("closed descriptors", "setsid bash -c 'exec <&- >&- 2>&-; sleep 300' x $MARK & exit 0"),
    ("at the moment of exit", "trap 'setsid -f sleep 300; setsid -f sleep 300' EXIT; exit 3"),
    ("ignoring SIGTERM", "bash -c 'trap \"\" TERM INT HUP; while :; do sleep 1; done' x $MARK & sleep 0.05"),
    (
        "answering SIGTERM with more",
        "bash -c 'trap \"setsid -f sleep 300\" TERM; sleep 300 & wait; sleep 300' x $MARK & sleep 0.1",
    ),
    ("stopping itself", "bash -c 'kill -STOP $$' & sleep 0.05"),
    ("another name", "bash -c 'exec -a [kworker/0:1] sleep 300' & sleep 0.05"),
    (
        "a name with parentheses",
        "cp $(command -v sleep) '/tmp/x) S 1 (y'$$; \"/tmp/x) S 1 (y$$\" 300 & sleep 0.05; rm '/tmp/x) S 1 (y'$$",
    ),
    ("no environment", "env -i setsid bash -c 'sleep 300; :' $MARK &"),
    ("coprocess", "coproc sleep 300; exit 0"),
    (
        "chain of shells",
        "sh -c 'sh -c \"sh -c \\\"setsid sleep 300 & sleep 300\\\" & sleep 300\" &' ; sleep 0.05",
    ),
    ("many", "for i in $(seq 150); do setsid sleep 300 & done"),
    ("relay", "f() { sleep 0.02; (f &) ; }; export -f f; (f &); sleep 0.2"),
    (
        "relay that ignores SIGTERM",
        "trap '' TERM; f() { sleep 0.01; (setsid bash -c f x $MARK &) ; }; export -f f; (f &); sleep 0.2",
    ),
    ("group of another", "set -m; sleep 300 & sleep 300 & exit 0"),
];

/// The same, in Python.
const PYTHON_ESCAPES: &[(&str, &str)] = &[
    (
        "daemon",
        "import os\nif os.fork(): os._exit(0)\nos.setsid()\nif os.fork(): os._exit(0)\nos.chdir('/')\nos.closerange(0,64)\nimport time\ntime.sleep(300)",
    ),
    (
        "fork loop",
        "import os,time,signal\nsignal.signal(15, signal.SIG_IGN)\nn=0\nwhile n<60:\n  n+=1\n  if os.fork(): \n    if n>2: os._exit(0)\n    continue\n  os.setsid()\n  time.sleep(0.002)\ntime.sleep(300)",
    ),
    (
        "no parent-death signal",
        "import os,ctypes,time\nctypes.CDLL(None).prctl(1,0,0,0,0)\nif os.fork(): os._exit(0)\nos.setpgid(0,0)\nctypes.CDLL(None).prctl(15,b'kthreadd',0,0,0)\ntime.sleep(300)",
    ),
    (
        "subreaper of its own",
        "import os,ctypes,time\nctypes.CDLL(None).prctl(36,1,0,0,0)\nif os.fork(): os._exit(0)\nctypes.CDLL(None).prctl(36,1,0,0,0)\nif os.fork()==0:\n  os.setsid()\n  os.fork()\n  time.sleep(300)\ntime.sleep(300)",
    ),
];

fn nothing_is_left_of_a_call_that_exits() {
    let processes = processes(false);
    let python =
        PYTHON_ESCAPES.iter().map(|(name, script)| (*name, format!("{PYTHON}python3 -c \"{script}\"")));
    let shell = ESCAPES.iter().map(|(name, script)| (*name, (*script).to_owned()));
    for (name, script) in shell.chain(python) {
        let mark = Mark::new();
        let begin = Instant::now();
        let finished = block_on(run(&processes, &mark, &script, Duration::from_secs(60)));
        let finished = finished.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(mark.alive(), Vec::<String>::new(), "{name}");
        let expected = if name == "at the moment of exit" { 3 } else { 0 };
        assert_eq!(finished.exit, Exit::Code(expected), "{name}: {}", text(&finished.stderr));
        assert!(finished.leftovers > 0, "{name} left nothing: the case proves nothing");
        assert_eq!((finished.survivors, finished.timed_out), (0, false), "{name}");
        assert!(begin.elapsed() < Duration::from_secs(30), "{name} hung");
    }
}

fn nothing_is_left_of_a_call_that_is_cut() {
    let processes = processes(false);
    for (name, script) in ESCAPES {
        let mark = Mark::new();
        let script = format!("{script}\nsleep 300");
        let limit = if *name == "relay" { 500 } else { 250 };
        let finished = block_on(run(&processes, &mark, &script, Duration::from_millis(limit)));
        let finished = finished.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(mark.alive(), Vec::<String>::new(), "{name}");
        // A case that exits by itself is no case for the limit.
        assert!(finished.timed_out || script.contains("exit"), "{name}: {finished:?}");
    }
}

fn killing_the_nanny_frees_nobody() {
    let processes = processes(false);
    for (name, script) in [
        ("kill", "setsid sleep 300 & (trap '' TERM; sleep 300) & kill -9 $PPID; sleep 300"),
        ("terminate", "setsid sleep 300 & kill $PPID; sleep 300"),
        ("kill the group", "setsid sleep 300 & kill -9 -$PPID; sleep 300"),
    ] {
        let mark = Mark::new();
        let result = block_on(run(&processes, &mark, script, Duration::from_secs(60)));
        assert!(matches!(result, Err(ProcessError::NannyEnded)), "{name}: {result:?}");
        assert_eq!(mark.alive(), Vec::<String>::new(), "{name}");
    }
    let mark = Mark::new();
    let script = "kill -STOP $PPID; sleep 0.1; echo on";
    let finished =
        block_on(run(&processes, &mark, script, Duration::from_secs(60))).expect("it is continued");
    assert_eq!(text(&finished.stdout), "on\n");
}

fn a_killed_supervisor_takes_its_calls_along_and_is_replaced() {
    let processes = processes(false);
    for script in [
        "setsid sleep 300 & (trap '' TERM; sleep 300) & kill -9 $(cut -d' ' -f4 /proc/$PPID/stat); sleep 300",
        "setsid sleep 300 & kill $(cut -d' ' -f4 /proc/$PPID/stat); sleep 300",
    ] {
        let mark = Mark::new();
        let result = block_on(run(&processes, &mark, script, Duration::from_secs(60)));
        assert!(matches!(result, Err(ProcessError::SupervisorEnded)), "{result:?}");
        assert_eq!(mark.alive(), Vec::<String>::new());
        let finished =
            block_on(run(&processes, &mark, "echo again", Duration::from_secs(60))).expect("a new one");
        assert_eq!(text(&finished.stdout), "again\n");
    }
    let mark = Mark::new();
    let script = "kill -STOP $(cut -d' ' -f4 /proc/$PPID/stat); sleep 300";
    let finished =
        block_on(run(&processes, &mark, script, Duration::from_millis(300))).expect("it is continued");
    assert!(finished.timed_out);
    assert_eq!(mark.alive(), Vec::<String>::new());
}

fn alisio(mark: &Mark, script: &str, adopt: bool) -> std::process::Child {
    let mut command = std::process::Command::new(std::env::current_exe().expect("this executable"));
    let (first, second) = mark.0.split_at(8);
    command.arg("__alisio");
    command.env("MARK_1", first).env("MARK_2", second).env("SCRIPT", script);
    if adopt {
        command.env("ADOPT", "1");
    }
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    command.spawn().expect("this executable starts")
}

fn nothing_outlives_alisio() {
    let children: Vec<_> = ESCAPES
        .iter()
        .filter(|(_, script)| !script.contains("exit"))
        .map(|(name, script)| {
            let mark = Mark::new();
            let child = alisio(&mark, &format!("{script}\nsleep 300"), false);
            (name, mark, child)
        })
        .collect();
    for (name, mark, mut child) in children {
        let end = Instant::now() + Duration::from_secs(20);
        while mark.alive().len() < 2 {
            assert!(Instant::now() < end, "{name} does not run");
            std::thread::sleep(Duration::from_millis(5));
        }
        child.kill().expect("it can be killed");
        child.wait().expect("it can be waited for");
        mark.wait_until_gone();
    }
}

fn alisio_ends_strays_when_nanny_and_supervisor_are_killed() {
    for script in [
        "setsid sleep 300 & (trap '' TERM; setsid sleep 300) & s=$(cut -d' ' -f4 /proc/$PPID/stat); kill -9 $s $PPID; sleep 300",
        "setsid sleep 300 & s=$(cut -d' ' -f4 /proc/$PPID/stat); p=$PPID; setsid bash -c \"kill -9 $s $p; sleep 300\" & sleep 300",
    ] {
        let mark = Mark::new();
        let output = alisio(&mark, script, true).wait_with_output().expect("it ends");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(WENT_ON.into()), "{stderr}");
        mark.wait_until_gone();
    }
}

fn a_dropped_call_is_ended() {
    let processes = processes(false);
    let mark = Mark::new();
    block_on(async {
        let call = run(&processes, &mark, "setsid sleep 300 & sleep 300", Duration::from_secs(60));
        let _ = tokio::time::timeout(Duration::from_millis(200), call).await;
    });
    mark.wait_until_gone();
}

fn a_program_gets_what_it_was_given_and_nothing_else() {
    let processes = processes(false);
    let folder = tempfile::tempdir().expect("a folder");
    let directory = folder.path().canonicalize().expect("it exists");
    let check = |program: Program, limit: u64| {
        let spec = ProcessSpec::new(program, &directory, Duration::from_millis(limit));
        block_on(processes.run(&permit(&directory), spec, |_, _| (), CancellationToken::new()))
    };
    let argv = |arguments: &[&str]| Program::Argv(arguments.iter().map(Into::into).collect());
    let out = |script: &str| text(&check(Program::Shell(script.into()), 20_000).expect("it runs").stdout);

    assert_eq!(out("pwd"), format!("{}\n", directory.display()));
    assert_eq!(out("cat; echo end"), "end\n");
    assert_eq!(out("ls /proc/self/fd | wc -l"), "4\n", "three and the folder that is read");
    assert_eq!(out("echo $TERM $ALISIO_CEILING"), "dumb read,process\n");
    assert_eq!(
        out("grep SigBlk /proc/self/status; grep SigIgn /proc/self/status")
            .matches("0000000000000000")
            .count(),
        2
    );
    assert_eq!(
        out("ps -o sid= -p $$ | tr -d ' '; echo $$").lines().collect::<std::collections::HashSet<_>>().len(),
        1
    );
    let finished = check(argv(&["printf", "%s|", "a b", "", "*", "$HOME"]), 20_000).expect("it runs");
    assert_eq!(text(&finished.stdout), "a b||*|$HOME|");
    for (script, exit) in
        [("exit 7", Exit::Code(7)), ("kill -9 $$", Exit::Signal(9)), ("kill -SEGV $$", Exit::Signal(11))]
    {
        assert_eq!(check(Program::Shell(script.into()), 20_000).expect("it runs").exit, exit, "{script}");
    }

    let error = |program| check(program, 20_000).expect_err("it does not start").to_string();
    let missing = error(argv(&["no-such-program"]));
    assert_eq!(missing, "`no-such-program` could not be started: No such file or directory (os error 2)");
    assert!(error(argv(&["/etc/passwd"])).contains("Permission denied"));
    assert!(error(argv(&["a\0b"])).contains("Invalid argument"));
    assert!(error(argv(&[])).contains("could not be started"));
    let gone = PathBuf::from("/no/such/directory");
    let spec = ProcessSpec::new(argv(&["true"]), &gone, Duration::from_secs(20));
    let result = block_on(processes.run(&permit(&gone), spec.clone(), |_, _| (), CancellationToken::new()));
    assert!(matches!(result, Err(ProcessError::Directory { .. })), "{result:?}");
    let result = block_on(processes.run(&permit(&directory), spec, |_, _| (), CancellationToken::new()));
    assert!(matches!(result, Err(ProcessError::Permit(_))), "{result:?}");
    // A request of any size reaches the system, which is who says no.
    let long = "x".repeat(4 << 20);
    assert!(error(argv(&["true", &long])).contains("Argument list too long"));
    let many: Vec<_> = std::iter::once("true").chain(std::iter::repeat_n("argument", 50_000)).collect();
    assert_eq!(check(argv(&many), 20_000).expect("it runs").exit, Exit::Code(0));
}

fn keys_never_reach_a_child() {
    let own = [
        ("PATH", "/bin"),
        ("OPENAI_API_KEY", "k"),
        ("GITHUB_TOKEN", "t"),
        ("LC_ALL", "C"),
        ("AWS_SECRET_ACCESS_KEY", "s"),
        ("HTTPS_PROXY", "http://u:p@h"),
    ];
    let own = own.map(|(name, value)| (name.into(), value.into()));
    let names: Vec<_> =
        alisio_host::process::environment(own, None).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["PATH", "LC_ALL", "TERM", "PAGER", "GIT_PAGER", "GIT_TERMINAL_PROMPT"]);
    // What is not passed on could still be read in `/proc`, where nothing but this keeps a program of the same user
    // from it.
    let processes = processes(false);
    let script = format!("cat /proc/{}/environ", std::process::id());
    let finished =
        block_on(run(&processes, &Mark::new(), &script, Duration::from_secs(20))).expect("it ends");
    let dumpable = rustix::process::dumpable_behavior().expect("the kernel tells");
    assert_eq!(dumpable, rustix::process::DumpableBehavior::NotDumpable);
    if !rustix::process::geteuid().is_root() {
        assert_ne!(finished.exit, Exit::Code(0), "{}", text(&finished.stdout));
    }
}

fn limits_and_cancellation_ask_before_they_kill() {
    let processes = processes(false);
    let mark = Mark::new();
    let polite = "trap 'echo bye; exit 5' TERM; while :; do sleep 0.01; done";
    let finished = block_on(run(&processes, &mark, polite, Duration::from_millis(300))).expect("it ends");
    assert_eq!(
        (finished.exit, finished.timed_out, text(&finished.stdout).as_str()),
        (Exit::Code(5), true, "bye\n")
    );
    let stubborn = "trap '' TERM; while :; do sleep 0.01; done";
    let finished = block_on(run(&processes, &mark, stubborn, Duration::from_millis(100))).expect("it ends");
    assert_eq!((finished.exit, finished.timed_out), (Exit::Signal(9), true));
    let cancel = CancellationToken::new();
    let finished = block_on(async {
        let later = cancel.clone();
        let started = move |_: Stream, _: &[u8]| later.cancel();
        let spec = spec(&mark, "echo started; sleep 300", Duration::from_secs(60));
        processes.run(&permit(Path::new("/")), spec, started, cancel).await
    });
    let finished = finished.expect("it ends");
    assert_eq!((finished.exit, finished.cancelled, finished.timed_out), (Exit::Signal(15), true, false));
    assert_eq!(mark.alive(), Vec::<String>::new());
}

fn output_is_streamed_bounded_and_spilled() {
    let processes = processes(false);
    let mark = Mark::new();
    let folder = tempfile::tempdir().expect("a folder");
    let mut spec = spec(
        &mark,
        "head -c 3000000 /dev/zero | tr '\\0' x; printf 'e\\0\\xff' >&2",
        Duration::from_secs(60),
    );
    spec.spill = Some(Spill { folder: folder.path().join("outputs"), name: "call".into() });
    let mut counted = [0, 0];
    let show = |stream: Stream, bytes: &[u8]| counted[usize::from(stream == Stream::Stderr)] += bytes.len();
    let finished = block_on(processes.run(&permit(Path::new("/")), spec, show, CancellationToken::new()));
    let finished = finished.expect("it runs");
    assert_eq!(counted, [3_000_000, 3]);
    let (head, missing, tail) = finished.stdout.kept();
    assert_eq!((head.len() + tail.len()) as u64 + missing, 3_000_000);
    let spill = finished.stdout.spill().expect("too long for memory");
    assert_eq!(std::fs::metadata(&spill.path).expect("the file").len(), 3_000_000);
    assert_eq!(finished.stderr.kept().0, b"e\0\xff");
    assert!(finished.stderr.spill().is_none());
}

fn calls_run_side_by_side() {
    let processes = processes(false);
    let mark = Mark::new();
    block_on(async {
        let call = |index: u32| {
            let (processes, mark) = (&processes, &mark);
            async move {
                let script = format!("sleep 0.05; echo {index}; exit {index}");
                let finished = run(processes, mark, &script, Duration::from_secs(60)).await.expect("it runs");
                assert_eq!(finished.exit, Exit::Code(index.cast_signed()));
                assert_eq!(text(&finished.stdout), format!("{index}\n"));
            }
        };
        tokio::join!(call(1), call(2), call(3), call(4), call(5), call(6), call(7), call(8));
    });
    assert_eq!(mark.alive(), Vec::<String>::new());
}
