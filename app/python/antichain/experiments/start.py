"""Starts the program `antichain`, and its ranks by mpirun or srun. What a child does ends nothing else. When
this process is told to stop, or dies, the child ends too."""

import ctypes
import json
import os
import re
import shutil
import signal
import subprocess

from antichain import program
from antichain.error import AntichainError

USAGE, BAD_INPUT, FAILED, STOPPED = 2, 3, 4, 85  # exit codes, as the program has them
LAUNCHERS = {"mpirun": "mpirun -n {}", "srun": "srun --mpi=pmix -n {}", "threads": ""}
NO_MPI = "no MPI"
SIGNALS = signal.SIGINT, signal.SIGTERM, signal.SIGUSR1
MOST_PASSED_ON = 2  # a third signal would end mpirun before its ranks, and nothing would end those
DIE_WITH_PARENT = 1  # Linux's PR_SET_PDEATHSIG

_libc = ctypes.CDLL(None)


def refusal(sentence, code=USAGE):
    """Returns the error that ends an experiment with this sentence and this exit code."""
    return AntichainError(sentence, code)


def alone():
    """Throws AntichainError where mpirun or srun started several processes of this one."""
    sizes = ["OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "PMI_SIZE"]
    if "SLURM_STEP_ID" in os.environ:
        sizes.append("SLURM_STEP_NUM_TASKS")
    if any(os.environ.get(name, "1") != "1" for name in sizes):
        raise refusal(
            "an experiment starts its ranks itself, but several processes of it were started: start it"
            " without mpirun or srun; --launcher says how ranks are started"
        )


class Program:
    """The program, and how its ranks are started."""

    def __init__(self, named, launcher="threads", starts_ranks=False):
        """Takes the path or name of --program, else $ANTICHAIN, else the one in PATH, and one of LAUNCHERS,
        or words such as "mpirun --bind-to none -n {}". Throws AntichainError where there is no such program,
        or where it starts ranks that are processes, which a program without MPI does not have."""
        name = named or os.environ.get("ANTICHAIN") or shutil.which("antichain") or program.find()
        self.path = shutil.which(name)
        if not self.path:
            raise refusal(f"{name} is no program that can be started: name another by --program", 127)
        self.launcher = LAUNCHERS.get(launcher, launcher).split()
        try:
            self.facts = json.loads(self.ask("info", "--json", "-"))
            libraries = self.facts["libraries"]
        except (ValueError, KeyError, TypeError) as problem:
            sentence = f"{self.path} is not the program antichain: name another by --program"
            raise refusal(sentence, 127) from problem
        if starts_ranks and launcher != "threads":
            self._check_launcher(launcher, "".join(self.launcher[:1]), libraries)

    def _check_launcher(self, launcher, first, libraries):
        if not first:
            why = "has no words: give mpirun, srun, threads, or leave it out"
        elif NO_MPI in libraries:
            why = f"is {first}, but {self.path} is built without MPI, so {first} can't start its "
            why += "ranks: name a program with MPI by --program, or give --launcher threads"
        elif not shutil.which(first):
            why = f"begins with '{first}', which is no program here: give mpirun, srun, threads, or words "
            why += 'such as "mpirun -n {}"'
        elif not any("{}" in word for word in self.launcher):
            why = f"'{launcher}' does not say how many ranks to start: write {{}} for their number"
        else:
            return
        raise refusal(f"--launcher {why}")

    def ask(self, *words):
        """Returns what a short command prints. Throws AntichainError with its sentence."""
        try:
            printed, _ = program.call([self.path, *map(str, words)])
        except AntichainError as problem:
            code = _shells(problem.code or 127)
            if code in (128 + signal.SIGINT, 128 + signal.SIGTERM, STOPPED):  # Ctrl-C reaches it, too
                raise refusal("stopped", STOPPED) from problem
            raise refusal(str(problem), code) from problem
        return "".join(printed)

    def start(self, words, ranks=None):
        """Returns the words that start a command: on so many ranks, or on none."""
        words = [self.path, *map(str, words)]
        if ranks and not self.launcher:
            return [*words, "--local", str(ranks)]
        return [word.replace("{}", str(ranks)) for word in self.launcher if ranks] + words


def provenance(facts):
    """Returns the program, its libraries and this host, as a record has them."""
    record = {name: facts[name] for name in ("program", "revision", "libraries")}
    return record | {"host": os.uname().nodename, "cores": len(os.sched_getaffinity(0))}


def is_refusal(code):
    """Returns whether the program ended because a plan is not possible, and not by a fault or a signal."""
    return 1 < code < 75


def _shells(code):
    """Returns an exit code as a shell has it: 128 + n where a process died of signal n."""
    return code if code >= 0 else 128 - code


class Children:
    """Runs child processes, one at a time. While it lives, SIGINT, SIGTERM and SIGUSR1 only set `asked`, and
    the first two reach the running child as SIGTERM."""

    def __init__(self):
        self.asked, self._child, self._passed_on = 0, None, 0
        for number in SIGNALS:
            signal.signal(number, self._hear)

    def _hear(self, number, _):
        self.asked = number
        self._pass_on()

    def _pass_on(self):
        if self._child is not None and self._passed_on < MOST_PASSED_ON:
            self._passed_on += 1
            self._child.terminate()

    def check(self):
        if self.asked:
            raise refusal("stopped", STOPPED)

    def run(self, words, log):
        """Runs words[0] and waits. Both outputs replace the content of the file `log`. Returns the exit code;
        128 + n where the child died of signal n, 127 where it could not be started."""
        parent = os.getpid()

        def begin():
            _libc.prctl(DIE_WITH_PARENT, signal.SIGTERM)
            if os.getppid() != parent:  # the parent died before
                os._exit(127)

        self._passed_on = 0
        with open(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o666), "wb") as output:
            try:
                # Ctrl-C is for the parent, which counts what it passes on.
                streams = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": subprocess.STDOUT}
                alone = {"start_new_session": True, "preexec_fn": begin}
                self._child = subprocess.Popen(words, **streams, **alone)
            except OSError:
                return 127
        if self.asked:  # between the last check and this one
            self._pass_on()
        code = self._child.wait()
        self._child = None
        return _shells(code)


def last_words(log):
    """Returns why a program ended, by what it wrote: antichain's own last sentence, else the first paragraph
    of mpirun's last message, which stands between lines of dashes, else the last line."""
    with open(log, encoding="utf-8", errors="replace") as file:
        text = file.read()
    ours = re.findall(r"^antichain: (?!warning: )(.*)", text, re.MULTILINE)
    if ours:
        return ours[-1]
    pages = re.findall(r"^-----.*\n((?:(?!-----).*\n)*)", text, re.MULTILINE)[::2]
    page = " ".join(pages[-1].strip().split("\n\n")[0].split()) if pages else ""
    if "to run as root" in page:
        return (
            "mpirun does not start as root: set OMPI_ALLOW_RUN_AS_ROOT=1 and OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"
        )
    lines = [line for line in text.splitlines() if line.strip(" \t-")]
    return page.rstrip(":.") or (lines[-1] if lines else "it wrote nothing")
