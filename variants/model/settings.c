/* SPDX-License-Identifier: MIT
 *
 * Settings: the table, and their text. */
#include "settings.h"
#include "variants/parts/parts.h"

#include <stdio.h>
#include <string.h>

static bool has_rnn(const struct config *c) { return c->rnn_layers > 0; }
static bool has_experts(const struct config *c) { return c->ffn && c->ffn->aux; }
static bool has_random_features(const struct config *c)
{
    return c->mixer && c->mixer->features > FEATURES_ELU;
}
static bool may_compress(const struct config *c)
{
    return c->variant->mem->compressed && c->mem_len > 0;
}
static bool does_compress(const struct config *c) { return c->cmem > 0; }
static bool has_persistent(const struct config *c) { return c->attn_extra == &extra_persistent; }
static bool has_span(const struct config *c) { return c->attn_extra == &extra_span; }

#define NUMBER(field)                                                                              \
    static int get_##field(const struct config *c) { return c->field; }                            \
    static void set_##field(struct config *c, int value) { c->field = value; }
NUMBER(rnn_window)
NUMBER(experts)
NUMBER(moe_k)
NUMBER(features)
NUMBER(cmem)
NUMBER(c_ratio)
NUMBER(persistent)
NUMBER(span_max)
static int get_rnn_carry(const struct config *c) { return c->rnn_carry; }
static void set_rnn_carry(struct config *c, int value) { c->rnn_carry = value != 0; }

#define OF(field) get_##field, set_##field
enum { WIDE = 1 << 20, DEEP = 1 << 12 }; /* what readers of checkpoints believe */

/* One that decides whether another applies stands in front of it. */
const struct setting settings[] = {
    {"rnn_window", "tokens of a LocalRNN", 1, WIDE, false, has_rnn, OF(rnn_window)},
    {"rnn_carry", "1: its windows begin in the segment before", 0, 1, false, has_rnn,
     OF(rnn_carry)},
    {"experts", "feed-forward networks of a layer", 1, DEEP, false, has_experts, OF(experts)},
    {"moe_k", "of them that a token takes", 1, DEEP, false, has_experts, OF(moe_k)},
    {"features", "random ones of a head", 1, DEEP, false, has_random_features, OF(features)},
    {"cmem", "compressed rows of memory", 0, WIDE, false, may_compress, OF(cmem)},
    {"c_ratio", "rows that one is compressed from", 1, DEEP, false, does_compress, OF(c_ratio)},
    {"persistent", "learned keys of a head", 1, WIDE, true, has_persistent, OF(persistent)},
    {"span_max", "tokens of the longest span", 0, WIDE, true, has_span, OF(span_max)},
    {0},
};

const char *setting_name(int i) { return settings[i].name; }

/* ---- text --------------------------------------------------------------------------------- */

static const struct setting *find(const char *name)
{
    for (const struct setting *s = settings; s->name; s++)
        if (strcmp(s->name, name) == 0)
            return s;
    return NULL;
}

static enum status unreadable(const char *text, const char *at, struct err *e)
{
    char names[160] = "";

    for (const struct setting *s = settings; s->name; s++)
        snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s", *names ? ", " : "",
                 s->name);
    return fail(e, E_USAGE, "--set \"%.80s\": cannot read \"%.30s\"  -> NAME=N,... of %s", text, at,
                names);
}

/* Read "NAME=N" at `at`. Returns its length, 0 where it is none. */
static int read_one(const char *at, const struct setting **s, int *value)
{
    char name[24] = "";
    int end = 0;

    if (sscanf(at, "%23[a-z_]=%9d%n", name, value, &end) != 2 || (at[end] && at[end] != ','))
        return 0;
    *s = find(name);
    return *s ? end : 0;
}

static enum status check_text(const char *text, struct err *e)
{
    for (const char *at = text; *text; at++) {
        const struct setting *s = NULL;
        int value = 0;
        const int end = read_one(at, &s, &value);
        if (end == 0)
            return unreadable(text, at, e);
        if (value < s->least || value > s->most)
            return fail(e, E_USAGE, "--set %s=%d: %s  -> from %d to %d", s->name, value, s->of,
                        s->least, s->most);
        at += end;
        if (!*at)
            break;
    }
    return OK;
}

/* The last value that the text gives it; false where it gives none. */
static bool value_in(const char *text, const struct setting *wanted, int *value)
{
    bool found = false;

    for (const char *at = text; *text; at++) {
        const struct setting *s = NULL;
        int n = 0;
        at += read_one(at, &s, &n);
        if (s == wanted) {
            *value = n;
            found = true;
        }
        if (!*at)
            break;
    }
    return found;
}

static bool applies(const struct setting *s, const struct config *c, bool core)
{
    return (s->core || !core) && s->applies(c);
}

enum status settings_parse(struct config *c, const char *text, bool core, struct err *e)
{
    const enum status st = check_text(text, e);
    int value = 0;

    for (const struct setting *s = settings; st == OK && s->name; s++)
        if (applies(s, c, core) && value_in(text, s, &value))
            s->set(c, value);
    return st;
}

enum status settings_fit(const struct config *c, struct err *e)
{
    if (may_compress(c) && c->cmem >= c->mem_len)
        return fail(e, E_USAGE, "--set cmem=%d of %d rows of memory  -> fewer", c->cmem,
                    c->mem_len);
    return OK;
}

void settings_print(char text[SETTINGS_TEXT], const struct config *c, const struct config *but,
                    bool core)
{
    size_t n = 0;

    *text = '\0';
    for (const struct setting *s = settings; s->name; s++) {
        if (!applies(s, c, core) || (but && s->get(but) == s->get(c)))
            continue;
        n += (size_t)snprintf(text + n, SETTINGS_TEXT - n, "%s%s=%d", n ? "," : "", s->name,
                              s->get(c));
        CHECK(n < SETTINGS_TEXT);
    }
}
