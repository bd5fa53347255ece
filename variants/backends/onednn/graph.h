/* SPDX-License-Identifier: MIT
 *
 * Attention as one fused partition of oneDNN's graph API, available from version 3.7. */
#ifndef ONEDNN_GRAPH_H
#define ONEDNN_GRAPH_H

#include "variants/backends/backend.h"

#include <oneapi/dnnl/dnnl_version.h>

#define HAVE_GRAPH_SDPA                                                                            \
    (DNNL_VERSION_MAJOR > 3 || (DNNL_VERSION_MAJOR == 3 && DNNL_VERSION_MINOR >= 7))

#if HAVE_GRAPH_SDPA
extern const struct attn_impl attn_graph_sdpa;
#endif

#endif
