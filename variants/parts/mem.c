/* SPDX-License-Identifier: MIT
 *
 * How past tokens reach a layer. */
#include "mem.h"
#include "parts.h"

const char *const compress_name[COMPRESS_COUNT + 1] = {"mean", "max", "conv", NULL};

static bool does_compress(const struct config *c) { return compressive_of(c)->rows > 0; }
static bool may_compress(const struct config *c) { return c->mem_len > 0 || does_compress(c); }

/* `cmem` decides whether the others apply. */
static const struct choice compressive_choices[] = {
    ROW_INT(struct compressive, rows, "cmem", 0, 1 << 20, "compressed rows of memory",
            .scope = SCOPE_LAYER, .setting = true, .applies = may_compress, .absent = "0"),
    ROW_INT(struct compressive, ratio, "c_ratio", 1, 1 << 12, "rows that one is compressed from",
            .scope = SCOPE_LAYER, .setting = true, .applies = does_compress),
    ROW_WORD(struct compressive, form, "compress", compress_name, "how a row is made of several",
             .applies = does_compress, SETTING),
    {0},
};

static void compressive_usual(const struct config *c, void *numbers)
{
    *(struct compressive *)numbers =
        (struct compressive){.form = COMPRESS_CONV, .rows = c->mem_len / 2, .ratio = 4};
}

static const struct part_numbers compressive_numbers = {
    compressive_choices, .size = NUMBERS_SIZE(struct compressive), .usual = compressive_usual};

/* Each layer caches its inputs for the last mem_len tokens or, at evaluation, the keys and values
 * projected from them. That is exact, because k contains no relative positions. */
const struct mem mem_segment = {.name = "segment", .recurrent = true};

/* Each layer carries a state of fixed size that past tokens decay in, or are overwritten. */
const struct mem mem_state = {.name = "state", .state = true};

/* Likewise, but the state is a sum that nothing leaves: carried along a text it drowns each new
 * token among all past ones. One of M tokens is run from its beginning, M tokens before the
 * segment. */
const struct mem mem_sum = {.name = "sum", .state = true, .sums = true};
const struct mem mem_hybrid = {.name = "hybrid", .recurrent = true, .state = true};

/* As segment, but rows too old for the memory are compressed instead of dropped. */
const struct mem mem_compressive = {
    .name = "compressive", .numbers = &compressive_numbers, .recurrent = true, .compressed = true};

/* No cache: the window is recomputed for every segment. */
const struct mem mem_none = {.name = "none", .recurrent = false};

/* Likewise, but what has run from the first token on need not run again: keys and values stay as long
 * as positions reach. A window that moves along gives its tokens other positions. */
const struct mem mem_prefix = {.name = "prefix", .cached = true};
