#!/usr/bin/env python3
"""Puts small faults into the library, one at a time, and says which of them no test notices.

usage: tools/mutate.py [--count 130] [--seed 1] [--jobs 2] [--area NAME]... [--results FILE] [--list]

Faults are drawn from all lines of an area in which one is possible; the same seed draws the same faults. Each fault is
built in a copy of the last commit, and the tests of its area run, the quick ones first, until one fails. A fault is
killed if a test fails, hangs or crashes twice, or if a static assertion or constant expression makes the compilation
fail. Any other fault that does not compile is replaced by another one. Results are appended to FILE, one JSON object a
line. Killed faults in FILE are not run again, so that an interrupted run can be continued; survivors are run again,
since new tests may kill them. docs/testing.md lists the results, and why each survivor survives.
"""
import argparse
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import queue
import random
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMMIT = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()

# Which sources belong to an area, and the tests that look at them, the quick ones first.
COLLECTIVES = ["collectives", "errors", "processes"]
MPI = ["mpi_run_ahead 2", "mpi_collectives 2", "mpi_collectives 3"]
# The part of the mismatch tests that runs in a minute.
MISMATCH = "mismatch --gtest_filter=*OfThreads*/2:*OfProcesses*/1"
FORCED = ["mpi_collectives 2 forced", "mpi_collectives 3 forced --gtest_filter=-*EveryMismatch*"]
DEVICES = ["cuda_device_group", "cuda_device_direct", "cuda_edges", "cuda_device_processes", "cuda_device_gradients"]
AREAS = {
    "schedule": ("src/schedule", ["schedule", "plan", "host_port", "cuda_protocol", *COLLECTIVES]),
    "fifo": ("src/fifo", ["fifo", "cuda_fifo", "host_port", "bell", "presence", *COLLECTIVES, "mpi_contract 1", "cuda_protocol"]),
    "engine": ("src/engine", ["host_port", "pace", "bell", "direct_engine", "direct", "rank_order", *COLLECTIVES, MISMATCH, "gradients", *FORCED]),
    "plan": ("src/plan", ["plan", "plan_call", "tuning", "rank_order", "exchanges", "direct", *COLLECTIVES, MISMATCH, "cuda_edges", *FORCED]),
    "carrier": ("src/carrier", ["bell", "presence", "registry", "host_segment", "direct", "peer_watch", "memory_limits", "fifo", "at_exit", "process_wide", "store", *COLLECTIVES, MISMATCH]),
    "net": ("src/net", ["notices", "host_links", "ucx_contract", "ucx_messenger", "at_exit", "process_wide", "store", *COLLECTIVES, "mpi_contract 1", *MPI,
                        "mpi_threads 2 funneled", "mpi_threads 2 serialized", *FORCED]),
    "joining": ("src/joining", ["joining", "at_exit", "split", "store", *COLLECTIVES, MISMATCH, *MPI, *FORCED]),
    "communicator": ("src/communicator", ["call_queue", "at_exit", "split", "exchanges", "direct", "rank_order", "averages", "empty_calls", "float_state", "nans", "process_wide", "store", *COLLECTIVES, MISMATCH, "gradients",
                                          *MPI, "mpi_threads 2 serialized", *FORCED]),
    "bootstrap": ("src/bootstrap", ["local_socket", "handshake", "launchers", "at_exit", "admission", "store", *COLLECTIVES, *MPI, "mpi_threads 2 multiple", *FORCED]),
    "reduce": ("src/reduce", ["reduce", "scale", "cuda_protocol", "collectives", "gradients"]),
    "gradient": ("src/gradient", ["bucket_plan", "iteration", "gradients", "mpi_gradients 3", "cuda_device_gradients"]),
    "cuda/protocol": ("cuda/protocol", ["cuda_fifo", "cuda_protocol", *DEVICES]),
}

# A test counts as hanging if it takes longer than this and longer than five times its time without a fault.
HANGS_S = 60
# The exit status of a test that cannot run on this machine.
SKIPPED = 77
MEMORY_BYTES = 16 << 30
ENVIRONMENT = {
    "RONDO_TIMEOUT": "30", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1", "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_MCA_mpi_yield_when_idle": "1",
}


@dataclasses.dataclass(frozen=True)
class Fault:
    area: str
    file: str
    line: int
    before: str
    after: str

    def text(self):
        return f"{self.file}:{self.line}: {self.before} -> {self.after}"


# Comments and strings become blanks of the same length, so that columns stay.
NOT_CODE = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])'", re.DOTALL)

