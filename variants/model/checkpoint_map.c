/* SPDX-License-Identifier: MIT
 *
 * Reading what a file says about the map in front of q, k and v and about compressed memory. */
#include "checkpoint.h"
#include "variants/parts/dextra.h"
#include "variants/parts/parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_WIDTH = 64, MAX_GROUPS = 1 << 16, MAX_ROWS = 1 << 20 };

static const struct {
    const char *name;
    enum act_kind kind;
} acts[] = {
    {"relu", ACT_RELU}, {"gelu", ACT_GELU}, {"gelu_tanh", ACT_GELU_TANH}, {"swish", ACT_SWISH}};

const char *checkpoint_act_name(enum act_kind kind)
{
    for (size_t i = 0; i < ARRAY_LEN(acts); i++)
        if (acts[i].kind == kind)
            return acts[i].name;
    return "none";
}

static enum status unknown(const struct safetensors *s, const char *key, const char *value,
                           struct err *e)
{
    return fail(e, E_IO, "%s: unknown %s \"%s\"  -> is it made for a newer program?", s->path, key,
                value);
}

/* The next number of "3,4" that lies in [1, most]; NAN where there is none. */
static double next_number(const char **at, double most)
{
    char *end;
    const double value = strtod(*at, &end);

    if (end == *at || (*end != ',' && *end != '\0') || !(value >= 1 && value <= most))
        return NAN;
    *at = *end == ',' ? end + 1 : NULL;
    return value;
}

/* The first and the last of a list of one number per layer, of which those between lie on a line,
 * in whole numbers rounded down. */
static enum status read_ends(const struct safetensors *s, const char *key, int N, bool whole,
                             double most, double out[2], struct err *e)
{
    const char *const text = safetensors_meta(s, key), *at = text;
    int n = 0;

    if (!text)
        return OK;
    for (double value; at; n++) {
        value = next_number(&at, most);
        if (isnan(value))
            return fail(e, E_IO, "%s: %s \"%s\" is no list of numbers up to %g  -> such as 4,8",
                        s->path, key, text, most);
        out[n > 0] = value;
        out[1] = value;
    }
    at = text;
    for (int i = 0; n > 2 && i < n; i++) {
        const double line = out[0] + (out[1] - out[0]) * i / (n - 1),
                     value = next_number(&at, most);
        if (n != N || fabs((whole ? floor(line) : line) - value) > 1e-4 * value)
            return fail(e, E_IO, "%s: %s \"%s\" is not a line over %d layers  -> such as 4,8",
                        s->path, key, text, N);
    }
    return OK;
}

static enum status read_act(const struct safetensors *s, enum act_kind *kind, struct err *e)
{
    const char *name = safetensors_meta(s, "glt_act");

    if (!name)
        return OK;
    for (size_t i = 0; i < ARRAY_LEN(acts); i++)
        if (strcmp(acts[i].name, name) == 0) {
            *kind = acts[i].kind;
            return OK;
        }
    return unknown(s, "glt_act", name, e);
}

static enum status read_compress(const struct safetensors *s, struct config *c, struct err *e)
{
    const char *const name = safetensors_meta(s, "compress");
    enum status st = safetensors_int(s, "c_ratio", c->c_ratio, 0, MAX_ROWS, &c->c_ratio, e);

    c->cmem = 0;
    c->c_ratio = max_int(1, c->c_ratio);
    if (st != OK || !name || strcmp(name, "none") == 0)
        return st;
    st = safetensors_int(s, "cmem", 0, 0, MAX_ROWS, &c->cmem, e);
    for (int i = 0; i < COMPRESS_COUNT && st == OK; i++)
        if (strcmp(compress_name[i], name) == 0) {
            c->compress = (enum compress)i;
            return OK;
        }
    return st == OK ? unknown(s, "compress", name, e) : st;
}

enum status checkpoint_map(const struct safetensors *s, struct config *c, struct err *e)
{
    const char *const form = safetensors_meta(s, "dextra");
    double depth[2] = {c->dextra_depth[0], c->dextra_depth[1]};
    double width[2] = {(double)c->dextra_width[0], (double)c->dextra_width[1]};
    int shuffle = 0, norm = 0;
    enum status st;

    if ((st = read_compress(s, c, e)) != OK)
        return st;
    c->qkv_map = NULL;
    if (!form || strcmp(form, "none") == 0)
        return OK;
    if (strcmp(form, "paper") != 0 && strcmp(form, "code") != 0)
        return unknown(s, "dextra", form, e);
    c->qkv_map = &qkv_dextra;
    c->dextra_code = strcmp(form, "code") == 0;
    if ((st = read_ends(s, "dextra_depth", c->N, true, MAX_DEXTRA_DEPTH, depth, e)) != OK ||
        (st = read_ends(s, "dextra_width", c->N, false, MAX_WIDTH, width, e)) != OK ||
        (st = safetensors_int(s, "glt_max_groups", c->glt_groups, 1, MAX_GROUPS, &c->glt_groups,
                              e)) != OK ||
        (st = safetensors_int(s, "glt_shuffle", 0, 0, 1, &shuffle, e)) != OK ||
        (st = safetensors_int(s, "glt_norm", 0, 0, 1, &norm, e)) != OK ||
        (st = read_act(s, &c->glt_act, e)) != OK)
        return st;
    for (int i = 0; i < 2; i++) {
        c->dextra_depth[i] = (int)depth[i];
        c->dextra_width[i] = (float)width[i];
    }
    c->glt_shuffle = shuffle;
    c->glt_norm = norm;
    return OK;
}
