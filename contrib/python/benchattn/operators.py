# SPDX-License-Identifier: MIT
"""The calls as operators of PyTorch, torch.ops.benchattn: with gradients, and with shapes alone, so that
torch.compile keeps its graph and torch.export writes it down. Operands are float32 in the CPU's memory; what is not
laid out as the kernels read it is copied."""
from typing import List, Optional, Tuple

import numpy as np
import torch
from torch import Tensor

import benchattn
from benchattn import Error

if not hasattr(torch.library, "custom_op"):
    raise ImportError(f"PyTorch {torch.__version__} has no torch.library.custom_op  -> install 2.4 or later")

_HALVES = (torch.bfloat16, torch.float16)
_MAYBE = Optional[Tensor]


def _array(x):
    """The memory of a tensor as an array."""
    return None if x is None else x.detach().contiguous().numpy()


def _arrays(operands):
    """Those of q, k and v are read where they lie if their rows of heads lie as a whole."""
    return {n: x.detach().numpy() if n in "qkv" and x.dim() == 4 and benchattn._row_strides(x.shape, x.stride()) else _array(x)
            for n, x in operands.items() if x is not None}


def _tensor(x):
    """Of an array or nothing: operators return no None."""
    return torch.empty(0) if x is None else torch.from_numpy(x)


# ---- attention ----------------------------------------------------------------------------------

_ATTENTION = ("q k v u w rel_k rel_v rel_q bias add fade mix_logits mix_probs sink_k sink_v sink_logit").split()


def _attention(tensors, masks, rules, of_head, cu_seqlens, causal, cross, window, steps, numbers, whole, engine):
    scale, soft_cap, gain = numbers
    base, future = whole
    n = len(benchattn.Mask.MEMBERS)
    made = [benchattn.Mask(*rules[at:at + n]) for at in range(0, len(rules), n)]
    return benchattn.Attention(
        **_arrays(dict(zip(_ATTENTION, tensors))), masks=made or _array(masks), mask_of_head=of_head or None,
        cu_seqlens=_array(cu_seqlens), causal=causal, cross=cross, scale=scale, soft_cap=soft_cap, gain=gain,
        window=window if len(window) > 1 else window[0], base=base, future=future, steps=steps or None,
        engine=benchattn._engines.get(engine))


@torch.library.custom_op("benchattn::attention", mutates_args=())
def attention(q: Tensor, k: Tensor, v: Tensor, u: _MAYBE, w: _MAYBE, rel_k: _MAYBE, rel_v: _MAYBE, rel_q: _MAYBE,
              bias: _MAYBE, add: _MAYBE, fade: _MAYBE, mix_logits: _MAYBE, mix_probs: _MAYBE, sink_k: _MAYBE,
              sink_v: _MAYBE, sink_logit: _MAYBE, masks: _MAYBE, rules: List[int], of_head: List[int],
              cu_seqlens: _MAYBE, causal: bool, cross: bool, window: List[int], steps: List[int],
              numbers: List[float], whole: List[int], engine: int) -> Tuple[Tensor, Tensor]:
    call = _attention((q, k, v, u, w, rel_k, rel_v, rel_q, bias, add, fade, mix_logits, mix_probs, sink_k, sink_v,
                       sink_logit), masks, rules, of_head, cu_seqlens, causal, cross, window, steps, numbers, whole, engine)
    return torch.from_numpy(call.forward()), torch.from_numpy(call.lse)


@attention.register_fake
def _(q, k, v, *_rest):
    B, L, H, _dh = q.shape
    return q.new_empty(B, L, H, v.shape[3]), q.new_empty(B, H, L)


@torch.library.custom_op("benchattn::attention_backward", mutates_args=())
def attention_backward(
        d_o: Tensor, o: Tensor, lse: Tensor, wanted: List[bool], q: Tensor, k: Tensor, v: Tensor, u: _MAYBE, w: _MAYBE,
        rel_k: _MAYBE, rel_v: _MAYBE, rel_q: _MAYBE, bias: _MAYBE, add: _MAYBE, fade: _MAYBE, mix_logits: _MAYBE,
        mix_probs: _MAYBE, sink_k: _MAYBE, sink_v: _MAYBE, sink_logit: _MAYBE, masks: _MAYBE, rules: List[int],
        of_head: List[int], cu_seqlens: _MAYBE, causal: bool, cross: bool, window: List[int], steps: List[int],
        numbers: List[float], whole: List[int], engine: int) -> List[Tensor]:
    call = _attention((q, k, v, u, w, rel_k, rel_v, rel_q, bias, add, fade, mix_logits, mix_probs, sink_k, sink_v,
                       sink_logit), masks, rules, of_head, cu_seqlens, causal, cross, window, steps, numbers, whole, engine)
    call.resume(_array(o), _array(lse))
    names = [n for n, yes in zip(_ATTENTION, wanted) if yes]
    grads = call.backward(_array(d_o), names)
    return [torch.from_numpy(np.ascontiguousarray(grads[n])) for n in names]


