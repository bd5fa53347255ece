#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""GroupQueryAttention of ONNX Runtime on CPUs, forward, as a kernel of bench. Needs the packages onnxruntime and onnx.

    bench judge 'exec:python3 contrib/kernels/ort_gqa.py'

The operator wants the keys of the memory apart and heads first, and returns both caches whole: these copies are in
its time, as they are in a model that does not keep its caches so. Its session has as many threads as are given."""
import os
import sys

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "python"))
import bench_kernel  # noqa: E402

threads = 1


def set_threads(n):
    global threads
    threads = n


kernel = bench_kernel.Kernel("onnxruntime", onnxruntime.__version__, threads=set_threads)
NAMES = ["query", "key", "value", "past_key", "past_value", "seqlens_k", "total"]


def open_session(node, inputs, outputs, opset, ir, *domains):
    """Of a model of one operator."""
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    model = helper.make_model(helper.make_graph([node], "one", inputs, outputs), ir_version=ir, opset_imports=opsets)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def session(a):
    of = {name: TensorProto.INT32 if name in ("seqlens_k", "total") else TensorProto.FLOAT for name in NAMES}
    rank = {"seqlens_k": 1, "total": 0, "past_key": 4, "past_value": 4}
    inputs = [helper.make_tensor_value_info(n, of[n], [None] * rank.get(n, 3)) for n in NAMES]
    outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [None] * r)
               for n, r in (("o", 3), ("present_key", 4), ("present_value", 4))]
    node = helper.make_node("GroupQueryAttention", NAMES, [o.name for o in outputs], domain="com.microsoft",
                            num_heads=a.q.shape[2], kv_num_heads=a.k.shape[2], scale=a.scale,
                            local_window_size=a.window or -1, softcap=float(a.soft_cap))
    return open_session(node, inputs, outputs, 17, 8, "com.microsoft")


def why(a):
    if a.M and a.q.shape[0] > 1:
        return "takes one sequence where there are keys before"
    if a.q.shape[3] % 8:
        return "wants heads whose width is a multiple of 8"
    return bench_kernel.lacks(a, "groups", "memory", "window", "soft_cap")


@kernel.attention_forward(why=why)
def forward(a):
    if a.kept.get("threads") != threads:
        a.kept.update(threads=threads, session=session(a))
    B, L, H, dh = a.q.shape
    past_k, past_v = (np.ascontiguousarray(x[:, :a.M].transpose(0, 2, 1, 3)) for x in (a.k, a.v))
    new_k, new_v = (np.ascontiguousarray(x[:, a.M:]).reshape(B, L, -1) for x in (a.k, a.v))
    total = a.M + L
    o = a.kept["session"].run(["o"], {
        "query": np.ascontiguousarray(a.q).reshape(B, L, H * dh), "key": new_k, "value": new_v, "past_key": past_k,
        "past_value": past_v, "seqlens_k": np.full(B, total - 1, np.int32), "total": np.array(total, np.int32)})[0]
    a.o[:] = o.reshape(a.o.shape)


if __name__ == "__main__":
    kernel.serve()
