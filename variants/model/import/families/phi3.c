/* SPDX-License-Identifier: MIT
 *
 * phi3 (Abdin et al. 2024, arXiv:2404.14219): llama with one map for queries, keys and values, and
 * one for both operands of the gate; a part of each head may be rotated, a window seen. */
#include "llama.h"

/* Rows before queries, keys, values; of all. */
static int64_t rows_before(const struct config *c, int part)
{
    const int64_t q = (int64_t)c->H * c->dh, kv = (int64_t)c->kv_heads * c->dh;

    return (const int64_t[]){0, q, q + kv, q + 2 * kv}[part];
}

#define QKV(name, nth)                                                                             \
    {                                                                                              \
        .ours = "layers.*.attn." name, .published = "layers.*.self_attn.qkv_proj",                 \
        .layout = LAYOUT_STACK, .part = nth, .parts = 3, .before = rows_before                     \
    }

static const struct tensor_row tensors[] = {
    QKV("q", 0), QKV("k", 1), QKV("v", 2), GATE_UP, LLAMA_REST, {0},
};

static const struct key_row keys[] = {LLAMA_KEYS(1e-5, 0), {0}};

enum { CONTEXT = 4096 };

static const struct rotary rotary = {.original = CONTEXT, .longrope_alone = true};

/* Of how it was trained; there may be other values. */
static void refuse_other_than_one(struct config_json *j, const char *key)
{
    if (config_json_whole(j, key, 1, 0, MAX_WIDTH) != 1)
        import_refuse(j, "%s other than 1: not supported  -> use 1", key);
}

static void more(struct config_json *j)
{
    refuse_other_than_one(j, "full_attn_mod");
    refuse_other_than_one(j, "interpolate_factor");
    import_put_rotary(j, &rotary, import_put_heads(j, "llama", 0, 0));
    import_put_ffn(j, "hidden_act", "silu", llama_acts);
    SAY(j, {"norm", "pre"}, {"attn_bias", "0"}, {"ff_bias", "0"});
    import_put_window(j);
}

LLAMA_TYPE(phi3, .usual_context = CONTEXT, ROWS_OF_FILE);
