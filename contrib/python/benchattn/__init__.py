# SPDX-License-Identifier: MIT
"""Attention and linear recurrences of libbenchattn, forward and backward, for numpy and PyTorch.

    import benchattn
    o = benchattn.attention(q, k, v, causal=True, bias=bias, soft_cap=30)
    o = benchattn.recurrence(q, k, v, g=log_decay, beta=beta)
    y = benchattn.conv(x, w, silu=True)             # the short causal convolution before it

    o = benchattn.sdpa(q, k, v, is_causal=True)     # PyTorch's layout and arguments

Given tensors of PyTorch the functions have gradients; given arrays of numpy they compute forward,
and Attention, Recurrence and Convolution, which the functions are made of, have `backward`. Arrays are of float32,
contiguous and never copied; tensors of bfloat16 and float16 are converted, others copied where they do not lie as the
kernels read them. Needs numpy; PyTorch, 2.4 or later, only for tensors.
docs/library.md has the whole story, benchattn.h the equations.
"""
import ctypes
import itertools
import math
import operator
import os
import sys
import weakref

import numpy as np

__version__ = "0.4.0"


class Error(ValueError):
    """The call makes no sense, or cannot be had: what, and what to do."""


# ---- the library --------------------------------------------------------------------------------

_int, _size, _float, _long, _at = (ctypes.c_int, ctypes.c_size_t, ctypes.c_float, ctypes.c_ssize_t,
                                   ctypes.c_void_p)


def _whole(name, x, bits=32):
    """x, or Error if it is no whole number of so many bits, which ctypes would cut; None is 0."""
    try:
        n = 0 if x is None else operator.index(bool(x) if isinstance(x, np.bool_) else x)
    except TypeError:
        raise Error(f"{name} is {x!r}  -> use a whole number") from None
    if not -2 ** (bits - 1) <= n < 2 ** (bits - 1):
        raise Error(f"{name} is {n}  -> use a number that {bits} bits hold")
    return n


def _real(name, x):
    """x, or Error if it is no number, or one that a float turns into 0, which means a default, or into infinity."""
    try:
        held = _float(0 if x is None else x).value
    except TypeError:
        raise Error(f"{name} is {x!r}  -> use a number") from None
    if (held != 0) != bool(x) or math.isfinite(held) != math.isfinite(x or 0):
        raise Error(f"{name} is {x}  -> use a number that a float holds")
    return held


class _Struct(ctypes.Structure):
    """A struct whose numbers are checked, by name, whenever one is set."""

    def __setattr__(self, name, x):
        kind = self._kinds[name]
        if kind is _at or (type(x) is int and -2 ** 31 <= x < 2 ** 31 and kind is not _float):
            pass
        elif kind is _float:
            x = _real(name, x)
        elif kind in (_int, _long, ctypes.c_int64):
            x = _whole(name, x, 8 * ctypes.sizeof(kind))
        super().__setattr__(name, x)


def _struct(name, *fields):
    """A struct of benchattn.h: `fields` are a type and the members that have it, in order."""
    members = [(member, kind) for kind, names in fields for member in names.split()]
    return type(name, (_Struct,), {"_fields_": members, "_kinds": dict(members)})


_Options = _struct("ba_engine_options", (_size, "size"), (_at, "backend"), (_int, "threads reserved"))
_Stride = _struct("ba_stride", (_long, "batch row"))
_Rows = _struct("ba_rows", (_at, "at"), (_long, "batch row head per"))
_Mask = _struct(
    "ba_mask", (_size, "size"),
    (_int, "window dilation block back memory stride fixed summary global n_random random_blocks row_words"),
    (ctypes.c_int64, "random_from"), (_at, "random rows"), (_int, "rect_rows rect row margin_rows margin reserved"))
_Attention = _struct(
    "ba_attention", (_size, "size"),
    (_int, "B H L M dh Hkv K dv causal window R Rf"), (_float, "scale"), (_int, "n_masks"), (_at, "q k v"),
    (_Stride, "q_at k_at v_at o_at"), (_at, "o lse u w rel_k rel_v rel_q bias"),
    (_long, "rel_head bias_head"), (_int, "q_step k_step q_first sinks"), (_long, "base"),
    (_at, "masks mask_of_head window_of_head add"), (_long, "add_batch add_head add_row"), (_at, "fade"),
    (_long, "fade_batch fade_head"),
    (_at, "scores_out mix_logits mix_probs sink_k sink_v sink_logit"), (_float, "soft_cap gain"),
    (_int, "no_content texts"), (_at, "cu_seqlens"))
_AttentionGrad = _struct(
    "ba_attention_grad", (_size, "size"),
    (_at, "d_o d_scores_out d_q d_k d_v d_u d_w d_rel_k d_rel_v d_rel_q d_bias d_add d_fade "
          "d_mix_logits d_mix_probs d_sink_k d_sink_v d_sink_logit"))
_Recurrence = _struct(
    "ba_recurrence", (_size, "size"), (_int, "B L M H Hs dk dv g_width"), (_float, "scale eps"),
    (_int, "norm texts"), (_Rows, "q k v g beta a b i"), (_at, "u s0 z0 m0 s1 z1 m1 o den cu_seqlens"))
_RecurrenceGrad = _struct("ba_recurrence_grad", (_size, "size"),
                          (_at, "d_o d_s1 d_q d_k d_v d_g d_beta d_a d_b d_u d_i d_s0 d_z0"))