REPLACEMENTS = [
    (r" == ", [" != "]), (r" != ", [" == "]),
    (r" < ", [" <= ", " >= "]), (r" <= ", [" < "]), (r" > ", [" >= ", " <= "]), (r" >= ", [" > "]),
    (r" && ", [" || "]), (r" \|\| ", [" && "]),
    (r" \+ ", [" - "]), (r" - ", [" + "]), (r" \* ", [" + "]), (r" / ", [" * "]), (r" % ", [" / "]),
    (r" \+= ", [" -= ", " = "]), (r" -= ", [" += "]), (r" \+ 1\b", [" + 0", " + 2"]), (r" - 1\b", [" - 0"]),
    (r"\btrue\b", ["false"]), (r"\bfalse\b", ["true"]), (r"\breturn 0;", ["return 1;"]),
    (r"(?<=[(\s])!(?=[\w(])", [""]), (r"\+\+(?=\w)", ["--"]),
    (r"\bstd::min\b", ["std::max"]), (r"\bstd::max\b", ["std::min"]),
]
CONDITION = re.compile(r"^(\s*(?:\} else )?(?:if|while) \()(.*)(\) (?:\{|return\b.*|continue;|break;|throw\b.*|[\w.>-]+\(.*\);))$")
STATEMENT = re.compile(r"^(\s+)([\w:.>\[\]*-]+\(.*\);|[\w.>\[\]*-]+ [+*-]?= .*;|(?:\+\+|--)[\w.>-]+;|throw .*;)$")
NO_FAULT = re.compile(r"^\s*(#|static_assert|template|using |namespace |friend |\[\[nodiscard\]\].*;$|explicit |inline constexpr|constexpr \w+ k|static constexpr)")
# Faults in these lines change only the speed, which tests of results cannot see.
ONLY_SPEED = re.compile(r"prefetch|Prefetch|block\.pause\(|madvise|\breserve\(")


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def faults_of(area, path):
    text = git("show", f"{COMMIT}:{path}")
    masked = NOT_CODE.sub(lambda m: re.sub(r"[^\n]", "\0", m.group()), text)
    found = []
    for number, (line, code) in enumerate(zip(text.split("\n"), masked.split("\n")), 1):
        if NO_FAULT.match(code) or ONLY_SPEED.search(code):
            continue

        def add(changed):
            found.append(Fault(area, path, number, line.strip(), changed.strip()))

        for pattern, replacements in REPLACEMENTS:
            for match in re.finditer(pattern, code):
                for replacement in replacements:
                    add(line[:match.start()] + replacement + line[match.end():])
        condition = CONDITION.match(code)
        if condition:
            start, end = condition.span(2)
            add(f"{line[:start]}false && ({line[start:end]}){line[end:]}")
            if not code.lstrip().startswith("while"):
                add(f"{line[:start]}true || ({line[start:end]}){line[end:]}")
        if STATEMENT.match(code) and not code.lstrip().startswith(("return", "delete", "co_")):
            add(STATEMENT.match(code).group(1) + ";")
    return found


def drawn(area, source, generator):
    names = git("ls-tree", "-r", "--name-only", COMMIT, source).split()
    faults = [fault for name in names if name.endswith((".hpp", ".cpp")) for fault in faults_of(area, name)]
    generator.shuffle(faults)
    return faults


class Workshop:
    """A copy of the last commit and a build of it, in which one fault at a time is tried."""

    def __init__(self, folder):
        self.folder = folder
        self.build = folder / "build"
        self.usual_s = {}  # of each test, without a fault
        if not folder.exists():
            run(["git", "clone", "-q", str(ROOT), str(folder)], ROOT)
        run(["git", "fetch", "-q", "origin"], folder)
        run(["git", "reset", "-q", "--hard", COMMIT], folder)
        if not (self.build / "build.ninja").exists():
            # Little optimisation, for quick builds; with none, the tests would take too long.
            run(["meson", "setup", "build", "-Dbuildtype=plain", "-Doptimization=1", "-Dcuda=disabled", "-Dmpi=enabled",
                 "-Ducx=enabled", "-Dtests=enabled", "-Dbenchmarks=disabled", "-Dexamples=disabled"], folder)

    def copied_to(self, folder):
        """A copy of this workshop with all that is built, but without meson's setup, which holds the folder's name."""
        if not folder.exists():
            part = folder.with_suffix(".part")
            shutil.rmtree(part, ignore_errors=True)
            run(["cp", "-a", str(self.folder), str(part)], ROOT)
            (part / "build" / "build.ninja").unlink()
            for name in ("meson-private", "meson-info", "meson-logs"):
                shutil.rmtree(part / "build" / name)
            part.rename(folder)
        copy = Workshop(folder)
        copy.usual_s = dict(self.usual_s)
        return copy

    def attempt(self, fault):
        """None where the fault does not compile, else which test killed it, or "" where none did."""
        path = self.folder / fault.file
        original = path.read_text()
        lines = original.split("\n")
        line = lines[fault.line - 1]
        lines[fault.line - 1] = line[:len(line) - len(line.lstrip())] + fault.after
        path.write_text("\n".join(lines))
        try:
            return self.killer(AREAS[fault.area][1])
        finally:
            path.write_text(original)

    def killer(self, tests):
        for test in tests:
            name, *how = test.split()
            arguments = [word for word in how if word.startswith("--")]
            how = [word for word in how if word not in arguments]
            program = f"tests/test_{name}"
            built = subprocess.run(["ninja", "-C", str(self.build), "-j", "2", program], capture_output=True, text=True)
            if built.returncode != 0:
                checked = "static assertion" in built.stdout or "constant expression" in built.stdout
                return "the compiler: checked as a constant" if checked else None
            environment = {**os.environ, **ENVIRONMENT}
            command = [str(self.build / program), "--gtest_fail_fast", *arguments]
            if how:
                command = ["mpirun", "-n", how[0], *command]
                if "forced" in how:
                    environment["RONDO_TEST_CARRIER"] = "mpi"
                elif len(how) > 1:
                    environment["RONDO_TEST_THREADS"] = how[1]
            start = time.monotonic()
            most_s = max(HANGS_S, 5 * self.usual_s.get(test, 60))
            failure = run_test(command, environment, most_s)
            # Runs the test again: only a failure that repeats counts.
            if failure:
                failure = run_test(command, environment, most_s)
            if failure:
                return f"{test}: {failure}"
            self.usual_s.setdefault(test, time.monotonic() - start)
        return ""


