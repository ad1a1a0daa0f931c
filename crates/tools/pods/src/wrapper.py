# Runs one program in a pod. Standard output of the container is lines of JSON, because the log of a
# container mixes the two streams of a program and has no exit code:
#
#   {"python": "3.12.4"}                              at the start
#   {"stream": "stdout", "data": BASE64}              the beginning of a stream, at once
#   {"stream": "stdout", "omitted": 7}                what is left out after the beginning
#   {"stream": "stdout", "data": BASE64}              the end of a stream
#   {"ended": {"exited": 0}}                          how it ended, or
#   {"failed": "why it was not started"}
#
# The program could write such lines too. It can only lie about itself: the reader bounds all of it.
import base64, ctypes, json, os, platform, resource, select, shutil, signal, subprocess, sys, time

PIECE = 8192


def say(message):
    line = (json.dumps(message) + "\n").encode()
    while line:
        line = line[os.write(1, line):]


class Stream:
    """Keeps the beginning and the end. The beginning is told at once: it outlives this process."""

    def __init__(self, name, kept):
        self.name, self.half, self.told, self.omitted, self.last = name, kept // 2, 0, 0, bytearray()

    def tell(self, data):
        for at in range(0, len(data), PIECE):
            say({"stream": self.name, "data": base64.b64encode(data[at:at + PIECE]).decode()})

    def add(self, data):
        first = data[:self.half - self.told]
        self.tell(first)
        self.told += len(first)
        self.last += data[len(first):]
        if len(self.last) > 2 * self.half:
            self.cut()

    def cut(self):
        surplus = max(len(self.last) - self.half, 0)
        self.omitted += surplus
        del self.last[:surplus]

    def end(self):
        self.cut()
        if self.omitted:
            say({"stream": self.name, "omitted": self.omitted})
        self.tell(bytes(self.last))


def close_network():
    """No socket but local ones, for this process and all that it starts, whatever the cluster allows."""
    arch, socket, other_numbers = {
        "x86_64": (0xC000003E, 41, True), "aarch64": (0xC00000B7, 198, False),
    }[platform.machine()]
    ld, jeq, jge, ret = 0x20, 0x15, 0x35, 0x06
    errno = lambda number: (ret, 0, 0, 0x00050000 | number)
    code = [
        (ld, 0, 0, 4),                              # the architecture
        (jeq, 1, 0, arch), (ret, 0, 0, 0x80000000),  # another one: kill
        (ld, 0, 0, 0),                              # the number of the call
    ]
    if other_numbers:
        code += [(jge, 0, 1, 0x40000000), errno(38)]  # x32
    code += [
        (jeq, 0, 1, 425), errno(38),                # io_uring_setup
        (jeq, 1, 0, socket), (ret, 0, 0, 0x7FFF0000),
        (ld, 0, 0, 16),                             # the family
        (jeq, 1, 0, 1), errno(97),                  # AF_UNIX, or EAFNOSUPPORT
        (ret, 0, 0, 0x7FFF0000),
    ]

    class Instruction(ctypes.Structure):
        _fields_ = [("code", ctypes.c_ushort), ("yes", ctypes.c_ubyte), ("no", ctypes.c_ubyte), ("k", ctypes.c_uint32)]

    class Filter(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.POINTER(Instruction))]

    instructions = (Instruction * len(code))(*[Instruction(*one) for one in code])
    libc = ctypes.CDLL(None, use_errno=True)
    set_option = lambda *values: libc.prctl(*[ctypes.c_ulong(value) for value in values])
    filter = Filter(len(code), instructions)
    address = ctypes.addressof(filter)
    if set_option(38, 1, 0, 0, 0) or set_option(22, 2, address, 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp")


def killed_for_memory():
    try:
        with open("/sys/fs/cgroup/memory.events") as events:
            return sum(int(line.split()[1]) for line in events if line.startswith("oom_kill "))
    except (OSError, ValueError, IndexError):
        return 0


def kill(child):
    try:
        os.killpg(child.pid, signal.SIGKILL)
        if os.getpid() == 1:
            # The first process of the container: also what left the group.
            os.kill(-1, signal.SIGKILL)
    except ProcessLookupError:
        pass
    child.wait()


def bound(what, soft, hard):
    """Sets a limit, unless there is a lower one already."""
    own = resource.getrlimit(what)[1]
    if own != resource.RLIM_INFINITY:
        soft, hard = min(soft, own), min(hard, own)
    resource.setrlimit(what, (soft, hard))


def run(order):
    def limit():
        seconds = order["processor_seconds"]
        bound(resource.RLIMIT_CPU, seconds, seconds + 1)
        bound(resource.RLIMIT_FSIZE, order["file"], order["file"])
        bound(resource.RLIMIT_CORE, 0, 0)

    program = list(order["program"])
    program[0] = shutil.which(program[0]) or program[0]
    if "last_argument" in order:
        with open(order["last_argument"], encoding="utf-8", newline="") as file:
            program.append(file.read())
    environment = {name: os.environ[name] for name in order["environment"] if name in os.environ}
    before, started = killed_for_memory(), time.monotonic()
    child = subprocess.Popen(
        program, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=order["folder"],
        env=environment, start_new_session=True, preexec_fn=limit)
    streams = {
        child.stdout.fileno(): Stream("stdout", order["kept"]), child.stderr.fileno(): Stream("stderr", order["kept"]),
    }
    names, total, ended = dict(streams), 0, None
    while streams:
        left = started + order["seconds"] - time.monotonic()
        if left <= 0:
            ended = "out_of_time"
            break
        ready = select.select(list(streams), [], [], min(left, 0.05))[0]
        for number in ready:
            data = os.read(number, 65536)
            total += len(data)
            if data:
                streams[number].add(data)
            else:
                del streams[number]
        if total > order["flood"]:
            ended = "too_much_output"
            break
        if not ready and child.poll() is not None:
            # What it left running holds the streams.
            break
    if ended is None:
        try:
            child.wait(max(started + order["seconds"] - time.monotonic(), 0))
        except subprocess.TimeoutExpired:
            ended = "out_of_time"
    kill(child)
    for number, stream in streams.items():
        os.set_blocking(number, False)
        try:
            while total <= order["flood"] and (data := os.read(number, 65536)):
                total += len(data)
                stream.add(data)
        except BlockingIOError:
            pass
    for stream in names.values():
        stream.end()
    code, used = child.returncode, resource.getrusage(resource.RUSAGE_CHILDREN)
    if killed_for_memory() > before:
        ended = "out_of_memory"
    elif ended is None and (
            code == -signal.SIGXCPU
            or code == -signal.SIGKILL and used.ru_utime + used.ru_stime >= order["processor_seconds"]):
        ended = "out_of_processor_time"
    if ended is None:
        ended = {"exited": code} if code >= 0 else {"signalled": -code}
    say({"ended": ended})
    return 0 if ended == {"exited": 0} else 1


def main():
    order = json.loads(sys.argv[1])
    say({"python": platform.python_version()})
    try:
        if order["close_network"]:
            close_network()
        return run(order)
    except Exception as error:
        say({"failed": f"{type(error).__name__}: {error}"})
        return 1


sys.exit(main())