@attention_backward.register_fake
def _(d_o, o, lse, wanted, *operands):
    return [x.new_empty(x.shape) for x, yes in zip(operands, wanted) if yes]


def _given_back(wanted, grads, n):
    """A gradient for each of n arguments, of which the first were wanted or not."""
    left = iter(grads)
    return tuple(next(left) if yes else None for yes in wanted) + (None,) * (n - len(wanted))


def _setup(ctx, inputs, output, n):
    ctx.rest = [None if isinstance(x, Tensor) else x for x in inputs]
    ctx.tensors = [i for i, x in enumerate(inputs) if isinstance(x, Tensor)]
    ctx.wanted = [isinstance(x, Tensor) and x.requires_grad for x in inputs[:n]]
    ctx.save_for_backward(*(inputs[i] for i in ctx.tensors), *output)


def _saved(ctx):
    inputs, n = list(ctx.rest), len(ctx.tensors)
    for i, x in zip(ctx.tensors, ctx.saved_tensors):
        inputs[i] = x
    return inputs, ctx.saved_tensors[n:]


def _attention_setup(ctx, inputs, output):
    _setup(ctx, inputs, output, len(_ATTENTION))


def _attention_grads(ctx, *grads):
    inputs, (o, lse) = _saved(ctx)
    d_o = torch.zeros_like(o) if grads[0] is None else grads[0]
    return _given_back(ctx.wanted, attention_backward(d_o, o, lse, ctx.wanted, *inputs), len(inputs))


attention.register_autograd(_attention_grads, setup_context=_attention_setup)

# ---- recurrences --------------------------------------------------------------------------------

_RECURRENCE = "q k v g beta a b i u s0 z0 m0".split()


def _recurrence(tensors, cu_seqlens, norm, numbers, engine):
    eps, scale = numbers
    return benchattn.Recurrence(**_arrays(dict(zip(_RECURRENCE, tensors))), cu_seqlens=_array(cu_seqlens),
                                norm=norm or None, eps=eps, scale=scale, engine=benchattn._engines.get(engine))


@torch.library.custom_op("benchattn::recurrence", mutates_args=())
def recurrence(q: Tensor, k: Tensor, v: Tensor, g: _MAYBE, beta: _MAYBE, a: _MAYBE, b: _MAYBE, i: _MAYBE, u: _MAYBE,
               s0: _MAYBE, z0: _MAYBE, m0: _MAYBE, cu_seqlens: _MAYBE, norm: str, numbers: List[float],
               engine: int) -> Tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    call = _recurrence((q, k, v, g, beta, a, b, i, u, s0, z0, m0), cu_seqlens, norm, numbers, engine)
    call.forward()
    return tuple(_tensor(x) for x in (call.o, call.s1, call.z1, call.m1, call.den))


@recurrence.register_fake
def _(q, k, v, g, beta, a, b, i, u, s0, z0, m0, cu_seqlens, norm, numbers, engine):
    B, L, H, dk = q.shape
    Hs, dv = v.shape[2:]
    H = max(H, Hs)
    texts = B if cu_seqlens is None else cu_seqlens.shape[0] - 1
    none = q.new_empty(0)
    return (q.new_empty(B, L, H, dv), q.new_empty(texts, Hs, dk, dv), q.new_empty(texts, Hs, dk) if norm else none.clone(),
            none.clone() if i is None else q.new_empty(texts, Hs), q.new_empty(B, L, H) if norm else none.clone())