def run(command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")


def run_test(command, environment, most_s):
    """What went wrong, or "" where nothing did. A test that hangs is ended with all that it started."""
    with tempfile.TemporaryFile("w+", errors="replace") as printed:
        process = subprocess.Popen(
            ["prlimit", f"--as={MEMORY_BYTES}", *command], env=environment, stdout=printed, stderr=subprocess.STDOUT,
            start_new_session=True)
        try:
            process.wait(most_s)
        except subprocess.TimeoutExpired:
            # mpirun ends its ranks when it is asked to end, not when it is killed.
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                pass
            return "hangs"
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
        printed.seek(0)
        output = printed.read()
    if process.returncode in (0, SKIPPED):
        return ""
    failed = re.search(r"\[  FAILED  \] ([\w./]+)", output)
    return failed.group(1) if failed else f"ends with {process.returncode}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=130, help="how many faults, spread over the areas")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--area", action="append", choices=AREAS)
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "build-mutants" / "results.jsonl")
    parser.add_argument("--list", action="store_true", help="only say what would be tried")
    options = parser.parse_args()

    options.results.parent.mkdir(exist_ok=True)
    areas = options.area or list(AREAS)
    known = {}
    if options.results.exists():
        entries = [json.loads(line) for line in options.results.read_text().splitlines(keepends=True) if line.endswith("\n")]
        known = {entry["fault"]: entry for entry in entries if entry["killer"] != ""}
    waiting = queue.Queue()
    wanted = {}
    stock = {}
    for index, area in enumerate(areas):
        stock[area] = iter(drawn(area, AREAS[area][0], random.Random(f"{options.seed} {area}")))
        wanted[area] = options.count // len(areas) + (index < options.count % len(areas))
    turn = [area for place in range(max(wanted.values())) for area in areas if place < wanted[area]]
    if options.list:
        for area in turn:
            print(next(stock[area]).text())
        return
    for area in turn:
        waiting.put(area)

    lock = threading.Lock()
    tally = {area: [] for area in areas}

    folder = ROOT / "build-mutants"
    first = Workshop(folder / "0")
    unchanged = first.killer(sorted({test for area in areas for test in AREAS[area][1]}))
    if unchanged != "":
        raise SystemExit(f"without a fault, this fails: {unchanged or 'a test does not compile'}")
    workshops = [first] + [first.copied_to(folder / str(number)) for number in range(1, options.jobs)]

    def work(workshop):
        while True:
            try:
                area = waiting.get_nowait()
            except queue.Empty:
                return
            while True:
                with lock:
                    fault = next(stock[area], None)
                if fault is None:
                    break
                entry = known.get(fault.text())
                if entry is None:
                    killer = workshop.attempt(fault)
                    entry = {"area": area, "fault": fault.text(), "compiles": killer is not None, "killer": killer}
                    with lock, options.results.open("a") as results:
                        results.write(json.dumps(entry) + "\n")
                if entry["compiles"]:
                    with lock:
                        tally[area].append(entry)
                        print(f"{entry['killer'] or 'SURVIVED':<60.60} {entry['fault']}", flush=True)
                    break

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for done in [pool.submit(work, workshop) for workshop in workshops]:
            done.result()

    print()
    for area, entries in [*tally.items(), ("all", [entry for entries in tally.values() for entry in entries])]:
        killed = sum(entry["killer"] != "" for entry in entries)
        print(f"{area:<16}{killed:>4} of {len(entries):>3} killed" + (f", {killed / len(entries):.0%}" if entries else ""))


if __name__ == "__main__":
    main()
