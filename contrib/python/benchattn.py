# SPDX-License-Identifier: MIT
"""Attention and linear recurrences of libbenchattn, forward and backward, for numpy and PyTorch.

    import benchattn
    o = benchattn.attention(q, k, v, causal=True, bias=bias, soft_cap=30)
    o = benchattn.recurrence(q, k, v, g=log_decay, beta=beta)

    o = benchattn.sdpa(q, k, v, is_causal=True)     # PyTorch's layout and arguments

Given tensors of PyTorch the functions have gradients; given arrays of numpy they compute forward,
and Attention and Recurrence, which the functions are made of, have `backward`. Arrays are of float32,
contiguous and never copied; tensors of bfloat16 and float16 are converted. Needs numpy; PyTorch only for tensors.
docs/library.md has the whole story, benchattn.h the equations.
"""
import ctypes
import math
import operator
import os
import sys

import numpy as np

__version__ = "0.3.0"


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
        kind = dict(self._fields_)[name]
        if kind is _float:
            x = _real(name, x)
        elif kind in (_int, _long, ctypes.c_int64):
            x = _whole(name, x, 8 * ctypes.sizeof(kind))
        super().__setattr__(name, x)


def _struct(name, *fields):
    """A struct of benchattn.h: `fields` are a type and the members that have it, in order."""
    members = [(member, kind) for kind, names in fields for member in names.split()]
    return type(name, (_Struct,), {"_fields_": members})


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
    (_int, "no_content reserved"))
_AttentionGrad = _struct(
    "ba_attention_grad", (_size, "size"),
    (_at, "d_o d_scores_out d_q d_k d_v d_u d_w d_rel_k d_rel_v d_rel_q d_bias d_add d_fade "
          "d_mix_logits d_mix_probs d_sink_k d_sink_v d_sink_logit"))
_Recurrence = _struct(
    "ba_recurrence", (_size, "size"), (_int, "B L M H Hs dk dv g_width"), (_float, "scale eps"),
    (_int, "norm reserved"), (_Rows, "q k v g beta a b i"), (_at, "u s0 z0 m0 s1 z1 m1 o den"))
_RecurrenceGrad = _struct("ba_recurrence_grad", (_size, "size"),
                          (_at, "d_o d_s1 d_q d_k d_v d_g d_beta d_a d_b d_u d_i d_s0 d_z0"))


def _load():
    """$BENCHATTN, else what was installed or built with this file, else what the system finds."""
    here = os.path.dirname(os.path.realpath(__file__))
    near = [os.path.join(here, "..", "..", folder, "libbenchattn.so.1") for folder in ("lib", "build/release")]
    given = os.environ.get("BENCHATTN")
    path = given or next((p for p in near if os.path.exists(p)), "libbenchattn.so.1")
    try:
        lib = ctypes.CDLL(path)
    except OSError as e:
        raise ImportError(f"{e}  -> make install, or set BENCHATTN to libbenchattn.so.1") from None
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

    def __init__(self, backend=None, threads=None):
        self._handle = _at()
        if threads is None:
            threads = int(os.environ.get("OMP_NUM_THREADS") or len(os.sched_getaffinity(0)))
        name = None if backend is None else ctypes.create_string_buffer(backend.encode())
        options = _Options(ctypes.sizeof(_Options), name and ctypes.addressof(name), threads)
        _call("ba_engine_open", ctypes.byref(self._handle), ctypes.byref(options))

    backend = property(lambda self: _lib.ba_engine_backend(self._handle).decode())

    def __del__(self, close=_lib.ba_engine_close):  # at exit the module's own names may be gone
        if self._handle:
            close(self._handle)


_usual = None


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


class _Call:
    """What Attention and Recurrence share: operands by name, and their gradients."""

    def _gradients(self, d, wanted, must):
        """Zeroed gradients of the operands that are wanted, entered into the struct d."""
        names = [n for n in self.operands if n in must or wanted is None or n in wanted]
        grads = {n: np.zeros_like(self.operands[n]) for n in names}
        for name, grad in grads.items():
            setattr(d, "d_" + name, _pointer(grad))
        return grads


# ---- attention ----------------------------------------------------------------------------------

