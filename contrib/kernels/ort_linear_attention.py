#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""LinearAttention of ONNX (opset 27) as ONNX Runtime computes it on CPUs, forward, as a kernel of bench. Needs the
packages onnxruntime, from 1.32, and onnx.

    bench judge 'exec:python3 contrib/kernels/ort_linear_attention.py'

Its session has as many threads as are given."""
import numpy as np
import onnxruntime
import ort_gqa
from onnx import TensorProto, helper
from ort_gqa import bench_kernel

kernel = bench_kernel.Kernel("onnxruntime", onnxruntime.__version__, threads=ort_gqa.set_threads)


def session(r):
    rule = ("gated_" if r.g is not None else "") + ("delta" if r.beta is not None else "")
    names = ["query", "key", "value", "past_state", "decay" if r.g is not None else "", "beta" if r.beta is not None else ""]
    inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [None] * (4 if n == "past_state" else 3))
              for n in names if n]
    outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [None] * rank)
               for n, rank in (("o", 3), ("present_state", 4))]
    node = helper.make_node("LinearAttention", names, [o.name for o in outputs], q_num_heads=r.H, kv_num_heads=r.Hs,
                            scale=r.scale, update_rule=rule.rstrip("_") or "linear")
    return ort_gqa.open_session(node, inputs, outputs, 27, 10)


def why(r):
    if r.M or r.q is None or r.k is None:
        return "needs queries and keys of the same positions"
    if r.norm or r.a is not None or r.i is not None or r.u is not None:
        return "has no normaliser, free rank one, write gate or bonus"
    return None


@kernel.recurrence_forward(why=why)
def forward(r):
    if r.kept.get("threads") != ort_gqa.threads:
        r.kept.update(threads=ort_gqa.threads, session=session(r))
    B, L = r.q.shape[:2]

    def flat(x, heads):
        return np.ascontiguousarray(np.repeat(x, heads // x.shape[2], 2)).reshape(B, L, -1)

    given = {"query": flat(r.q, r.H), "key": flat(r.k, r.Hs), "value": flat(r.v, r.Hs)}
    given["past_state"] = np.zeros((B, r.Hs, r.dk, r.dv), np.float32) if r.s0 is None else np.ascontiguousarray(r.s0)
    if r.g is not None:
        given["decay"] = flat(r.g, r.Hs)
    if r.beta is not None:
        given["beta"] = flat(r.beta[..., None], r.Hs)
    o, s1 = r.kept["session"].run(["o", "present_state"], given)
    r.o[:] = o.reshape(r.o.shape)
    if r.s1 is not None:
        r.s1[:] = s1


if __name__ == "__main__":
    kernel.serve()