@torch.library.custom_op("benchattn::recurrence_backward", mutates_args=())
def recurrence_backward(
        d_o: Tensor, d_s1: _MAYBE, o: Tensor, den: Tensor, wanted: List[bool], q: Tensor, k: Tensor, v: Tensor, g: _MAYBE,
        beta: _MAYBE, a: _MAYBE, b: _MAYBE, i: _MAYBE, u: _MAYBE, s0: _MAYBE, z0: _MAYBE, m0: _MAYBE, cu_seqlens: _MAYBE,
        norm: str, numbers: List[float], engine: int) -> List[Tensor]:
    call = _recurrence((q, k, v, g, beta, a, b, i, u, s0, z0, m0), cu_seqlens, norm, numbers, engine)
    call.resume(_array(o), _array(den) if norm else None)
    names = [n for n, yes in zip(_RECURRENCE, wanted) if yes]
    grads = call.backward(_array(d_o), _array(d_s1), names)
    return [torch.from_numpy(np.ascontiguousarray(grads[n])) for n in names]


@recurrence_backward.register_fake
def _(d_o, d_s1, o, den, wanted, *operands):
    return [x.new_empty(x.shape) for x, yes in zip(operands, wanted) if yes]


def _recurrence_setup(ctx, inputs, output):
    _setup(ctx, inputs, (output[0], output[4]), len(_RECURRENCE))


def _recurrence_grads(ctx, *grads):
    inputs, (o, den) = _saved(ctx)
    d_o = torch.zeros_like(o) if grads[0] is None else grads[0]
    d_s1 = None if inputs[13] else grads[1]
    return _given_back(ctx.wanted, recurrence_backward(d_o, d_s1, o, den, ctx.wanted, *inputs), len(inputs))


recurrence.register_autograd(_recurrence_grads, setup_context=_recurrence_setup)

# ---- short convolutions -------------------------------------------------------------------------

_CONV = "x w bias s0".split()


def _conv(tensors, cu_seqlens, silu, engine):
    return benchattn.Convolution(**_arrays(dict(zip(_CONV, tensors))), cu_seqlens=_array(cu_seqlens), silu=silu,
                                 engine=benchattn._engines.get(engine))


@torch.library.custom_op("benchattn::conv", mutates_args=())
def conv(x: Tensor, w: Tensor, bias: _MAYBE, s0: _MAYBE, cu_seqlens: _MAYBE, silu: bool, engine: int) -> Tuple[Tensor, Tensor]:
    call = _conv((x, w, bias, s0), cu_seqlens, silu, engine)
    return torch.from_numpy(call.forward()), torch.from_numpy(call.s1)


@conv.register_fake
def _(x, w, bias, s0, cu_seqlens, silu, engine):
    B, L, n = x.shape
    return x.new_empty(B, L, n), x.new_empty(B if cu_seqlens is None else cu_seqlens.shape[0] - 1, w.shape[1] - 1, n)


@torch.library.custom_op("benchattn::conv_backward", mutates_args=())
def conv_backward(d_y: Tensor, d_s1: _MAYBE, wanted: List[bool], x: Tensor, w: Tensor, bias: _MAYBE, s0: _MAYBE,
                  cu_seqlens: _MAYBE, silu: bool, engine: int) -> List[Tensor]:
    names = [n for n, yes in zip(_CONV, wanted) if yes]
    grads = _conv((x, w, bias, s0), cu_seqlens, silu, engine).backward(_array(d_y), _array(d_s1), names)
    return [torch.from_numpy(grads[n]) for n in names]


@conv_backward.register_fake
def _(d_y, d_s1, wanted, *operands):
    return [x.new_empty(x.shape) for x, yes in zip(operands, wanted) if yes]


def _conv_setup(ctx, inputs, output):
    _setup(ctx, inputs, (), len(_CONV))


def _conv_grads(ctx, d_y, d_s1):
    inputs, _ = _saved(ctx)
    d_y = torch.zeros_like(inputs[0]) if d_y is None else d_y
    return _given_back(ctx.wanted, conv_backward(d_y, d_s1, ctx.wanted, *inputs), len(inputs))


conv.register_autograd(_conv_grads, setup_context=_conv_setup)

# ---- calls by name ------------------------------------------------------------------------------


