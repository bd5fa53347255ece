/* SPDX-License-Identifier: MIT
 *
 * The scaling of rotary frequencies that a GGUF file has as divisors. */
#include "variants/model/import/gguf_rope.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

enum { PAIRS = 64 };

/* What converters write: by wavelengths, as floats. */
static void write_divisors(float *d, int n, double base, double factor, double original)
{
    const double pi = acos(-1);

    for (int f = 0; f < n; f++) {
        const double wave = 2 * pi * pow(base, (double)f / n);
        const double smooth = (original / wave - 1) / (4 - 1);
        d[f] = (float)(wave < original / 4   ? 1
                       : wave > original / 1 ? factor
                                             : 1 / ((1 - smooth) / factor + smooth));
    }
}

static enum status read(json_t **out, const float *d, int n, double base, struct err *e)
{
    const struct tensor t = {
        .dtype = DTYPE_F32, .rank = 1, .shape = {n}, .n = (size_t)n, .data = d};

    *e = (struct err){""};
    return gguf_rope_scaling(out, &t, base, "file", e);
}

static double number(const json_t *how, const char *key)
{
    return json_number_value(json_object_get(how, key));
}

/* Factor and context come back as they went in, of Llama 3.1, of 3.2 and of others. */
Test(gguf_rope, numbers_come_back)
{
    static const struct {
        int n;
        double base, factor, original;
    } all[] = {{64, 5e5, 8, 8192}, {32, 5e5, 32, 8192}, {12, 5000, 8, 48}, {48, 1e6, 2.5, 4096}};

    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        float d[PAIRS];
        struct err e;
        json_t *how;
        write_divisors(d, all[i].n, all[i].base, all[i].factor, all[i].original);
        cr_assert_eq(read(&how, d, all[i].n, all[i].base, &e), OK, "%s", e.msg);
        cr_expect_str_eq(json_string_value(json_object_get(how, "rope_type")), "llama3");
        cr_expect_eq(number(how, "factor"), all[i].factor);
        cr_expect_eq(number(how, "original_max_position_embeddings"), all[i].original);
        json_decref(how);
    }
}

/* Divisors of 1 are no scaling; others than llama3's are refused by the tensor's name. */
Test(gguf_rope, what_it_is_not)
{
    float d[PAIRS];
    struct err e;
    json_t *how;

    for (int f = 0; f < PAIRS; f++)
        d[f] = 1;
    cr_expect_eq(read(&how, d, PAIRS, 1e4, &e), OK);
    cr_expect_null(how);
    for (int wrong = 0; wrong < 4; wrong++) {
        write_divisors(d, PAIRS, 5e5, 8, 8192);
        d[wrong == 0 ? 0 : wrong == 1 ? PAIRS - 1 : 40] *= wrong == 2 ? NAN : 1.01f;
        for (int f = 0; wrong == 3 && f < PAIRS; f++)
            d[f] = 0.5f;
        cr_expect_eq(read(&how, d, PAIRS, 5e5, &e), E_IO, "%d", wrong);
        cr_expect(strstr(e.msg, "rope_freqs.weight") && strstr(e.msg, "  -> "), "%s", e.msg);
    }
}
