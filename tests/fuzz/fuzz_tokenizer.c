/* SPDX-License-Identifier: MIT
 *
 * libFuzzer target (clang -fsanitize=fuzzer): any bytes as the tokenizer.json of a folder, those
 * behind a byte 0 as its tokenizer_config.json; with what is accepted texts are split. */
#include "harness/tokens/tokenizer.h"
#include "structure.h"

static void use(struct tokenizer *t)
{
    static const char text[] =
        "It's  the\n\n end<s>12345 caf\xc3\xa9 e\xcc\x81 \xe4\xb8\x80\xf0\x9f\x98\x80";
    struct ids ids = {0};
    struct bytes back = {0};
    struct err e;
    int n;

    CHECK(tokenizer_begin(t) < tokenizer_vocab(t));
    const int32_t *const front = tokenizer_prefix(t, &n);
    for (int i = 0; i < n; i++)
        CHECK(front[i] >= 0 && front[i] < tokenizer_vocab(t));
    if (tokenizer_encode(t, text, sizeof(text), &ids, &e) == OK) {
        for (size_t i = 0; i < ids.n; i++)
            CHECK(ids.v[i] >= 0 && ids.v[i] < tokenizer_vocab(t));
        if (tokenizer_decode(t, ids.v, ids.n, &back, &e) == OK)
            free(back.data);
    }
    free(ids.v);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const uint8_t none[] = "{}";
    struct tokenizer *t;
    struct err e = {""};
    const uint8_t *const end = size ? memchr(bytes, 0, size) : NULL;

    fuzz_put("tokenizer.json", bytes, end ? (size_t)(end - bytes) : size);
    fuzz_put("tokenizer_config.json", end ? end + 1 : none,
             end ? size - (size_t)(end - bytes) - 1 : 2);
    if (tokenizer_open(&t, fuzz_folder(), &e) == OK)
        use(t);
    else
        CHECK(!t && !strpbrk(e.msg, "\n\r\033"));
    tokenizer_close(t);
    return 0;
}