def mask(**rules):
    """A mask by rules, which are the members of struct ba_mask: mask(block=64, back=1, memory=4)."""
    members = {name for name, kind in _Mask._fields_ if kind is _int} - {"n_random", "random_blocks", "row_words", "reserved"}
    for name in rules:
        if name not in members:
            raise Error(f"a mask has no {name}  -> use some of {', '.join(sorted(members))}")
    return _Mask(size=ctypes.sizeof(_Mask), **rules)


def _mask_of_bits(seen, M):
    """A mask that shows what an array of bools [L, K] shows. Its rows are the positions of queries."""
    L, K = seen.shape
    words = (K + 63) // 64
    bits = np.zeros((M + L, words * 8), np.uint8)
    bits[M:, :(K + 7) // 8] = np.packbits(seen, axis=1, bitorder="little")
    return _Mask(size=ctypes.sizeof(_Mask), row_words=words, rows=_pointer(bits)), bits


class Attention(_Call):
    """Attention of arrays of numpy: `forward()`, then `backward(d_o)`. See `attention`."""

    def __init__(self, q, k, v, *, causal=False, cross=False, scale=0, window=0, masks=None, mask_of_head=None,
                 base=0, future=0, u=None, w=None, rel_k=None, rel_v=None, rel_q=None, bias=None, add=None,
                 fade=None, soft_cap=0, gain=0, mix_logits=None, mix_probs=None, sink_k=None, sink_v=None,
                 sink_logit=None, steps=None, engine=None):
        self.engine = _engine(engine)
        _need_arrays(q=q, k=k, v=v, u=u, w=w, rel_k=rel_k, rel_v=rel_v, rel_q=rel_q, bias=bias, add=add, fade=fade,
                     mix_logits=mix_logits, mix_probs=mix_probs, sink_k=sink_k, sink_v=sink_v, sink_logit=sink_logit)
        B, L, H, dh = _take("q", q, (None,) * 4).shape
        _, K, Hkv, _ = _take("k", k, (B, None, None, dh)).shape
        dv = _take("v", v, (B, K, Hkv, None)).shape[3]
        _need_some(K=K, Hkv=Hkv, dv=dv)
        if not cross and K < L:
            raise Error(f"{K} keys for {L} queries  -> give those of the memory and of the queries, or cross=True; "
                        "layout='bhld' if heads come before tokens")
        self.lse = np.empty((B, H, L), np.float32)
        self.o = np.empty((B, L, H, dv), np.float32)
        M = 0 if cross else K - L
        x = self._struct = _Attention(
            size=ctypes.sizeof(_Attention), B=B, H=H, L=L, M=M, dh=dh, Hkv=Hkv, K=K if cross else 0, dv=dv,
            causal=causal, scale=scale, soft_cap=soft_cap, gain=gain, base=base,
            o=_pointer(self.o), lse=_pointer(self.lse))
        self._kept = []
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
            if np.shape(steps) != (3,):
                raise Error(f"steps is {steps!r}  -> give (q_step, k_step, q_first)")
            x.q_step, x.k_step, x.q_first = steps
        if isinstance(masks, np.ndarray):
            _take("masks", masks, (L, K), (H, L, K), dtype=bool)
            if steps is not None:
                raise Error("masks of bools with steps  -> use mask(...), which knows positions")
            made = [_mask_of_bits(seen, M) for seen in masks.reshape(-1, L, K)]
            self._kept.append([bits for _, bits in made])
            mask_of_head = range(H) if len(made) > 1 else None
            masks = [m for m, _ in made]
        elif isinstance(masks, _Mask):
            masks = [masks]
        if masks:
            if not all(isinstance(m, _Mask) for m in masks):
                raise Error("masks has something else than masks  -> make each with mask(...)")
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

    def __init__(self, q, k, v, *, g=None, beta=None, a=None, b=None, i=None, u=None, norm=None, eps=0, scale=0,
                 s0=None, z0=None, m0=None, engine=None):
        self.engine = _engine(engine)
        norms = (None, "sum", "mlstm")
        if norm not in norms:
            raise Error(f"norm is {norm!r}  -> use None, 'sum' or 'mlstm'")
        B, L, H, dk = _take("q", q, (None,) * 4).shape
        _, K, Hs, _ = _take("k", k, (B, None, None, dk)).shape
        dv = _take("v", v, (B, K, Hs, None)).shape[3]
        _need_some(Hs=Hs)
        if K < L:
            raise Error(f"{K} keys for {L} queries  -> give at least as many")
        heads, wide, state = (B, K, Hs), (B, K, Hs, dk), (B, Hs)
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
        for name, x in self.operands.items():
            rows = name in "q k v g beta a b i".split()
            at = (_pointer(x), *(math.prod(x.shape[n:]) for n in (1, 2, 3))) # strides say nothing of axes of length 1
            setattr(self._struct, name, _Rows(*at) if rows else at[0])

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


# ---- functions, with gradients for tensors ------------------------------------------------------

def _array(name, x):
    """The memory of a tensor as an array."""
    if not _is_tensor(x):
        return x
    if x.device.type != "cpu" or x.layout is not _torch().strided:
        raise Error(f"{name} is not a dense tensor in the CPU's memory  -> move it there with .cpu()")
    if x.is_conj() or x.is_neg():
        raise Error(f"{name} is a view that is not resolved  -> pass a contiguous copy")
    if not x.is_contiguous():
        raise Error(f"{name} is not contiguous  -> call .contiguous()")
    if x.dtype not in (_torch().float32, _torch().float64, _torch().bool):
        raise Error(f"{name} is of {x.dtype}  -> convert it to float32")
    return x.detach().numpy()


def _torch():
    return sys.modules.get("torch")


def _is_tensor(x):
    return _torch() is not None and isinstance(x, _torch().Tensor)


def _function():
    """The autograd function of both, made when the first tensor comes."""
    torch = _torch()

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx, kind, names, options, *tensors):
            call = kind(**{n: _array(n, t) for n, t in zip(names, tensors)}, **options)
            outputs = [torch.from_numpy(call.forward())]
            rest = [call.lse] if kind is Attention else [call.s1, call.z1, call.m1]
            outputs += [torch.from_numpy(x) for x in rest if x is not None]
            ctx.kind, ctx.names, ctx.options = kind, names, options
            # A state that outputs are divided by has no gradient of its own.
            ctx.state = kind is Recurrence and call.z1 is None
            ctx.mark_non_differentiable(*outputs[2 if ctx.state else 1:])
            ctx.save_for_backward(*tensors, *outputs)
            ctx.den = getattr(call, "den", None)
            return tuple(outputs)

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, d_o, *d_rest):
            tensors = ctx.saved_tensors[:len(ctx.names)]
            outputs = [_array("o", t) for t in ctx.saved_tensors[len(ctx.names):]]
            call = ctx.kind(**{n: _array(n, t) for n, t in zip(ctx.names, tensors)}, **ctx.options)
            wanted = [n for n, yes in zip(ctx.names, ctx.needs_input_grad[3:]) if yes]
            if "m0" in wanted:
                raise Error("m0 has no gradient  -> pass m0.detach()")
            call.o = outputs[0]
            call._struct.o = _pointer(call.o)
            d_o = _array("d_o", d_o.contiguous())
            if ctx.kind is Attention:
                call.lse = outputs[1]
                call._struct.lse = _pointer(call.lse)
                grads = call.backward(d_o, wanted)
            else:
                call.den = ctx.den
                call._struct.den = _pointer(call.den)
                d_s1 = _array("d_s1", d_rest[0].contiguous()) if ctx.state else None
                grads = call.backward(d_o, d_s1, wanted)
            return (None, None, None) + tuple(
                torch.from_numpy(grads[n]) if n in wanted else None for n in ctx.names)

    return Function