_Conv = _struct("ba_conv", (_size, "size"), (_int, "B L n taps silu texts"), (_at, "x w bias s0 s1 y cu_seqlens"))
_ConvGrad = _struct("ba_conv_grad", (_size, "size"), (_at, "d_y d_s1 d_x d_w d_bias d_s0"))


def _load():
    """$BENCHATTN, else what was installed or built with this package, else what the system finds."""
    here = os.path.dirname(os.path.realpath(__file__))
    near = [os.path.join(here, folder, "libbenchattn.so.1") for folder in ("", "../../../lib", "../../../build/release")]
    given = os.environ.get("BENCHATTN")
    path = given or next((p for p in near if os.path.exists(p)), "libbenchattn.so.1")
    try:
        lib = ctypes.CDLL(path)
    except OSError as e:
        instead = "install libgomp1, GCC's OpenMP runtime" if "libgomp" in str(e) else (
            "make install, or set BENCHATTN to libbenchattn.so.1")
        raise ImportError(f"{e}  -> {instead}") from None
    lib.ba_backend_name.restype = lib.ba_engine_backend.restype = ctypes.c_char_p
    lib.ba_engine_backend.argtypes = lib.ba_engine_close.argtypes = [_at]
    return lib


_lib = _load()
_MESSAGE = 256


def _call(function, *arguments):
    why = ctypes.create_string_buffer(_MESSAGE)
    if getattr(_lib, function)(*arguments, why, _size(_MESSAGE)) != 0:
        raise Error(why.value.decode())


def backends():
    """The backends that this CPU can have, as `Engine` takes them."""
    names, i = [], 0
    while (name := _lib.ba_backend_name(i)) is not None:
        names.append(name.decode())
        i += 1
    return names


class Engine:
    """Kernels, threads and work space; calls of one engine wait for each other."""

    _handle = None
    _numbers = itertools.count(1)

    def __init__(self, backend=None, threads=None):
        self._handle = _at()
        if threads is None:
            # one number for each level of nested regions: ours is the first
            first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
            threads = int(first or len(os.sched_getaffinity(0)))
        name = None if backend is None else ctypes.create_string_buffer(backend.encode())
        options = _Options(ctypes.sizeof(_Options), name and ctypes.addressof(name), threads)
        _call("ba_engine_open", ctypes.byref(self._handle), ctypes.byref(options))
        self.number = next(Engine._numbers)
        _engines[self.number] = self

    backend = property(lambda self: _lib.ba_engine_backend(self._handle).decode())

    def __del__(self, close=_lib.ba_engine_close):  # at exit the module's own names may be gone
        if self._handle:
            close(self._handle)


_usual, _engines = None, weakref.WeakValueDictionary()  # by numbers, which operators of PyTorch take


def _engine(engine):
    global _usual
    if engine is None:
        engine = _usual = _usual or Engine()
    return engine


# ---- arrays -------------------------------------------------------------------------------------

def _need_arrays(**operands):
    for name, x in operands.items():
        if x is not None and not isinstance(x, np.ndarray):
            raise Error(f"{name} is a {type(x).__name__}  -> pass an array of numpy")


def _row_strides(shape, strides):
    """From sequence to sequence and from token to token of [B, n, heads, width], in numbers; None if the rows of heads
    do not lie as a whole. Axes of length 1 have any stride."""
    B, n, heads, width = shape
    whole = (width == 1 or strides[3] == 1) and (heads == 1 or strides[2] == width)
    row = strides[1] if n > 1 else heads * width
    batch = strides[0] if B > 1 else n * row
    return (batch, row) if whole and min(batch, row) > 0 and shape[3] else None


