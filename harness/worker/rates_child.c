/* SPDX-License-Identifier: MIT
 *
 * Both sides of the request "rates": the parent asks a child how fast the reference runs here;
 * the child measures. */
#include "rates_child.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* X(member) of struct reference_rates. */
#define FIELDS(X)                                                                                  \
    X(products)                                                                                    \
    X(attention)                                                                                   \
    X(backward)                                                                                    \
    X(spent_s)

static enum status obey(struct server *s, const char *words, struct err *e)
{
    struct reference_rates r;
    const int threads = atoi(words);

    if (threads < 1)
        return fail(e, E_CHILD, "unexpected request: rates %.40s", words);
    TRY(reference_rates_measure(&r, threads, e));
#define X(member) TRY(protocol_write(&s->protocol, e, #member " %.17g", r.member));
    FIELDS(X)
#undef X
    return protocol_write(&s->protocol, e, "end");
}

const struct request request_rates = {"rates", obey};

static void field(void *arg, const char *name, const char *value)
{
    struct reference_rates *const r = arg;

#define X(member)                                                                                  \
    if (strcmp(name, #member) == 0)                                                                \
        r->member = strtod(value, NULL);
    FIELDS(X)
#undef X
}

enum status reference_rates_in_child(const struct child_setup *setup, struct reference_rates *out,
                                     struct err *e)
{
    struct child child;
    char words[16];
    bool good = true;

    *out = (struct reference_rates){0};
    snprintf(words, sizeof(words), "%d", max_int(1, setup->reference_threads));
    enum status st = child_begin(&child, setup, &request_rates, words, e);
    if (st == OK)
        st = child_answer(&child, field, out, e);
    child_close(&child);
#define X(member) good = good && out->member > 0 && out->member < 1e18; /* false for NaN */
    FIELDS(X)
#undef X
    return st == OK && !good ? fail(e, E_CHILD, "a child sent no rates of the reference") : st;
}
