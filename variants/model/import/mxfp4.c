/* SPDX-License-Identifier: MIT
 *
 * MXFP4: shapes and values. */
#include "mxfp4.h"

#include "variants/base/tensor_blocks.h"

enum { BLOCK = 32, BYTES = BLOCK / 2, BIAS = 127, NO_NUMBER = 255 };

int mxfp4_shape(int64_t shape[TENSOR_RANK], const struct param *w, int parts)
{
    CHECK(w->rank == 3);
    shape[0] = w->shape[0];
    shape[1] = (int64_t)w->shape[1] * parts;
    shape[2] = ((int64_t)w->shape[2] + BLOCK - 1) / BLOCK;
    shape[3] = BYTES;
    return 4;
}

static bool is_bytes(const struct tensor *t) { return strcmp(t->dtype_name, "U8") == 0; }

enum status mxfp4_check(const struct published *p, const struct tensor *blocks,
                        const struct tensor *scales, const struct param *w, struct err *e)
{
    if (w->shape[2] % BLOCK)
        return fail(e, E_IO,
                    "checkpoint %s: tensor \"%s\" has rows of %d numbers, blocks have %d  -> use "
                    "the model it was made from",
                    p->path, blocks->name, w->shape[2], (int)BLOCK);
    if (!scales || !is_bytes(blocks) || !is_bytes(scales) || scales->rank != 3 ||
        memcmp(scales->shape, blocks->shape, 3 * sizeof(*scales->shape)) != 0)
        return fail(e, E_IO,
                    "checkpoint %s: tensor \"%s\" lacks scales, one for each of its blocks, in "
                    "bytes as it is  -> give all files of one model",
                    p->path, blocks->name);
    return OK;
}

static void read_row(float *to, const unsigned char *blocks, const unsigned char *scales, size_t n)
{
    for (size_t b = 0; b < n; b++) {
        const float scale = scales[b] == NO_NUMBER ? NAN : ldexpf(1, scales[b] - BIAS);
        for (size_t i = 0; i < BYTES; i++) {
            const unsigned two = blocks[b * BYTES + i];
            to[b * BLOCK + 2 * i] = scale * fp4_number[two & 15];
            to[b * BLOCK + 2 * i + 1] = scale * fp4_number[two >> 4];
        }
    }
}

void mxfp4_read(const struct param *w, const struct tensor *blocks, const struct tensor *scales,
                int part, int parts)
{
    const size_t rows = (size_t)w->shape[1], columns = (size_t)w->shape[2], n = columns / BLOCK;
    const unsigned char *const of_blocks = blocks->data, *const of_scales = scales->data;

    for (size_t i = 0; i < (size_t)w->shape[0] * rows; i++) {
        const size_t row = i * (size_t)parts + (size_t)part;
        read_row(w->data + i * columns, of_blocks + row * n * BYTES, of_scales + row * n, n);
    }
}
