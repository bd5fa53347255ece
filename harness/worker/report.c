/* SPDX-License-Identifier: MIT
 *
 * A report as lines of the protocol, each made and read by the rows of one list. */
#include "report.h"

/* The backends of the row operations of a layer, each once, joined by '+'. */
static void name_rows(char *buf, size_t size, const struct engine *g)
{
    static const enum op rows[] = {OP_softmax, OP_norm, OP_act, OP_gate};

    buf[0] = '\0';
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        bool named = false;
        for (size_t k = 0; k < i; k++)
            named |= g->provider[rows[k]] == g->provider[rows[i]];
        if (!named)
            text_append(buf, size, "%s%s", *buf ? "+" : "", g->provider[rows[i]]);
    }
}

void report_describe(struct report *r, const struct engine *g, const struct team *team)
{
    snprintf(r->gemm_from, sizeof(r->gemm_from), "%s", g->provider[OP_gemm]);
    name_rows(r->rows_from, sizeof(r->rows_from), g);
    snprintf(r->isa_used, sizeof(r->isa_used), "%s", isa_name[g->isa]);
    if (g->backend->core)
        snprintf(r->core, sizeof(r->core), "%s", g->backend->core());
    if (g->backend->config)
        snprintf(r->config, sizeof(r->config), "%s", g->backend->config());
    cpu_name(r->cpu, sizeof(r->cpu));
    snprintf(r->cpus, sizeof(r->cpus), "%s", team->cpus);
    r->threads_seen = team->seen;
    r->mixed_kinds = team->mixed;
}

enum status report_send(const struct report *r, struct protocol *t, struct err *e)
{
#define X(name)                                                                                    \
    if (r->name[0])                                                                                \
        TRY(protocol_write(t, e, #name " %s", r->name));
    REPORT_TEXTS(X)
#undef X
#define X(name) TRY(protocol_write(t, e, #name " %.17g", r->name));
    REPORT_REALS(X)
#undef X
    for (int p = 0; p < PART_COUNT; p++)
        TRY(protocol_write(t, e, "part%d %.17g", p, r->part_bytes[p]));
    return protocol_write(t, e, "end");
}

void report_field(void *arg, const char *name, const char *value)
{
    struct report *const r = arg;

#define X(field)                                                                                   \
    if (strcmp(name, #field) == 0)                                                                 \
        snprintf(r->field, sizeof(r->field), "%s", value);
    REPORT_TEXTS(X)
#undef X
#define X(field)                                                                                   \
    if (strcmp(name, #field) == 0)                                                                 \
        r->field = strtod(value, NULL);
    REPORT_REALS(X)
#undef X
    for (int p = 0; p < PART_COUNT; p++) {
        char part[16];
        snprintf(part, sizeof(part), "part%d", p);
        if (strcmp(name, part) == 0)
            r->part_bytes[p] = strtod(value, NULL);
    }
}
