/* SPDX-License-Identifier: MIT
 *
 * libFuzzer target (clang -fsanitize=fuzzer): any bytes as a GGUF file: its keys as a model and as a
 * tokenizer, and the numbers of every tensor that can be read. */
#include "harness/tokens/tokenizer.h"
#include "structure.h"
#include "variants/base/gguf.h"
#include "variants/model/import/published.h"

static void read_numbers(const char *path)
{
    enum { MOST = 1 << 16 };
    static float to[MOST];
    struct safetensors s;
    json_t *keys = NULL;
    struct err e = {""};

    if (gguf_open(&s, &keys, path, &e) == OK) {
        for (int i = 0; i < s.n_tensors; i++) {
            const struct tensor *const t = &s.tensors[i];
            if (tensor_is_readable(t->dtype) && t->n <= MOST)
                tensor_floats(to, t, 0, t->n);
        }
    } else
        check_said(&e);
    json_decref(keys);
    safetensors_close(&s);
}

static void read_model(const char *path)
{
    struct published p;
    struct err e = {""};

    if (published_open(&p, path, &e) == OK)
        CHECK(p.config.V > 0 && p.context > 0 && *p.family);
    else
        check_said(&e);
    published_close(&p);
}

static void read_tokenizer(const char *path)
{
    static const char text[] = "It's  the\n\n end<s>12345 caf\xc3\xa9 \xe4\xb8\x80\xf0\x9f\x98\x80";
    struct tokenizer *t;
    struct ids ids = {0};
    struct bytes back = {0};
    struct err e = {""};

    if (tokenizer_open(&t, path, &e) != OK) {
        check_said(&e);
        return;
    }
    if (tokenizer_encode(t, text, sizeof(text), &ids, &e) == OK) {
        for (size_t i = 0; i < ids.n; i++)
            CHECK(ids.v[i] >= 0 && ids.v[i] < tokenizer_vocab(t));
        if (tokenizer_decode(t, ids.v, ids.n, &back, &e) == OK)
            free(back.data);
    }
    free(ids.v);
    tokenizer_close(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const char *const path = fuzz_put("model.gguf", bytes, size);

    read_numbers(path);
    read_model(path);
    read_tokenizer(path);
    return 0;
}
