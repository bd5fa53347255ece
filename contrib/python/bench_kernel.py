# SPDX-License-Identifier: MIT
"""A kernel in Python, for `bench --backend 'exec:python3 mine.py'` and `bench judge 'exec:python3 mine.py'`.

    import bench_kernel

    kernel = bench_kernel.Kernel("mine", "1")

    @kernel.attention_forward(why=lambda a: bench_kernel.lacks(a, "groups", "memory"))
    def forward(a):
        a.o[:] = ...     # from a.q [B,L,H,dh], a.k, a.v; a.lse too, where it is not None

    kernel.serve()

A call has arrays and numbers by the names of benchattn.h (docs/kernels.md has the lines); a term that is not there is
None, or 0. Arrays are numpy's, or with Kernel(..., arrays="torch") tensors, over memory that bench reads: results are
written into them. `why` returns None, or a sentence that refuses the call; it sees shapes, numbers may not be there
yet. The same line gives the same call object: what a function keeps in the dict `a.kept` is there next time, when
the arrays may hold other numbers. The time of a call is that of the function alone. An exception becomes a failed row.

Run as a program, this file is a kernel that does nothing: with --no-check its rows are what Python adds to a call."""
import mmap
import os
import sys
import time

LINES, MEMORY, VERSION = 3, 4, 1  # descriptors, and version of the lines
FUNCTIONS = ("attention_forward", "attention_backward", "recurrence_forward", "recurrence_backward")
TERMS = {  # what `lacks` knows: word, is it there, what it is called
    "groups": (lambda a: a.k is not None and a.k.shape[2] != a.q.shape[2], "shared key/value heads"),
    "wide_values": (lambda a: a.v.shape[3] != a.q.shape[3], "values of another width than keys"),
    "memory": (lambda a: a.M > 0, "keys before those of the queries"),
    "future": (lambda a: a.ordered and not a.causal, "keys after the query"),
    "unordered": (lambda a: not a.ordered, "keys that are not ordered with the queries"),
    "window": (lambda a: a.window > 0, "a window"),
    "window_of_head": (lambda a: a.window_of_head is not None, "a window per head"),
    "soft_cap": (lambda a: a.soft_cap != 0, "a cap of scores"),
    "gain": (lambda a: a.gain not in (0, 1), "a factor of scores"),
    "steps": (lambda a: a.q_step != 0, "position steps"),
    "no_content": (lambda a: a.no_content != 0, "scores without content"),
    "sinks": (lambda a: a.sink_k is not None or a.sink_logit is not None, "sinks"),
} | {name: (lambda a, name=name: getattr(a, name) is not None, what) for name, what in {
    "u": "a vector added to the queries", "w": "a vector added to the queries", "rel_k": "relative keys",
    "rel_v": "relative values", "rel_q": "relative queries", "bias": "a bias", "add": "numbers added to scores",
    "fade": "running sums", "scores_out": "scores as a result", "mix_logits": "mixed heads",
    "mix_probs": "mixed heads", "lse": "the log-sum-exp"}.items()}


def lacks(a, *has):
    """None, or a sentence: the first term of an attention that `has` does not name."""
    return next((f"does not support {what}" for word, (there, what) in TERMS.items() if word not in has and there(a)), None)


class Call:
    """Arrays and numbers of a line; what it does not name is None."""

    def __init__(self, words, array):
        self.function, self.kept = words[0], {}
        for name, value in (word.split("=", 1) for word in words[1:]):
            parts = value.split(":")
            if len(parts) == 1:
                self.__dict__[name] = float(value) if set(value) & set(".en") else int(value)
            else:
                shape, strides = ([int(n) for n in part.split(",")] for part in parts[2:])
                self.__dict__[name] = array(parts[0], int(parts[1]), shape, strides)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return None


def arrays_of(library, memory):
    """A function from type, offset, shape and strides to an array, and one that sets the number of threads."""
    if library == "torch":
        import torch
        types = {"f32": torch.float32, "f64": torch.float64, "i32": torch.int32}
        torch.set_flush_denormal(True)  # as bench does in its threads

        def array(kind, at, shape, strides):
            count = 1 + sum((n - 1) * s for n, s in zip(shape, strides))
            if 0 in shape:
                return torch.empty(shape, dtype=types[kind])
            return torch.frombuffer(memory, dtype=types[kind], count=count, offset=at).as_strided(shape, strides)
        return array, torch.set_num_threads
    if library is None:
        return lambda *of: None, lambda n: None
    import numpy
    types = {"f32": numpy.dtype("f4"), "f64": numpy.dtype("f8"), "i32": numpy.dtype("i4")}

    def array(kind, at, shape, strides):
        t = types[kind]
        return numpy.ndarray(shape, t, memory, at, [s * t.itemsize for s in strides])
    return array, lambda n: None


class Kernel:
    """`arrays`: "numpy", "torch", or None: a call has none. `threads(n)` is called where the number of threads is another one than before."""

    def __init__(self, name, version, arrays="numpy", threads=None):
        self.name, self.version, self.arrays, self.threads = name, version, arrays, threads
        self.functions, self.calls = {}, {}

    def __getattr__(self, name):
        if name not in FUNCTIONS:
            raise AttributeError(name)

        def takes(why=lambda a: None):
            def add(function):
                self.functions[name] = function, why
                return function
            return add
        return takes

    def timed(self, function, call):
        """What it takes: nanoseconds of the clock, and of CPU time of this thread."""
        cpu, wall = time.thread_time_ns(), time.monotonic_ns()
        function(call)
        return f"ok {time.monotonic_ns() - wall} {time.thread_time_ns() - cpu}"

    def call_of(self, line, array):
        if line not in self.calls:
            if len(self.calls) > 500:
                self.calls.clear()
            self.calls[line] = Call([w for w in line.split() if not w.startswith("threads=")], array)
        return self.calls[line]

    def answer(self, line, array):
        if line == "empty":
            return self.timed(lambda call: None, None)
        asks, line = line.startswith("why "), line.removeprefix("why ")
        call = self.call_of(line, array)
        function, why = self.functions[call.function]
        if asks:
            refusal = why(call)
            return f"no {refusal}" if refusal else "ok"
        threads = int(line.split(" ", 2)[1].removeprefix("threads="))
        if threads != self.n_threads:
            self.n_threads = threads
            self.threads(threads)
        return self.timed(function, call)

    def serve(self):
        """Answer lines until there are no more. What is printed goes where bench's errors go."""
        sys.stdout.reconfigure(line_buffering=True)
        lines = os.fdopen(LINES, "rb", buffering=1 << 16)
        greeting = lines.readline().split()
        if greeting[:2] != [b"bench-kernel", b"%d" % VERSION]:
            raise SystemExit(f"{self.name}: bench speaks another version than {VERSION}")
        size = int(greeting[3].removeprefix(b"bytes="))
        array, threads = arrays_of(self.arrays, mmap.mmap(MEMORY, size))
        self.threads, self.n_threads = self.threads or threads, 0
        name, version = (str(text).replace(" ", "_") for text in (self.name, self.version))
        os.write(LINES, f"bench-kernel {VERSION} {name} {version} {' '.join(self.functions)}\n".encode())
        for line in lines:
            try:
                text = self.answer(line.decode().rstrip("\n"), array)
            except Exception as e:  # whatever the kernel does
                text = f"error {type(e).__name__}: {' '.join(str(e).split())}"[:500]
            os.write(LINES, (text + "\n").encode())


if __name__ == "__main__":
    empty = Kernel("empty", VERSION, arrays=None)
    for one in FUNCTIONS:
        getattr(empty, one)()(lambda call: None)
    empty.serve()
