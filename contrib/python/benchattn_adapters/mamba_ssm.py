# SPDX-License-Identifier: MIT
"""Functions of mamba_ssm and causal_conv1d, which need a GPU, under their own names and arguments.

    from benchattn_adapters.mamba_ssm import selective_scan_fn, mamba_chunk_scan_combined, causal_conv1d_fn

Forms are those of mamba_ssm 2.3 and causal_conv1d 1.5; what they take beside is refused by name, or changes no number."""
from benchattn_adapters.recurrences import causal_conv1d_fn as _conv_fn
from benchattn_adapters.recurrences import causal_conv1d_update as _conv_update
from benchattn_adapters.recurrences import mamba_chunk_scan, selective_scan
from benchattn_adapters.recurrences import selective_state_update  # noqa: F401


def selective_scan_fn(u, delta, A, B, C, D=None, z=None, delta_bias=None, delta_softplus=False, return_last_state=False):
    return selective_scan(u, delta, A, B, C, D, z, delta_bias, delta_softplus, return_last_state)


def mamba_chunk_scan_combined(x, dt, A, B, C, chunk_size, D=None, z=None, dt_bias=None, initial_states=None, seq_idx=None,
                              cu_seqlens=None, dt_softplus=False, dt_limit=(0.0, float("inf")), return_final_states=False):
    return mamba_chunk_scan(x, dt, A, B, C, chunk_size, D, z, dt_bias, initial_states, dt_softplus, dt_limit, return_final_states,
                            seq_idx, cu_seqlens)


def causal_conv1d_fn(x, weight, bias=None, seq_idx=None, initial_states=None, return_final_states=False, final_states_out=None,
                     activation=None):
    return _conv_fn(x, weight, bias, activation, seq_idx=seq_idx, initial_states=initial_states,
                    return_final_states=return_final_states or final_states_out is not None)


def causal_conv1d_update(x, conv_state, weight, bias=None, activation=None):
    return _conv_update(x, conv_state, weight, bias, activation)
