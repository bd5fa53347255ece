# SPDX-License-Identifier: MIT
"""Models of transformers (tested with 5.24) with the kernels of benchattn.

    from benchattn_adapters.transformers import use
    use(model)              # and use(model, False) takes them out again

Softmax attention goes through AttentionInterface, under the name "benchattn". Recurrences are functions of the modules
that define a model: those of this model's classes are replaced, so that all models of these classes have them. Numbers
are float32; other types are converted at the edges."""
import sys

import torch
import transformers
from transformers import AttentionInterface
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

import benchattn
from benchattn import Error
from benchattn_adapters import recurrences

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


# ---- modules ------------------------------------------------------------------------------------

_IN_PLACE_OF = {
    "torch_chunk_gated_delta_rule": recurrences.gated_delta_rule, "torch_recurrent_gated_delta_rule": recurrences.gated_delta_rule,
    "mamba2_chunk_scan": recurrences.mamba_chunk_scan, "mamba2_selective_state_update": recurrences.selective_state_update,
    "mamba_selective_scan": recurrences.selective_scan, "causal_conv1d_fn": recurrences.causal_conv1d_fn}

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
