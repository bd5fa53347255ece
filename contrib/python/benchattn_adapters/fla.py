# SPDX-License-Identifier: MIT
"""flash-linear-attention (tested with 0.6) on CPUs, where its own kernels cannot run: gated delta rules and KDA.

    from benchattn_adapters.fla import use
    use()                   # says what it replaced

chunk_kda is registered with the dispatcher of fla.backends. The functions that it does not dispatch are replaced in every
module of fla that has them, those of layers included; modules that are imported later have them as well."""
import functools
import inspect
import sys

import fla.backends
import fla.ops.gated_delta_rule as gdn
import fla.ops.kda as kda
import torch
from fla.ops.gated_delta_rule.gate import naive_gdn_gate
from fla.ops.kda.gate import naive_kda_gate, naive_kda_lowerbound_gate

from benchattn import Error
from benchattn_adapters.recurrences import gated_delta_rule

_REPLACED = {gdn: ("chunk_gated_delta_rule", "fused_recurrent_gated_delta_rule"), kda: ("fused_recurrent_kda",)}


class Backend(fla.backends.BaseBackend):
    backend_type, priority = "benchattn", 0


def _on_cpu(q, *_, **__):
    return q.device.type == "cpu", "tensors are not in the CPU's memory"


def _gate(g, A_log, dt_bias, lower_bound):
    """Log decays from what a layer projects: of heads [.., h], or of channels [.., h, dk]."""
    if g.dim() == 3:
        return naive_gdn_gate(g, A_log, dt_bias)
    return naive_kda_gate(g, A_log, dt_bias) if lower_bound is None else naive_kda_lowerbound_gate(g, A_log, dt_bias, lower_bound)


def _delta_rule(q, k, v, g=None, beta=None, gk=None, gv=None, use_gate_in_kernel=False, A_log=None, dt_bias=None, lower_bound=None,
                use_beta_sigmoid_in_kernel=False, allow_neg_eigval=False, state_v_first=False, initial_state=None, **options):
    if gv is not None:
        raise Error("gv  -> decays of values are not computed here")
    g = v.new_zeros(v.shape[:3]) if g is None else g
    g = _gate(g, A_log, dt_bias, lower_bound) if use_gate_in_kernel else g
    g = g if gk is None else g[..., None] + gk
    beta = v.new_ones(v.shape[:3]) if beta is None else beta
    if use_beta_sigmoid_in_kernel:
        beta = torch.sigmoid(beta.float()) * (2 if allow_neg_eigval else 1)
    state = initial_state.transpose(-1, -2) if state_v_first and initial_state is not None else initial_state
    o, s1 = gated_delta_rule(q, k, v, g, beta, initial_state=state, **options)
    return o, s1.transpose(-1, -2) if state_v_first and s1 is not None else s1


def _in_place_of(theirs):
    """Arguments by the names that theirs gives them."""
    signature = inspect.signature(inspect.unwrap(theirs))

    @functools.wraps(theirs)
    def ours(*args, **kwargs):
        given = dict(signature.bind(*args, **kwargs).arguments)
        return _delta_rule(**given.pop("kwargs", {}), **given)
    return ours


def use():
    """The names of what was replaced."""
    fla.backends.register(kda.chunk_kda, backend=Backend, verifier=_on_cpu)(_in_place_of(kda.chunk_kda))
    done = ["fla.ops.kda.chunk_kda"]
    for package, names in _REPLACED.items():
        for name in names:
            theirs = getattr(package, name)
            ours = theirs if hasattr(theirs, "benchattn") else _in_place_of(theirs)
            ours.benchattn = True
            for module in [m for n, m in sorted(sys.modules.items()) if n.split(".")[0] == "fla"]:
                if getattr(module, name, None) is theirs:
                    setattr(module, name, ours)
                    done.append(f"{module.__name__}.{name}")
    return done
