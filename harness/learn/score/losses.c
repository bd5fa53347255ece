/* SPDX-License-Identifier: MIT
 *
 * Files of losses. */
#include "losses.h"

#include "harness/util/range.h"

#define FORMAT "bench-losses/1"

enum status losses_write(const struct losses *l, const char *path, struct err *e)
{
    const int n = (int)l->n;
    const struct tensor tensors[] = {
        {.name = "nll", .dtype = DTYPE_F32, .rank = 1, .shape = {n}, .n = l->n, .data = l->nll},
        {.name = "layers",
         .dtype = DTYPE_I32,
         .rank = 1,
         .shape = {n},
         .n = l->n,
         .data = l->layers},
    };
    char seq[16], mem[16];
    const char *const meta[] = {"format",          FORMAT,
                                "checkpoint",      l->checkpoint,
                                "variant",         l->variant,
                                "checkpoint_xxh3", l->checkpoint_xxh3,
                                "corpus_xxh3",     l->corpus_xxh3,
                                "seq_tokens",      seq,
                                "mem_tokens",      mem};

    if (l->n > INT_MAX)
        return fail(e, E_USAGE, "%s: %zu tokens are too many for one file  -> lower --bytes", path,
                    l->n);
    snprintf(seq, sizeof(seq), "%d", l->seq);
    snprintf(mem, sizeof(mem), "%d", l->mem);
    return safetensors_write(path, tensors, l->layers ? 2 : 1, meta, (int)ARRAY_LEN(meta) / 2, e);
}

static enum status take_text(char *to, size_t size, const struct safetensors *s, const char *key,
                             struct err *e)
{
    const char *const text = safetensors_meta(s, key);

    if (!text)
        return safetensors_fail(
            s, e, "metadata %s is missing  -> give a file of bench eval --losses", key);
    snprintf(to, size, "%s", text);
    return OK;
}

enum status losses_read(struct losses *l, const char *path, struct err *e)
{
    char format[32];

    *l = (struct losses){0};
    TRY(safetensors_open(&l->file, path, e));
    const struct safetensors *const s = &l->file;
    const struct tensor *const t = safetensors_find(s, "nll");
    TRY(take_text(format, sizeof(format), s, "format", e));
    if (strcmp(format, FORMAT) != 0 || !t || t->dtype != DTYPE_F32 || t->rank != 1)
        return safetensors_fail(s, e, "it has no losses  -> give a file of bench eval --losses");
    TRY(take_text(l->checkpoint, sizeof(l->checkpoint), s, "checkpoint", e));
    TRY(take_text(l->variant, sizeof(l->variant), s, "variant", e));
    TRY(take_text(l->checkpoint_xxh3, sizeof(l->checkpoint_xxh3), s, "checkpoint_xxh3", e));
    TRY(take_text(l->corpus_xxh3, sizeof(l->corpus_xxh3), s, "corpus_xxh3", e));
    TRY(safetensors_int(s, "seq_tokens", -1, 1, VALUE_MAX, &l->seq, e));
    TRY(safetensors_int(s, "mem_tokens", -2, -1, VALUE_MAX, &l->mem, e));
    l->nll = t->data;
    l->n = t->n;
    for (size_t i = 0; i < l->n; i++)
        if (!isfinite(l->nll[i]))
            return safetensors_fail(s, e, "loss %zu is %g  -> score it again", i,
                                    (double)l->nll[i]);
    return OK;
}

void losses_close(struct losses *l)
{
    safetensors_close(&l->file);
    *l = (struct losses){0};
}
