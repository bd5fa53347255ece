/* SPDX-License-Identifier: MIT
 *
 * The request "play OPTIONS": episodes of a task with a checkpoint that has learnt it. */
#include "harness/table/record.h"
#include "score_child.h"

/* Numbers of the answer. */
#define PLAY_NUMBERS(X) X(episodes) X(mean) X(low) X(high) X(random) X(optimum)

static enum status play_line(struct play_score *out, const char *line, struct err *e)
{
    struct options o = {0};
    enum status st = options_parse_again(&o, line, e);

    if (st == OK) {
        cpu_limit((enum isa)o.max_isa);
        st = play_score(out, &o, e);
    }
    options_free(&o);
    return st;
}

static enum status obey(struct server *s, const char *words, struct err *e)
{
    struct play_score r;

    TRY(play_line(&r, words, e));
#define X(name) TRY(protocol_write(&s->protocol, e, #name " %.17g", (double)r.name));
    PLAY_NUMBERS(X)
#undef X
    return protocol_write(&s->protocol, e, "end");
}

const struct request request_play = {"play", obey};

static void hear(void *arg, const char *name, const char *value)
{
    struct play_score *const a = arg;

#define X(field)                                                                                   \
    if (strcmp(name, #field) == 0)                                                                 \
        a->field = strtod(value, NULL);
    PLAY_NUMBERS(X)
#undef X
}

enum status play_in_child(struct play_score *out, const char *line, const struct child_setup *setup,
                          struct err *e)
{
    *out = (struct play_score){.step = I64_EMPTY};
    return child_ask_to_the_end(setup, &request_play, line, hear, out, e);
}