def _take_rows(name, x, shape):
    """Of q, k or v: whether it can be read where it lies, and its strides."""
    if isinstance(x, np.ndarray) and x.dtype == np.float32 and x.ndim == 4 and x.flags.aligned:
        strides = _row_strides(x.shape, [n // x.itemsize for n in x.strides])
        if strides and all(n in (None, m) for n, m in zip(shape, x.shape)):
            return _Stride(*strides)
    _take(name, x, shape)
    return _Stride()


def _take(name, x, *shapes, dtype=np.float32):
    """x as it is, if it can be read where it lies and has one of these shapes; None in one: any length."""
    _need_arrays(**{name: x})
    if x.dtype != dtype:
        doubles = "; double precision, as for gradcheck, cannot be had" if x.dtype == np.float64 else ""
        raise Error(f"{name} is of {x.dtype}  -> convert it to {np.dtype(dtype)}{doubles}")
    if not x.flags.c_contiguous or not x.flags.aligned:
        raise Error(f"{name} is not contiguous  -> pass a contiguous copy")
    if not any(len(s) == x.ndim and all(n in (None, m) for n, m in zip(s, x.shape)) for s in shapes):
        wanted = " or ".join(str(list(s)).replace("None", "any") for s in shapes)
        raise Error(f"{name} has the shape {list(x.shape)}  -> give it {wanted}")
    return x


def _take_whole(name, x, dtype):
    """An array of x, or Error if it has other numbers than dtype holds."""
    x = np.asarray(x)
    limits = np.iinfo(dtype)
    if x.dtype.kind not in "iu" or (x.size and (int(x.min()) < limits.min or int(x.max()) > limits.max)):
        raise Error(f"{name} is {x.tolist()}  -> give whole numbers of {limits.min} to {limits.max}")
    return np.ascontiguousarray(x, dtype)


def _need_some(**lengths):
    """In the struct 0 of these is a default, not none."""
    for name, n in lengths.items():
        if n == 0:
            raise Error(f"{name} is 0  -> use 1 or more, or leave the call out")


def _pointer(x):
    return None if x is None else x.ctypes.data


def _take_texts(x, cu_seqlens):
    """Packed texts into the struct; the array, which has to stay."""
    if cu_seqlens is None:
        return None
    cu = _take_whole("cu_seqlens", cu_seqlens, np.int32)
    if cu.ndim != 1 or cu.size < 2:
        raise Error(f"cu_seqlens has the shape {list(cu.shape)}  -> give [texts + 1] numbers, from 0 to the tokens")
    x.texts, x.cu_seqlens = cu.size - 1, _pointer(cu)
    return cu


class _Call:
    """What Attention and Recurrence share: operands by name, and their gradients."""

    def _zeros_like(self, name):
        """A gradient lies as its operand does."""
        x = self.operands[name]
        if x.flags.c_contiguous:
            return np.zeros(x.shape, x.dtype)
        at = getattr(self._struct, name + "_at", None) or getattr(self._struct, name)
        B, n, heads, width = x.shape
        room = np.zeros((B - 1) * at.batch + (n - 1) * at.row + heads * width, x.dtype)
        return np.lib.stride_tricks.as_strided(room, x.shape, [4 * at.batch, 4 * at.row, 4 * width, 4])

    @classmethod
    def check_options(cls, **options):
        """Error if an option is not one, or is a number that the struct cannot hold."""
        known = cls.__init__.__kwdefaults__
        for name in options:
            if name not in known:
                instead = next((_INSTEAD[n] for n in _INSTEAD if name.startswith(n)), "use some of " + ", ".join(known))
                raise Error(f"{name} is not an argument  -> {instead}")
        cls._Kind(**{n: x for n, x in options.items()
                     if cls._Kind._kinds.get(n) in (_int, _float, _long) and n != "norm"
                     and not (n == "window" and hasattr(x, "__len__"))})
        _whole("future", options.get("future"))
        steps, of_head = options.get("steps"), options.get("mask_of_head")
        if hasattr(options.get("window"), "__len__"):
            _take_whole("window", options["window"], np.int32)
        if of_head is not None:
            if not hasattr(of_head, "__iter__"):
                raise Error(f"mask_of_head is {of_head!r}  -> give a number for each head")
            _take_whole("mask_of_head", list(of_head), np.uint8)
        if steps is not None and np.shape(steps) != (3,):
            raise Error(f"steps is {steps!r}  -> give (q_step, k_step, q_first)")
        cls._Kind(**dict(zip(("q_step", "k_step", "q_first"), steps or ())))

    def _gradients(self, d, wanted, must):
        """Zeroed gradients of the operands that are wanted, entered into the struct d."""
        names = [n for n in self.operands if n in must or wanted is None or n in wanted]
        grads = {n: self._zeros_like(n) for n in names}
        for name, grad in grads.items():
            setattr(d, "d_" + name, _pointer(grad))
        return grads


# ---- attention ----------------------------------------------------------------------------------

class Mask:
    """Numbers of the members of struct ba_mask."""

    MEMBERS = tuple(name for name, kind in _Mask._fields_
                    if kind is _int and name not in ("n_random", "random_blocks", "row_words", "reserved"))

    def __init__(self, *rules):
        self.rules = rules

    def struct(self):
        return _Mask(size=ctypes.sizeof(_Mask), **dict(zip(Mask.MEMBERS, self.rules)))


def mask(**rules):
    """A mask by rules, which are the members of struct ba_mask: mask(block=64, back=1, memory=4)."""
    for name in rules:
        if name not in Mask.MEMBERS:
            raise Error(f"a mask has no {name}  -> use some of {', '.join(sorted(Mask.MEMBERS))}")
    it = Mask(*(rules.get(name, 0) for name in Mask.MEMBERS))
    it.struct()  # refuses what it cannot hold
    return it


def _mask_of_bits(seen, M):
    """A mask that shows what an array of bools [L, K] shows. Its rows are the positions of queries."""
    L, K = seen.shape
    words = (K + 63) // 64
    bits = np.zeros((M + L, words * 8), np.uint8)
    bits[M:, :(K + 7) // 8] = np.packbits(seen, axis=1, bitorder="little")
    return _Mask(size=ctypes.sizeof(_Mask), row_words=words, rows=_pointer(bits)), bits


class Attention(_Call):
    """Attention of arrays of numpy: `forward()`, then `backward(d_o)`. See `attention`."""

    _Kind, _needs, _rest = _Attention, "qkv", ("lse",)

    def __init__(self, q, k, v, *, causal=False, cross=False, scale=0, window=0, masks=None, mask_of_head=None,
                 base=0, future=0, u=None, w=None, rel_k=None, rel_v=None, rel_q=None, bias=None, add=None,
                 fade=None, soft_cap=0, gain=0, mix_logits=None, mix_probs=None, sink_k=None, sink_v=None,
                 sink_logit=None, steps=None, cu_seqlens=None, engine=None):
        self.engine = _engine(engine)
        _need_arrays(q=q, k=k, v=v, u=u, w=w, rel_k=rel_k, rel_v=rel_v, rel_q=rel_q, bias=bias, add=add, fade=fade,
                     mix_logits=mix_logits, mix_probs=mix_probs, sink_k=sink_k, sink_v=sink_v, sink_logit=sink_logit)
        q_at = _take_rows("q", q, (None,) * 4)
        B, L, H, dh = q.shape
        k_at = _take_rows("k", k, (B, None, None, dh))
        K, Hkv = k.shape[1:3]
        v_at = _take_rows("v", v, (B, K, Hkv, None))
        dv = v.shape[3]
        _need_some(K=K, Hkv=Hkv, dv=dv)
        if not cross and K < L:
            raise Error(f"{K} keys for {L} queries  -> give those of the memory and of the queries, or cross=True; "
                        "layout='bhld' if heads come before tokens")
        self.lse = np.empty((B, H, L), np.float32)
        self.o = np.empty((B, L, H, dv), np.float32)
        M = 0 if cross else K - L
        x = self._struct = _Attention(
            size=ctypes.sizeof(_Attention), B=B, H=H, L=L, M=M, dh=dh, Hkv=Hkv, K=K if cross else 0, dv=dv,
            causal=causal, scale=scale, soft_cap=soft_cap, gain=gain, base=base, q_at=q_at, k_at=k_at, v_at=v_at,
            o=_pointer(self.o), lse=_pointer(self.lse))
        self._kept = [_take_texts(x, cu_seqlens)]
        self._positions(x, window, masks, mask_of_head, steps)
        self._tables(x, future, rel_k, rel_v, rel_q, bias)
        sinks = next((s.shape[1] for s in (sink_k, sink_v, sink_logit) if s is not None and s.ndim > 1), None)
        x.sinks = sinks or 0
        given = {"q": q, "k": k, "v": v, "rel_k": rel_k, "rel_v": rel_v, "rel_q": rel_q, "bias": bias}
        shapes = {"u": (u, (H, dh)), "w": (w, (H, dh)),
                  "mix_logits": (mix_logits, (H, H)), "mix_probs": (mix_probs, (H, H)),
                  "sink_k": (sink_k, (H, sinks, dh)), "sink_v": (sink_v, (H, sinks, dv)),
                  "sink_logit": (sink_logit, (H, sinks))}
        given.update({name: _take(name, y, shape) for name, (y, shape) in shapes.items() if y is not None})
        if add is not None:
            ones = [n == 1 for n in add.shape[:-1]]
            given["add"] = _take("add", add, [1 if one else n for one, n in zip(ones, (B, H, L)[-len(ones):])] + [K])
            step = [0 if one else n // add.itemsize for one, n in zip(ones, add.strides)]
            x.add_batch, x.add_head, x.add_row = ([0] * 3 + step)[-3:]
        if fade is not None:
            given["fade"] = _take("fade", fade, (B, H, K), dtype=np.float64)
            x.fade_batch, x.fade_head = H * K, K
        self.operands = {name: array for name, array in given.items() if array is not None}
        for name, array in self.operands.items():
            setattr(x, name, _pointer(array))

    def _positions(self, x, window, masks, mask_of_head, steps):
        H, M, L, K = x.H, x.M, x.L, x.K or x.M + x.L
        if np.ndim(window):
            windows = _take_whole("window", window, np.int32)
            if windows.shape != (H,):
                raise Error(f"window has {windows.size} numbers  -> give one, or one of each of {H} heads")
            x.window_of_head = _pointer(windows)
            self._kept.append(windows)
        else:
            x.window = window
        if steps is not None:
            x.q_step, x.k_step, x.q_first = steps
        if isinstance(masks, np.ndarray):
            _take("masks", masks, (L, K), (H, L, K), dtype=bool)
            if steps is not None:
                raise Error("masks of bools with steps  -> use mask(...), which knows positions")
            made = [_mask_of_bits(seen, M) for seen in (masks[None] if masks.ndim == 2 else masks)]
            self._kept.append([bits for _, bits in made])
            mask_of_head = range(H) if len(made) > 1 else None
            masks = [m for m, _ in made]
        elif masks is not None:
            masks = [masks] if isinstance(masks, Mask) else masks
            if not all(isinstance(m, Mask) for m in masks):
                raise Error("masks has something else than masks  -> make each with mask(...)")
            masks = [m.struct() for m in masks]
        if masks:
            array = (_Mask * len(masks))(*masks)
            x.n_masks, x.masks = len(masks), ctypes.addressof(array)
            self._kept.append(array)
        if mask_of_head is not None:
            heads = _take_whole("mask_of_head", list(mask_of_head), np.uint8)
            if heads.shape != (H,):
                raise Error(f"mask_of_head does not name a mask for each of {H} heads  -> give {H} numbers")
            x.mask_of_head = _pointer(heads)
            self._kept.append(heads)

    @staticmethod
    def _tables(x, future, rel_k, rel_v, rel_q, bias):
        """R and Rf, from the rows that all tables have."""
        tables = {n: t for n, t in (("rel_k", rel_k), ("rel_v", rel_v), ("rel_q", rel_q)) if t is not None}
        rows = next((t.shape[-2] for t in tables.values() if t.ndim > 1), None)
        if rows is None:
            rows = bias.shape[-1] if bias is not None and bias.ndim else 0
        per_head = {t.ndim == 3 for t in tables.values()}
        for name, table in tables.items():
            _take(name, table, (rows, x.dh), (x.H, rows, x.dh))
        if len(per_head) > 1:
            raise Error("some tables are of all heads and some of each  -> give them all the same number")
        x.rel_head = rows * x.dh if per_head == {True} else 0
        if bias is not None:
            _take("bias", bias, (rows,), (x.H, rows))
            x.bias_head = rows if bias.ndim == 2 else 0
        future = _whole("future", future)
        if not 0 <= future <= max(rows - 1, 0):
            raise Error(f"future is {future} of {rows} rows  -> use rows of tables after that of distance 0")
        x.R, x.Rf = rows - future, future

    def resume(self, o, lse):
        """As after a forward that gave these."""
        self.o, self.lse = o, lse
        self._struct.o, self._struct.lse = _pointer(o), _pointer(lse)

    def forward(self):
        """o [B, L, H, dv]; `lse` then holds the log of the softmax's divisor."""
        _call("ba_attention_forward", self.engine._handle, ctypes.byref(self._struct))
        return self.o

    def backward(self, d_o, wanted=None):
        """Gradients by name: of q, k and v, and of the others that are `wanted` (None: of all)."""
        d = _AttentionGrad(ctypes.sizeof(_AttentionGrad), _pointer(_take("d_o", d_o, self.o.shape)))
        grads = self._gradients(d, wanted, ("q", "k", "v"))
        _call("ba_attention_backward", self.engine._handle, ctypes.byref(self._struct), ctypes.byref(d))
        return grads


# ---- recurrences --------------------------------------------------------------------------------

class Recurrence(_Call):
    """A linear recurrence of arrays of numpy: `forward()`, then `backward(d_o)`. See `recurrence`."""

    _Kind, _needs, _rest = _Recurrence, "qkv", ("s1", "z1", "m1")

    def __init__(self, q, k, v, *, g=None, beta=None, a=None, b=None, i=None, u=None, norm=None, eps=0, scale=0,
                 s0=None, z0=None, m0=None, cu_seqlens=None, engine=None):
        self.engine = _engine(engine)
        norms = (None, "sum", "mlstm")
        if norm not in norms:
            raise Error(f"norm is {norm!r}  -> use None, 'sum' or 'mlstm'")
        at = {"q": _take_rows("q", q, (None,) * 4)}
        B, L, H, dk = q.shape
        at["k"] = _take_rows("k", k, (B, None, None, dk))
        K, Hk = k.shape[1:3]
        at["v"] = _take_rows("v", v, (B, K, None, None))
        Hs, dv = v.shape[2:]
        _need_some(H=H, Hs=Hs, Hk=Hk)
        if Hs % Hk or max(H, Hs) % min(H, Hs):
            raise Error(f"{H} heads of q, {Hk} of k and {Hs} of v  -> those of k divide those of v, and q's either or both")
        per = {"q": max(1, Hs // H), "k": Hs // Hk}
        H = max(H, Hs)
        if K < L:
            raise Error(f"{K} keys for {L} queries  -> give at least as many")
        texts = B if cu_seqlens is None else max(1, np.size(cu_seqlens) - 1)
        heads, wide, state = (B, K, Hs), (B, K, Hs, dk), (texts, Hs)
        shapes = {"g": (g, heads, wide, heads + (1,)), "beta": (beta, heads), "a": (a, wide), "b": (b, wide),
                  "i": (i, heads), "u": (u, (H, dk)),
                  "s0": (s0, state + (dk, dv)), "z0": (z0, state + (dk,)), "m0": (m0, state)}
        self.operands = {"q": q, "k": k, "v": v}
        self.operands.update({n: _take(n, x, *s) for n, (x, *s) in shapes.items() if x is not None})
        self.o = np.empty((B, L, H, dv), np.float32)
        self.s1 = np.empty(state + (dk, dv), np.float32)
        self.den = np.empty((B, L, H), np.float32) if norm else None
        self.z1 = np.empty(state + (dk,), np.float32) if norm else None
        self.m1 = np.empty(state, np.float32) if i is not None else None
        width = 0 if g is None else 1 if g.ndim == 3 else g.shape[3]
        self._struct = _Recurrence(
            size=ctypes.sizeof(_Recurrence), B=B, L=L, M=K - L, H=H, Hs=Hs, dk=dk, dv=dv, g_width=width,
            scale=scale, eps=eps, norm=norms.index(norm), o=_pointer(self.o), den=_pointer(self.den),
            s1=_pointer(self.s1), z1=_pointer(self.z1), m1=_pointer(self.m1))
        self._kept = _take_texts(self._struct, cu_seqlens)
        for name, x in self.operands.items():
            rows = name in "q k v g beta a b i".split()
            strides = [math.prod(x.shape[n:]) for n in (1, 2, 3)]  # those of x say nothing of axes of length 1
            if name in at and at[name].row:
                strides[:2] = at[name].batch, at[name].row
            setattr(self._struct, name, _Rows(_pointer(x), *strides, per.get(name, 1)) if rows else _pointer(x))

    def resume(self, o, den):
        """As after a forward that gave these."""
        self.o, self.den = o, den
        self._struct.o, self._struct.den = _pointer(o), _pointer(den)

    def forward(self):
        """o [B, L, H, dv]; s1, z1 and m1 are then the state after the last key."""
        _call("ba_recurrence_forward", self.engine._handle, ctypes.byref(self._struct))
        return self.o

    def backward(self, d_o, d_s1=None, wanted=None):
        """Gradients by name of the operands that are `wanted` (None: of all but m0)."""
        d = _RecurrenceGrad(ctypes.sizeof(_RecurrenceGrad), _pointer(_take("d_o", d_o, self.o.shape)))
        if d_s1 is not None:
            d.d_s1 = _pointer(_take("d_s1", d_s1, self.s1.shape))
        names = [n for n in self.operands if n != "m0" and (wanted is None or n in wanted)]
        grads = self._gradients(d, names, ())
        _call("ba_recurrence_backward", self.engine._handle, ctypes.byref(self._struct), ctypes.byref(d))
        return grads


class Convolution(_Call):
    """A short causal convolution of arrays of numpy: `forward()`, then `backward(d_y)`. See `conv`."""

    _Kind, _needs, _rest = _Conv, "xw", ("s1",)

    def __init__(self, x, w, *, bias=None, s0=None, silu=False, cu_seqlens=None, engine=None):
        self.engine = _engine(engine)
        B, L, n = _take("x", x, (None,) * 3).shape
        taps = _take("w", w, (n, None)).shape[1]
        _need_some(n=n, taps=taps)
        texts = B if cu_seqlens is None else max(1, np.size(cu_seqlens) - 1)
        shapes = {"bias": (bias, (n,)), "s0": (s0, (texts, taps - 1, n))}
        self.operands = {"x": x, "w": w, **{name: _take(name, a, shape) for name, (a, shape) in shapes.items() if a is not None}}
        self.y, self.s1 = np.empty(x.shape, np.float32), np.empty((texts, taps - 1, n), np.float32)
        self._struct = _Conv(size=ctypes.sizeof(_Conv), B=B, L=L, n=n, taps=taps, silu=bool(silu), y=_pointer(self.y), s1=_pointer(self.s1),
                             **{name: _pointer(a) for name, a in self.operands.items()})
        self._kept = _take_texts(self._struct, cu_seqlens)

    def forward(self):
        """y [B, L, n]; s1 is then the state after the last row."""
        _call("ba_conv_forward", self.engine._handle, ctypes.byref(self._struct))
        return self.y

    def backward(self, d_y, d_s1=None, wanted=None):
        """Gradients by name: of x, and of the others that are `wanted` (None: of all)."""
        d = _ConvGrad(ctypes.sizeof(_ConvGrad), _pointer(_take("d_y", d_y, self.y.shape)))
        if d_s1 is not None:
            d.d_s1 = _pointer(_take("d_s1", d_s1, self.s1.shape))
        grads = self._gradients(d, wanted, ("x",))
        _call("ba_conv_backward", self.engine._handle, ctypes.byref(self._struct), ctypes.byref(d))
        return grads


# ---- functions, with gradients for tensors ------------------------------------------------------

def _torch():
    return sys.modules.get("torch")


def _is_tensor(x):
    return _torch() is not None and isinstance(x, _torch().Tensor)


# How others call an argument, and what there is in its place.
_INSTEAD = {
    "attn_mask": "masks=bools or add=numbers, or call sdpa", "is_causal": "causal=", "softmax_scale": "scale=",
    "softcap": "soft_cap=", "window_size": "window=", "alibi_slopes": "bias=-slope * distance",
    "enable_gqa": "leave it out: k may have fewer heads",
    "dropout_p": "no probability is dropped here: use 0, or dropout of the output",
    "attention_mask": "key_padding_mask=, of bools that say which keys are hidden",
    "cu_seqlens_": "cu_seqlens=, of queries and keys alike"}


def _run(kind, options, operands):
    """All outputs of a call: tensors if an operand is one."""
    for name in kind._needs:
        if operands[name] is None:
            raise Error(f"{name} is None  -> pass an array or a tensor")
    operands = {n: x for n, x in operands.items() if x is not None}
    if not any(_is_tensor(x) for x in operands.values()):
        kind.check_options(**options)
        call = kind(**operands, **options)
        return (call.forward(), *(getattr(call, name) for name in kind._rest))
    from benchattn import operators
    return operators.run(kind, options, operands)


def _hidden(padding, add, shape):
    """`add` that hides padded keys."""
    if add is not None:
        raise Error("key_padding_mask beside add  -> add -inf at padded keys to add")
    kind = getattr(padding, "dtype", None)
    if kind not in (bool, getattr(_torch(), "bool", bool)) or tuple(padding.shape) != shape:
        raise Error(f"key_padding_mask is not of bools {list(shape)}  -> True where a key is hidden")
    if _is_tensor(padding):
        return _torch().zeros(shape).masked_fill(padding, -math.inf)[:, None, None]
    return np.where(padding, np.float32(-math.inf), np.float32(0))[:, None, None]


def _turned(x):
    """Tokens and heads exchanged; no copy if that undoes an earlier exchange."""
    x = x.swapaxes(1, 2)
    return x if _is_tensor(x) else np.ascontiguousarray(x)


def _heads_apart(operands, options):
    """Can the key heads of tensors with heads first be taken as sequences, so that keys and values are read where they
    lie? If nothing tells heads apart, and a term of pairs is of one sequence, or of keys alone."""
    q, k, v, add = (operands.get(n) for n in ("q", "k", "v", "add"))
    plain = not (set(operands) - {"q", "k", "v", "add"} or set(options) - {
        "causal", "cross", "scale", "soft_cap", "gain", "window", "engine", "masks"}) and not (
            isinstance(options.get("window"), (list, tuple)) or options.get("masks") is not None)
    if not (plain and all(_is_tensor(x) for x in (q, k, v)) and k.shape[1] > 1 and k.shape[2] > 1
            and q.shape[0] == k.shape[0] and k.shape[:3] == v.shape[:3] and q.shape[1] % k.shape[1] == 0
            and k.is_contiguous() and v.is_contiguous()):
        return False
    return add is None or (add.ndim == 4 and add.shape[1] == 1 and (add.shape[0] == 1 or add.shape[2] == 1))


def _attend_apart(operands, options):
    q, k, v = (operands[n] for n in "qkv")
    (B, H, L, dh), (_, Hkv, K, _) = q.shape, k.shape
    add = operands.get("add")
    if add is not None and add.shape[0] > 1:
        add = add.repeat_interleave(Hkv, 0)
    o, lse = _run(Attention, options, {
        "q": q.reshape(B * Hkv, H // Hkv, L, dh).swapaxes(1, 2), "k": k.reshape(B * Hkv, K, 1, dh),
        "v": v.reshape(B * Hkv, K, 1, v.shape[3]), "add": add})
    return o.swapaxes(1, 2).reshape(B, H, L, -1), lse.reshape(B, H, L)


def attention(q, k, v, *, u=None, w=None, rel_k=None, rel_v=None, rel_q=None, bias=None, add=None, fade=None,
              mix_logits=None, mix_probs=None, sink_k=None, sink_v=None, sink_logit=None, masks=None,
              key_padding_mask=None, cu_seqlens=None, return_lse=False, layout="blhd", **options):
    """o [B, L, H, dv] of q [B, L, H, dh], k [B, K, Hkv, dh], v [B, K, Hkv, dv].

    The keys are those of a memory, if there are more than queries, and then those of the queries; with
    cross=True they are of another text. With layout="bhld" heads come before tokens in q, k, v and o; keys and values
    are then copied only where they neither lie with tokens first nor can be read head by head. Tensors of bfloat16 and float16 are converted to float32, within autocast too; o then has the type of q.

    causal, scale, soft_cap, gain   as in benchattn.h; 0 is the default
    window                          keys that a query sees, or one number of each head
    masks                           bools [L, K] or [H, L, K]; or mask(...), or a list of them, with mask_of_head
    bias                            [rows] or [H, rows] by distance, farthest past first; the last row is
                                    distance 0, or `future` rows before the last are
    rel_k, rel_v, rel_q             [rows, dh] or [H, rows, dh] likewise
    u, w                            [H, dh] added to queries that meet keys, and rows of rel_k
    add                             [B, H, L, K]; leading axes may be 1 or absent
    key_padding_mask                bools [B, K], True where a key is hidden
    cu_seqlens                      [texts + 1] whole numbers from 0 to L: B is 1, and tokens cu_seqlens[n] to
                                    cu_seqlens[n+1] - 1 are a text of their own
    fade                            [B, H, K] of float64, running sums of log decays
    mix_logits, mix_probs           [H, H] new head, old head
    sink_k, sink_v, sink_logit      [H, n, dh], [H, n, dv], [H, n]
    steps                           (q_step, k_step, q_first) of pooled queries and keys
    return_lse                      (o, lse), the second without a gradient
    engine                          an Engine; by default one with all CPUs that are allowed
    """
    operands = {"q": q, "k": k, "v": v, "u": u, "w": w, "rel_k": rel_k, "rel_v": rel_v, "rel_q": rel_q,
                "bias": bias, "add": add, "fade": fade, "mix_logits": mix_logits, "mix_probs": mix_probs,
                "sink_k": sink_k, "sink_v": sink_v, "sink_logit": sink_logit}
    if layout not in ("blhd", "bhld"):
        raise Error(f"layout is {layout!r}  -> use 'blhd' or 'bhld'")
    for name in "qkv":
        axes = getattr(operands[name], "ndim", None)
        if axes is None:
            raise Error(f"{name} is a {type(operands[name]).__name__}  -> pass an array or a tensor")
        if axes != 4:
            raise Error(f"{name} has {axes} axes  -> give it those of {layout!r}; [None] adds one of length 1")
    tokens = 1 if layout == "blhd" else 2
    if key_padding_mask is not None:
        operands["add"] = _hidden(key_padding_mask, add, (q.shape[0], k.shape[tokens]))
    given = {"masks": masks, "cu_seqlens": cu_seqlens}
    options.update((name, x) for name, x in given.items() if x is not None)
    if return_lse and cu_seqlens is not None:
        raise Error("return_lse with cu_seqlens  -> leave one out")
    if layout == "bhld" and _heads_apart({n: x for n, x in operands.items() if x is not None}, options):
        o, lse = _attend_apart(operands, options)
    else:
        if layout == "bhld":
            operands.update({name: _turned(operands[name]) for name in "qkv" if hasattr(operands[name], "swapaxes")})
        o, lse = _run(Attention, options, operands)
        o = o.swapaxes(1, 2) if layout == "bhld" else o
    return (o, lse) if return_lse else o


def sdpa(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False, *,
         engine=None):
    """What torch.nn.functional.scaled_dot_product_attention computes, by its arguments and in its layout: query
    [B, H, L, E], key [B, Hkv, S, E], value [B, Hkv, S, Ev], or [B, L, E] and [L, E] for one head. attn_mask is of
    bools (True: is seen) or of numbers that are added, and broadcasts to [B, H, L, S]. With is_causal the first query
    sees the first key, as there. Arrays of numpy are taken, too. Dropout is refused."""
    given = {"query": query, "key": key, "value": value}
    for name, x in given.items():
        if not 2 <= getattr(x, "ndim", 0) == getattr(query, "ndim", 0) <= 4:
            raise Error(f"{name} has the shape {list(np.shape(x))}  -> give all [B, H, L, E], [B, L, E] or [L, E]")
    if dropout_p:
        raise Error(f"dropout_p is {dropout_p}  -> {_INSTEAD['dropout_p']}")
    if scale is not None and not scale:
        raise Error(f"scale is {scale}  -> use None for the default, or another number")
    lead = {2: (None, None), 3: (slice(None), None), 4: ()}[query.ndim]
    q, k, v = (x[lead] for x in given.values())
    (B, H, L, E), (_, Hkv, S, _) = q.shape, k.shape
    if k.shape != (B, Hkv, S, E) or v.shape[:3] != k.shape[:3]:
        raise Error(f"key has the shape {list(key.shape)} and value {list(value.shape)} beside a query of "
                    f"{list(query.shape)}  -> give [B, Hkv, S, E] and [B, Hkv, S, Ev]")
    if H != Hkv and not enable_gqa:
        raise Error(f"query has {H} heads, key {Hkv}  -> enable_gqa=True")
    options = {"causal": is_causal, "cross": not is_causal}
    if attn_mask is not None:
        if is_causal:
            raise Error("attn_mask with is_causal  -> give one of them, the mask with what is causal in it")
        options["add"] = _added(attn_mask, query.ndim, (B, H, L, S))
    elif is_causal and L != S:  # of keys that are more than queries the last would be the first query's
        options = {"cross": True, "masks": np.tri(L, S, dtype=bool)}
    o = attention(q, k, v, layout="bhld", scale=scale or 0, engine=engine, **options)
    return o.reshape(query.shape[:-1] + v.shape[3:])


def _added(mask, axes, shape):
    """attn_mask of operands with so many axes as `add`."""
    shaped = mask[:, None] if axes == mask.ndim == 3 else mask
    fits = all(n in (1, m) for n, m in zip(shaped.shape[::-1], shape[::-1]))
    if not 2 <= mask.ndim <= axes or not fits:
        raise Error(f"attn_mask has the shape {list(mask.shape)}  -> give what broadcasts to {list(shape)}")
    if _is_tensor(mask):
        torch = _torch()
        if mask.dtype == torch.bool:
            shaped = torch.zeros(shaped.shape).masked_fill_(~shaped, -math.inf)
        return shaped.expand(*shaped.shape[:-1], shape[3]).contiguous()
    if mask.dtype == bool:
        shaped = np.where(shaped, np.float32(0), np.float32(-math.inf))
    return np.ascontiguousarray(np.broadcast_to(shaped, shaped.shape[:-1] + shape[3:]))


def recurrence(q, k, v, *, g=None, beta=None, a=None, b=None, i=None, u=None, s0=None, z0=None, m0=None,
               return_state=False, cu_seqlens=None, **options):
    """o [B, L, H, dv] of q [B, L, H, dk], k [B, K, Hs, dk], v [B, K, Hs, dv]; q and k may have fewer heads, which
    neighbouring heads share.

    g                 [B, K, Hs] or [B, K, Hs, dk] log decays, at most 0
    beta              [B, K, Hs] delta rule
    a, b              [B, K, Hs, dk] rank one of the state's change
    i                 [B, K, Hs] log write gate
    u                 [H, dk] bonus of the current key
    norm, eps, scale  None, "sum" or "mlstm"; added to the sum; of q (0: 1)
    s0, z0, m0        state before the first key: [B, Hs, dk, dv], [B, Hs, dk], [B, Hs]
    cu_seqlens        as of `attention`; there is a state for each text, in place of each sequence
    return_state      (o, s1, ...): the state after the last key; it has a gradient where there is no norm
    """
    operands = {"q": q, "k": k, "v": v, "g": g, "beta": beta, "a": a, "b": b, "i": i, "u": u, "s0": s0,
                "z0": z0, "m0": m0}
    if cu_seqlens is not None:
        options["cu_seqlens"] = cu_seqlens
    out = _run(Recurrence, options, operands)
    return tuple(x for x in out if x is not None) if return_state else out[0]


def conv(x, w, *, bias=None, s0=None, return_state=False, **options):
    """y [B, L, n] of x [B, L, n] and w [n, taps]: y_t = sum_s w[:, s] x_{t-taps+1+s}, each channel alone.

    bias          [n]
    silu          True: y sigmoid(y) of that
    s0            [B, taps-1, n] rows before the first, as return_state gives them; 0 without
    cu_seqlens    as of `attention`; there is a state for each text
    return_state  (y, s1): the last taps-1 rows, those before included
    """
    out = _run(Convolution, options, {"x": x, "w": w, "bias": bias, "s0": s0})
    return out if return_state else out[0]