_apply = None

# How others call an argument, and what there is in its place.
_INSTEAD = {
    "attn_mask": "masks=bools or add=numbers, or call sdpa", "is_causal": "causal=", "softmax_scale": "scale=",
    "softcap": "soft_cap=", "window_size": "window=", "alibi_slopes": "bias=-slope * distance",
    "enable_gqa": "leave it out: k may have fewer heads",
    "dropout_p": "no probability is dropped here: use 0, or dropout of the output",
    "key_padding_mask": "add=[B, 1, 1, K], 0 or -inf", "cu_seqlens": "a call for each sequence"}


def _run(kind, options, operands):
    """All outputs of a call: tensors if an operand is one."""
    global _apply
    known = kind.__init__.__kwdefaults__
    for name in options:
        if name not in known:
            instead = next((_INSTEAD[n] for n in _INSTEAD if name.startswith(n)), "use some of " + ", ".join(known))
            raise Error(f"{name} is not an argument  -> {instead}")
    operands = {n: x for n, x in operands.items() if x is not None}
    if not any(_is_tensor(x) for x in operands.values()):
        call = kind(**operands, **options)
        o = call.forward()
        return (o, call.lse) if kind is Attention else (o, call.s1, call.z1, call.m1)
    for name, x in operands.items():
        if not _is_tensor(x):
            raise Error(f"{name} is a {type(x).__name__} beside tensors  -> pass a tensor")
        if _is_wrapped(x):
            raise Error(f"{name} is inside vmap or torch.func  -> call outside of them; the first axis is the batch")
    _apply = _apply or _function().apply
    halves, dtype = (_torch().bfloat16, _torch().float16), operands["q"].dtype
    tensors = [x.float() if x.dtype in halves else x for x in operands.values()]
    o, *rest = _apply(kind, tuple(operands), options, *tensors)
    return (o.to(dtype) if dtype in halves else o, *rest)