def _check(operands, compiling):
    for name, x in operands.items():
        if not isinstance(x, Tensor):
            raise Error(f"{name} is a {type(x).__name__} beside tensors  -> pass a tensor")
        if not x.is_cpu or x.layout is not torch.strided:
            raise Error(f"{name} is not a dense tensor in the CPU's memory  -> move it there with .cpu()")
        double = name == "fade"
        if name == "cu_seqlens":
            if x.dtype not in (torch.int32, torch.int64):
                raise Error(f"{name} is of {x.dtype}  -> convert it to int32")
        elif x.dtype != (torch.float64 if double else torch.bool if name == "masks" else torch.float32):
            doubles = "; double precision, as for gradcheck, cannot be had" if x.dtype == torch.float64 else ""
            raise Error(f"{name} is of {x.dtype}  -> convert it to {'float64' if double else 'float32'}{doubles}")
        if not compiling:
            if x.is_neg():  # of the imaginary part of a conjugate
                raise Error(f"{name} is a view that is not resolved  -> pass a contiguous copy")
            if torch._C._functorch.is_functorch_wrapped_tensor(x):
                raise Error(f"{name} is inside vmap or torch.func  -> call outside of them; the first axis is the batch")


def _plain(operands):
    """Does nobody look at what PyTorch is asked for, such as a tracer?"""
    return torch._C._len_torch_dispatch_stack() == 0 and all(type(x) in (Tensor, torch.nn.Parameter) for x in operands.values())


def _at_once(kind, options, operands, texts, seen, dtype):
    """Without the operator, which takes longer than the kernel where there is one query."""
    given = {"cu_seqlens": _array(texts), **({} if kind is not benchattn.Attention else {
        "masks": _array(seen) if isinstance(seen, Tensor) else seen})}
    call = kind(**_arrays(operands), **given, **options)
    o = torch.from_numpy(call.forward()).to(dtype)
    rest = (getattr(call, name) for name in kind._rest)
    return (o, *(None if x is None else torch.from_numpy(x) for x in rest))


def run(kind, options, operands):
    """All outputs of a call of tensors."""
    first = next(iter(operands.values()))  # q or x
    dtype = first.dtype if getattr(first, "dtype", None) in _HALVES else torch.float32
    operands = {n: x.float() if isinstance(x, Tensor) and x.dtype in _HALVES else x for n, x in operands.items()}
    options = dict(options)
    texts, seen = (torch.as_tensor(x) if isinstance(x, np.ndarray) else x
                   for x in (options.pop("cu_seqlens", None), options.pop("masks", None)))
    compiling = torch.compiler.is_compiling()
    extra = {} if texts is None else {"cu_seqlens": texts}
    _check({**operands, **extra, **({"masks": seen} if isinstance(seen, Tensor) else {})}, compiling)
    if not compiling:
        kind.check_options(**options)  # before anything is cut to an operator's types
        if not (torch.is_grad_enabled() and any(x.requires_grad for x in operands.values())) and _plain(operands):
            return _at_once(kind, options, operands, texts, seen, dtype)
    number = options.pop("engine", None)
    number = 0 if number is None else number.number
    if kind is benchattn.Convolution:
        y, s1 = conv(*(operands.get(n) for n in _CONV), texts, bool(options.get("silu", False)), number)
        return y.to(dtype), s1
    if kind is benchattn.Recurrence:
        all_of = [operands.get(n) for n in _RECURRENCE]
        if "m0" in operands and operands["m0"].requires_grad:
            raise Error("m0 has no gradient  -> pass m0.detach()")
        norm = options.get("norm")
        if norm not in (None, "sum", "mlstm"):
            raise Error(f"norm is {norm!r}  -> use None, 'sum' or 'mlstm'")
        o, s1, z1, m1, _den = recurrence(*all_of, texts, norm or "", [float(options.get("eps") or 0), float(options.get("scale") or 0)], number)
        # A state that outputs are divided by has no gradient of its own.
        return (o.to(dtype), s1.detach() if norm else s1, z1.detach() if norm else None, m1.detach() if "i" in operands else None)
    window, rules = options.get("window") or 0, []
    if isinstance(seen, benchattn.Mask):
        seen = [seen]
    if isinstance(seen, (list, tuple)):
        if not all(isinstance(m, benchattn.Mask) for m in seen):
            raise Error("masks has something else than masks  -> make each with mask(...)")
        rules, seen = [x for m in seen for x in m.rules], None
    of_head, steps = options.get("mask_of_head"), options.get("steps")
    o, lse = attention(*(operands.get(n) for n in _ATTENTION), seen, rules, [] if of_head is None else list(of_head), texts,
                     bool(options.get("causal", False)), bool(options.get("cross", False)),
                     list(window) if isinstance(window, (list, tuple)) else [window], [] if steps is None else list(steps),
                     [float(options.get(n) or 0) for n in ("scale", "soft_cap", "gain")],
                     [options.get("base") or 0, options.get("future") or 0], number)
    return o.to(dtype), lse.detach()
