# SPDX-License-Identifier: MIT
"""Models of transformers (tested with 5.24) with the kernels of benchattn.

    from benchattn_adapters.transformers import use
    use(model)              # and use(model, False) takes them out again

Softmax attention goes through AttentionInterface, under the name "benchattn". Recurrences are functions of the modules
that define a model: those of this model's classes are replaced, so that all models of these classes have them. Numbers
are float32; other types are converted at the edges."""
import sys

import torch
import torch.nn.functional as F
import transformers
from transformers import AttentionInterface
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

import benchattn
from benchattn import Error

# ---- softmax ------------------------------------------------------------------------------------


def attention(module, query, key, value, attention_mask, scaling=None, dropout=0.0, sliding_window=None, softcap=None,
              is_causal=None, s_aux=None, position_bias=None, **options):
    """As AttentionInterface asks: query [B, H, L, dh], key and value [B, Hkv, K, dh]; out [B, L, H, dh]."""
    if dropout:
        raise Error(f"dropout is {dropout}  -> set attention_dropout to 0; no probability is dropped here")
    if position_bias is not None:
        raise Error("position_bias  -> use attn_implementation='eager' for this model")
    terms = {"scale": scaling or 0, "soft_cap": softcap or 0}
    if s_aux is not None:  # a logit of each head that only the softmax's divisor has
        terms["sink_logit"] = s_aux.reshape(-1, 1)
    L, K = query.shape[2], key.shape[2]
    causal = (getattr(module, "is_causal", True) if is_causal is None else is_causal) and attention_mask is None
    if causal and L > 1:
        key, value = key[:, :, :L], value[:, :, :L]  # the rest of an empty static cache; later the mask is there
        terms["causal"] = True
        if sliding_window:
            terms["window"] = sliding_window
    else:
        terms["cross"] = True
    if attention_mask is not None:
        mask = attention_mask[..., :K]
        if mask.dtype == torch.bool:
            mask = torch.zeros(mask.shape).masked_fill(~mask, -torch.inf)
        terms["add"] = mask.float()
    o = benchattn.attention(query, key, value, layout="bhld", **terms)
    return o.transpose(1, 2), None


# ---- recurrences --------------------------------------------------------------------------------


def _unit(x):
    return x * torch.rsqrt((x * x).sum(-1, keepdim=True) + 1e-6)


def gated_delta_rule(query, key, value, g, beta, chunk_size=64, initial_state=None, output_final_state=False,
                     use_qk_l2norm_in_kernel=False, scale=None, cu_seqlens=None, **_):
    """chunk_gated_delta_rule and fused_recurrent_gated_delta_rule of flash-linear-attention, in their layout."""
    q, k = query.float(), key.float()
    if use_qk_l2norm_in_kernel:
        q, k = _unit(q), _unit(k)
    state = None if initial_state is None else initial_state.float()
    o, s1 = benchattn.recurrence(q, k, value.float(), g=g.float(), beta=beta.float(), s0=state,
                                 scale=query.shape[-1] ** -0.5 if scale is None else scale, cu_seqlens=cu_seqlens,
                                 return_state=True)
    return o.to(query.dtype), s1 if output_final_state else None


def _step(dt, bias, softplus, limit=(0.0, float("inf"))):
    dt = dt.float() if bias is None else dt.float() + bias.float()
    return torch.clamp(F.softplus(dt) if softplus else dt, *limit)


def mamba_chunk_scan(hidden_states, dt, A, B, C, chunk_size=None, D=None, z=None, dt_bias=None, initial_states=None,
                     dt_softplus=False, dt_limit=(0.0, float("inf")), return_final_states=False, seq_idx=None,
                     cu_seqlens=None, **_):
    """mamba_chunk_scan_combined of mamba_ssm: x [b, l, h, p], dt [b, l, h], A [h], B and C [b, l, groups, n]."""
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


_IN_PLACE_OF = {"torch_chunk_gated_delta_rule": gated_delta_rule, "torch_recurrent_gated_delta_rule": gated_delta_rule,
                "mamba2_chunk_scan": mamba_chunk_scan, "mamba2_selective_state_update": selective_state_update}

AttentionInterface.register("benchattn", attention)
AttentionMaskInterface.register("benchattn", sdpa_mask)


def use(model, on=True):
    """Replace what this model computes with, or put back what there was: the names of what was replaced."""
    if not isinstance(model, transformers.PreTrainedModel):
        raise Error(f"model is a {type(model).__name__}  -> pass a model of transformers")
    done = []
    for module in {sys.modules[type(m).__module__] for m in model.modules() if type(m).__module__.startswith("transformers.models.")}:
        for name, ours in _IN_PLACE_OF.items():
            theirs = getattr(module, name, None)
            if theirs is not None and on and theirs is not ours:
                setattr(module, "_benchattn_" + name, theirs)
                setattr(module, name, ours)
            elif theirs is ours and not on:
                setattr(module, name, getattr(module, "_benchattn_" + name))
            if theirs is not None:
                done.append(f"{module.__name__}.{name}")
    if model.config._attn_implementation != "benchattn" and on:
        model._benchattn_before = model.config._attn_implementation
    if on or hasattr(model, "_benchattn_before"):
        model.set_attn_implementation("benchattn" if on else model._benchattn_before)
        done.append("attention")
    return sorted(done)