def _is_wrapped(x):
    functorch = getattr(_torch()._C, "_functorch", None)
    return functorch is not None and functorch.is_functorch_wrapped_tensor(x)


def _turned(x):
    """Tokens and heads exchanged; no copy if that undoes an earlier exchange."""
    x = x.swapaxes(1, 2)
    return x.contiguous() if _is_tensor(x) else np.ascontiguousarray(x)


def attention(q, k, v, *, u=None, w=None, rel_k=None, rel_v=None, rel_q=None, bias=None, add=None, fade=None,
              mix_logits=None, mix_probs=None, sink_k=None, sink_v=None, sink_logit=None, masks=None,
              return_lse=False, layout="blhd", **options):
    """o [B, L, H, dv] of q [B, L, H, dh], k [B, K, Hkv, dh], v [B, K, Hkv, dv].

    The keys are those of a memory, if there are more than queries, and then those of the queries; with
    cross=True they are of another text. With layout="bhld" heads come before tokens in q, k, v and o. Tensors
    of bfloat16 and float16 are converted to float32, within autocast too; o then has the type of q.

    causal, scale, soft_cap, gain   as in benchattn.h; 0 is the default
    window                          keys that a query sees, or one number of each head
    masks                           bools [L, K] or [H, L, K]; or mask(...), or a list of them, with mask_of_head
    bias                            [rows] or [H, rows] by distance, farthest past first; the last row is
                                    distance 0, or `future` rows before the last are
    rel_k, rel_v, rel_q             [rows, dh] or [H, rows, dh] likewise
    u, w                            [H, dh] added to queries that meet keys, and rows of rel_k
    add                             [B, H, L, K]; leading axes may be 1 or absent
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
        axes = getattr(operands[name], "ndim", 4)
        if axes != 4:
            raise Error(f"{name} has {axes} axes  -> give it those of {layout!r}; [None] adds one of length 1")
    if layout == "bhld":
        operands.update({name: _turned(operands[name]) for name in "qkv" if hasattr(operands[name], "swapaxes")})
    o, lse = _run(Attention, {"masks": _array("masks", masks), **options}, operands)[:2]
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
               return_state=False, **options):
    """o [B, L, H, dv] of q [B, L, H, dk], k [B, K, Hs, dk], v [B, K, Hs, dv].

    g                 [B, K, Hs] or [B, K, Hs, dk] log decays, at most 0
    beta              [B, K, Hs] delta rule
    a, b              [B, K, Hs, dk] rank one of the state's change
    i                 [B, K, Hs] log write gate
    u                 [H, dk] bonus of the current key
    norm, eps, scale  None, "sum" or "mlstm"; added to the sum; of q (0: 1)
    s0, z0, m0        state before the first key: [B, Hs, dk, dv], [B, Hs, dk], [B, Hs]
    return_state      (o, s1, ...): the state after the last key; it has a gradient where there is no norm
    """
    operands = {"q": q, "k": k, "v": v, "g": g, "beta": beta, "a": a, "b": b, "i": i, "u": u, "s0": s0,
                "z0": z0, "m0": m0}
    out = _run(Recurrence, options, operands)
    return tuple(x for x in out if x is not None) if return_state else out[0]
