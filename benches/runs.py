#!/usr/bin/env python3
"""Measures whole runs of Alisio against a scripted model on loopback, and prints the table of docs/performance.md.

It builds the release profile, starts `alisio-conformance serve` for each scenario in benches/scenarios/ and runs the real
binary. It needs Linux, Python 3.9 or later, and (Debian packages) `hyperfine`, `ripgrep` and `time`:

    apt-get install hyperfine ripgrep time
    benches/runs.py                     # everything; a few minutes
    benches/runs.py version reads       # some rows
    benches/runs.py --tree DIR search   # the search on a tree of yours
    benches/runs.py --no-build --bin target/dist dist

Nothing outside the build and temporary folders is touched. How each figure is made stands in docs/performance.md.
"""

import argparse
import json
import os
import pathlib
import random
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCENARIOS = ROOT / "benches" / "scenarios"


class Server:
    """`alisio-conformance serve` with one scenario."""

    def __init__(self, bench, scenario):
        command = [bench.bin / "alisio-conformance", "serve", "--scenario", SCENARIOS / f"{scenario}.json"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def busy(self):
        """CPU seconds that it has used, by the scheduler's own count in nanoseconds."""
        total = 0
        for task in pathlib.Path(f"/proc/{self.process.pid}/task").iterdir():
            total += int((task / "schedstat").read_text().split()[0])
        return total / 1e9


class Bench:
    def __init__(self, arguments, folder):
        self.bin = pathlib.Path(arguments.bin).resolve()
        self.alisio = str(self.bin / "alisio")
        self.runs = arguments.runs
        self.tree = arguments.tree
        self.folder = folder
        self.work = folder / "work"
        self.work.mkdir()
        (self.work / "notes.txt").write_text("The answer is 42.\n" * 40)
        for command in (["init", "-q"], ["add", "."]):
            subprocess.run(["git", *command], cwd=self.work, check=True)
        self.n_states = 0
        self.state = self.fresh_state()

    def fresh_state(self):
        self.n_states += 1
        state = self.folder / f"state-{self.n_states}"
        state.mkdir()
        return state

    def environment(self, server=None, state=None):
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "ALISIO_STATE_HOME": str(state or self.state),
            "OPENAI_BASE_URL": server.url if server else "",
            "OPENAI_API_KEY": "none",
            "ALISIO_MODEL": "scripted",
        }

    def run_command(self, *more):
        return [self.alisio, "run", "--cwd", str(self.work), *more]

    def measured(self, command, environment, out=os.devnull):
        """Runs a command once. Returns wall and CPU seconds; those of the processes that it waited for are in the CPU."""
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(out), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        ]
        start = time.perf_counter()
        pid = os.posix_spawn(command[0], command, environment, file_actions=actions)
        _, status, usage = os.wait4(pid, 0)
        wall = time.perf_counter() - start
        if status != 0:
            sys.exit(f"{shlex.join(command)} ended with {os.waitstatus_to_exitcode(status)}")
        return wall, usage.ru_utime + usage.ru_stime

    def hyperfine(self, command, environment, prepare=None, runs=None):
        """Returns the result of hyperfine, without a shell in between."""
        result = self.folder / "hyperfine.json"
        more = ["--prepare", prepare] if prepare else []
        warm = [] if prepare else ["--warmup", "5"]
        subprocess.run(
            ["hyperfine", "-N", "--style", "none", *warm, "--runs", str(runs or self.runs * 4), *more]
            + ["--export-json", str(result), shlex.join(command)],
            env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        return json.loads(result.read_text())["results"][0]

    def peak(self, command, environment):
        """Returns the most memory that a command had resident, in MB, as /usr/bin/time says it (median of 5)."""
        peaks = []
        for _ in range(5):
            out = self.folder / "peak"
            whole = ["/usr/bin/time", "-f", "%M", "-o", str(out), *command]
            subprocess.run(whole, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            peaks.append(int(out.read_text()) / 1024)
        return statistics.median(peaks)

    def per_call(self, scenario, n_calls, *flags):
        """Returns the own milliseconds of a call: wall of the whole run less the CPU that the server used meanwhile, less
        the same for a run of one sentence, over the number of calls."""
        def own(name):
            with Server(self, name) as server:
                command, environment = self.run_command("--json", *flags, "go"), self.environment(server)
                self.measured(command, environment)
                times = []
                for _ in range(self.runs):
                    busy = server.busy()
                    wall, _ = self.measured(command, environment)
                    times.append(wall - (server.busy() - busy))
                return statistics.median(times)

        return (own(scenario) - own("sentence")) / n_calls * 1000


def ms(seconds):
    return f"{seconds * 1000:.1f} ms"


def version(bench):
    result = bench.hyperfine([bench.alisio, "--version"], bench.environment(), runs=200)
    yield "`alisio --version`, wall", "10 ms", "4 ms", ms(result["median"]), 200, "alisio --version"


def sentence(bench):
    command = bench.run_command("go")
    with Server(bench, "sentence") as server:
        environment = bench.environment(server)
        bench.measured(command, environment)
        result = bench.hyperfine(command, environment, runs=100)
        cpu = result["user"] + result["system"]
        text = f"{ms(result['median'])} / {ms(cpu)}"
        yield "one-sentence run, existing database: wall / own CPU", "30 / 20 ms", "12 / 8 ms", text, 100, 'alisio run "go"'
        walls, cpus = [], []
        for _ in range(bench.runs):
            wall, cpu = bench.measured(command, bench.environment(server, bench.fresh_state()))
            walls.append(wall)
            cpus.append(cpu)
        text = f"{ms(statistics.median(walls))} / {ms(statistics.median(cpus))}"
        yield "the same, first run: makes the database", "", "", text, bench.runs, 'alisio run "go", empty state folder'
        yield "peak memory of that run", "30 MB", "15 MB", f"{bench.peak(command, environment):.1f} MB", 5, 'time -f %M alisio run "go"'


def reads(bench):
    time = bench.per_call("reads", 50)
    yield "50 sequential `read_file` calls, own time a call", "2 ms", "0.6 ms", f"{time:.2f} ms", bench.runs, 'alisio run --json "go"'


def shells(bench):
    time = bench.per_call("shells", 50, "--allow-process")
    command = 'alisio run --json --allow-process "go"'
    yield "50 sequential `shell` calls of `true`, own time a call", "6 ms", "3 ms", f"{time:.2f} ms", bench.runs, command


def approval(bench):
    """From the start of the process that answers until the run, in another process, tells what it was answered."""
    times = []
    with Server(bench, "shells") as server:
        environment = bench.environment(server)
        command = bench.run_command("--json", "--approvals", "wait", "go")
        run = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        start = None
        for line in run.stdout:
            event = json.loads(line)
            if event["type"] == "approval_requested":
                answer = [bench.alisio, "approvals", "resolve", event["data"]["requestId"], "once"]
                start = time.perf_counter()
                bench.measured(answer, environment)
            elif event["type"] == "approval_resolved":
                times.append(time.perf_counter() - start)
        if run.wait() != 0 or len(times) != 50:
            sys.exit(f"{len(times)} of 50 answers arrived")
    shown = "alisio approvals resolve ID once"
    yield "approval answered from another process, until the run knows", "100 ms", "20 ms", ms(statistics.median(times)), 50, shown


def memory(bench):
    with Server(bench, "shells-200") as server:
        peak = bench.peak(bench.run_command("--json", "--allow-process", "go"), bench.environment(server))
    command = 'time -f %M alisio run --json --allow-process "go"'
    yield "peak memory after 200 shell calls", "35 MB", "18 MB", f"{peak:.1f} MB", 5, command


def deltas(bench):
    with Server(bench, "deltas") as server:
        for name, flags in (("`--json`", ["--json"]), ("text", [])):
            command = bench.run_command(*flags, "go")
            cpus = [bench.measured(command, bench.environment(server))[1] for _ in range(bench.runs)]
            text = f"{statistics.median(cpus):.2f} s"
            shown = shlex.join(["alisio", "run", *flags, "go"]) + " > /dev/null"
            yield f"20,000 stream deltas, CPU, {name}", "0.3 s", "0.12 s", text, bench.runs, shown


def search(bench):
    tree, needle = bench.tree, "kilometre"
    if tree is None:
        tree, needle = make_tree(bench.folder / "tree"), "needleword"
    rg = ["rg", needle, str(tree)]
    hits = len(subprocess.run(rg, capture_output=True).stdout.splitlines())
    command = [bench.alisio, "run", "--json", "--cwd", str(tree), f"search for {needle}"]
    ours, theirs, out = [], [], bench.folder / "events"
    with Server(bench, "search") as server:
        for turn in range(bench.runs + 2):
            bench.measured(command, bench.environment(server), out)
            events = [json.loads(line) for line in out.read_text().splitlines()]
            done = next(event["data"] for event in events if event["type"] == "tool_completed")
            if done["isError"]:
                sys.exit(done["preview"])
            wall, _ = bench.measured([shutil.which("rg"), *rg[1:]], os.environ, out)
            # The first two warm the cache.
            if turn >= 2:
                ours.append(done["durationMs"])
                theirs.append(wall * 1000)
    ours, theirs = statistics.median(ours), statistics.median(theirs)
    files = sum(len(names) for _, _, names in os.walk(tree))
    row = f"search of {files:,} files, {hits} hits, against `rg`: ratio"
    yield row, "1.3", "1.0", f"{ours / theirs:.2f} ({ours:.0f} / {theirs:.0f} ms)", bench.runs, f"search_text / rg {needle}"


def make_tree(folder, n_files=50_000):
    """Makes a tree of small files of made-up words; 400 hold the word that is searched."""
    words = random.Random(7)
    known = ["".join(words.choices("abcdefghijklmnopqrstuvwxyz", k=words.randint(3, 10))) for _ in range(3000)]
    pages = [
        "".join(" ".join(words.choices(known, k=9)) + "\n" for _ in range(words.randint(20, 120))) for _ in range(500)
    ]
    for index in range(n_files):
        directory = folder / f"d{index % 50}" / f"e{index // 50 % 40}"
        if index < 2000:
            directory.mkdir(parents=True, exist_ok=True)
        hit = "here stands the needleword once\n" if index % (n_files // 400) == 0 else ""
        (directory / f"f{index}.txt").write_text(pages[index % 500] + hit)
    return folder


def sessions(bench):
    state = bench.fresh_state()
    database = state / "alisio.db"
    fill = bench.bin / "examples" / "sessions"
    subprocess.run([fill, str(database), str(bench.work), "10000"], check=True)
    for flags in ([], ["--all"]):
        command = [bench.alisio, "sessions", "list", *flags, "--cwd", str(bench.work), "--db", str(database)]
        result = bench.hyperfine(command, bench.environment(), runs=100)
        shown = shlex.join(["alisio", "sessions", "list", *flags])
        yield f"10,000 stored sessions, `{shown[7:]}`", "50 ms", "20 ms", ms(result["median"]), 100, shown


def dist(_):
    binary = ROOT / "target" / "dist" / "alisio"
    if binary.exists():
        yield "`dist` binary, stripped", "18 MB", "12 MB", f"{binary.stat().st_size / 1e6:.1f} MB", 1, "cargo build --profile dist"
    else:
        print("no `dist` binary: cargo build --profile dist -p alisio", file=sys.stderr)


ROWS = [version, sentence, reads, shells, approval, deltas, memory, search, sessions, dist]


def main():
    names = [row.__name__ for row in ROWS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"which rows: {', '.join(names)}; all when left out")
    parser.add_argument("--runs", type=int, default=20, help="how often the rows that are not hyperfine's run (20)")
    parser.add_argument("--tree", type=pathlib.Path, help="search this tree for `kilometre` instead of a made one")
    parser.add_argument("--bin", default=ROOT / "target" / "release", help="where the binaries are")
    parser.add_argument("--no-build", action="store_true", help="measure what is there")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.rows if name not in names]
    missing = [tool for tool in ("hyperfine", "rg", "/usr/bin/time", "git") if shutil.which(tool) is None]
    if unknown or missing:
        what = f"no row {unknown[0]}" if unknown else f"{missing[0]} is missing: apt-get install hyperfine ripgrep time git"
        sys.exit(what)
    if not arguments.no_build:
        build = ["cargo", "build", "--release"]
        subprocess.run([*build, "-p", "alisio", "-p", "alisio-conformance"], cwd=ROOT, check=True)
        subprocess.run([*build, "-p", "alisio-store", "--example", "sessions"], cwd=ROOT, check=True)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(arguments, pathlib.Path(folder))
        print("| what | must | aim | measured (median) | n | command |")
        print("| --- | --- | --- | --- | --- | --- |", flush=True)
        for row in ROWS:
            if not arguments.rows or row.__name__ in arguments.rows:
                for cells in row(bench):
                    print("| " + " | ".join(str(cell) for cell in cells[:5]) + f" | `{cells[5]}` |", flush=True)


if __name__ == "__main__":
    main()
