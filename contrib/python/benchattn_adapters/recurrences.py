# SPDX-License-Identifier: MIT
"""What models call before and in their recurrences, by the arguments of the packages that define it: flash-linear-attention,
mamba_ssm, causal_conv1d. Numbers are float32; other types are converted at the edges."""
import torch
import torch.nn.functional as F

import benchattn
from benchattn import Error


def _refuse(options, **instead):
    """Error if one of these options is given."""
    for name, text in instead.items():
        if options.get(name) is not None and options[name] is not False:
            raise Error(f"{name}  -> {text}")


# ---- flash-linear-attention ---------------------------------------------------------------------


def _unit(x):
    return x * torch.rsqrt((x * x).sum(-1, keepdim=True) + 1e-6)


def gated_delta_rule(query, key, value, g, beta, chunk_size=64, initial_state=None, output_final_state=False,
                     use_qk_l2norm_in_kernel=False, scale=None, cu_seqlens=None, **options):
    """chunk_gated_delta_rule and fused_recurrent_gated_delta_rule, [b, l, h, ...]; with g [b, l, h, dk] chunk_kda and
    fused_recurrent_kda."""
    _refuse(options, use_gate_in_kernel="compute g outside", use_beta_sigmoid_in_kernel="pass sigmoid(beta)",
            state_v_first="give and take states [b, h, dk, dv]", return_intermediate_states="only the last state is there",
            head_first="give tokens before heads", cp_context="one process computes a whole text")
    q, k = query.float(), key.float()
    if use_qk_l2norm_in_kernel:
        q, k = _unit(q), _unit(k)
    state = None if initial_state is None else initial_state.float()
    o, s1 = benchattn.recurrence(q, k, value.float(), g=g.float(), beta=beta.float(), s0=state,
                                 scale=query.shape[-1] ** -0.5 if scale is None else scale, cu_seqlens=cu_seqlens,
                                 return_state=True)
    return o.to(query.dtype), s1 if output_final_state else None


# ---- mamba_ssm ----------------------------------------------------------------------------------


def _step(dt, bias, softplus, limit=(0.0, float("inf"))):
    dt = dt.float() if bias is None else dt.float() + bias.float()
    return torch.clamp(F.softplus(dt) if softplus else dt, *limit)


def mamba_chunk_scan(hidden_states, dt, A, B, C, chunk_size=None, D=None, z=None, dt_bias=None, initial_states=None,
                     dt_softplus=False, dt_limit=(0.0, float("inf")), return_final_states=False, seq_idx=None,
                     cu_seqlens=None, **_):
    """mamba_chunk_scan_combined: x [b, l, h, p], dt [b, l, h], A [h], B and C [b, l, groups, n]."""
    if seq_idx is not None or z is not None:
        raise Error("seq_idx or z  -> give cu_seqlens; multiply by silu(z) outside")
    x, dt = hidden_states.float(), _step(dt, dt_bias, dt_softplus, dt_limit)
    state = None if initial_states is None else initial_states.float().transpose(-1, -2)
    o, s1 = benchattn.recurrence(C.float(), B.float(), x * dt[..., None], g=A.float() * dt, s0=state, return_state=True,
                                 cu_seqlens=cu_seqlens)
    if D is not None:
        o = o + D.float().unsqueeze(-1) * x
    return (o, s1.transpose(-1, -2)) if return_final_states else o


def selective_state_update(state, hidden_states, dt, A, B, C, D=None, dt_bias=None, dt_softplus=False, z=None, **_):
    """One token of Mamba-2, whose state [b, h, p, n] is overwritten: A and dt are the same for all of a head."""
    A, dt = A[:, 0, 0], _step(dt[..., 0], None if dt_bias is None else dt_bias[:, 0], dt_softplus)
    o, s1 = mamba_chunk_scan(hidden_states[:, None], dt[:, None], A, B[:, None], C[:, None], D=None if D is None else D[:, 0],
                             initial_states=state, return_final_states=True)
    state.copy_(s1)
    o = o[:, 0]
    return (o if z is None else o * F.silu(z.float())).to(hidden_states.dtype)


def selective_scan(hidden_states, dt, A, B, C, D=None, z=None, delta_bias=None, delta_softplus=False, return_last_state=False, **_):
    """selective_scan_fn of Mamba: x and dt [b, d, l], A [d, n], B and C [b, n, l] or [b, groups, n, l]; each channel is a
    head with one value, whose state is [n]."""
    x, dt = hidden_states.float().transpose(1, 2), _step(dt.transpose(1, 2), delta_bias, delta_softplus)
    k, q = (y.float()[:, None] if y.dim() == 3 else y.float() for y in (B, C))
    o, s1 = benchattn.recurrence(q.permute(0, 3, 1, 2), k.permute(0, 3, 1, 2), (x * dt)[..., None], g=dt[..., None] * A.float(),
                                 return_state=True)
    o = o[..., 0] if D is None else o[..., 0] + D.float() * x
    o = o.transpose(1, 2)
    o = (o if z is None else o * F.silu(z.float())).to(hidden_states.dtype)
    return (o, s1[..., 0]) if return_last_state else o


# ---- causal_conv1d ------------------------------------------------------------------------------


def _conv(x, weight, bias, activation, state=None, cu_seqlens=None):
    if activation not in (None, "silu", "swish"):
        raise Error(f"activation is {activation!r}  -> None or 'silu'; apply others outside")
    if weight.shape[1] < 2:  # no state
        state = None
    rows = None if state is None else state[..., state.shape[-1] - weight.shape[1] + 1:].transpose(1, 2).float()
    return benchattn.conv(x.transpose(1, 2).float(), weight.float(), bias=None if bias is None else bias.float(), s0=rows,
                          silu=activation is not None, cu_seqlens=cu_seqlens).transpose(1, 2).to(x.dtype)


def causal_conv1d_fn(hidden_states, weight, bias=None, activation=None, cu_seqlens=None, **options):
    """x [b, d, l], weight [d, taps]."""
    _refuse(options, seq_idx="give cu_seqlens", initial_states="call benchattn.conv", return_final_states="call benchattn.conv")
    return _conv(hidden_states, weight, bias, activation, cu_seqlens=cu_seqlens)


def causal_conv1d_update(hidden_states, conv_state, weight, bias=None, activation=None, **_):
    """x [b, d, l] or [b, d], after conv_state [b, d, taps - 1 or more], which is overwritten."""
    x = hidden_states if hidden_states.dim() == 3 else hidden_states[..., None]
    if conv_state.shape[-1] < weight.shape[1] - 1:
        raise Error(f"conv_state has {conv_state.shape[-1]} rows for {weight.shape[1]} taps  -> give taps - 1 or more")
    y = _conv(x, weight, bias, activation, conv_state)
    conv_state.copy_(torch.cat([conv_state, x.to(conv_state.dtype)], 2)[..., -conv_state.shape[-1]:])
    return y if hidden_states.dim() == 3 else y[..., 0]
