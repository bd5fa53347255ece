/* SPDX-License-Identifier: MIT
 *
 * See command_line.h. */
#include "command_line.h"
#include "program.h"

enum status parse_words(struct options *o, const char *line, struct err *e)
{
    char buf[1024], program[] = "bench", *argv[128] = {program};
    int argc = 1;

    CHECK(strlen(line) < sizeof(buf));
    strcpy(buf, line);
    for (char *word = strtok(buf, " "); word; word = strtok(NULL, " ")) {
        CHECK(argc < (int)ARRAY_LEN(argv) - 1);
        if (strcmp(word, "''") == 0)
            *word = '\0';
        argv[argc++] = word;
    }
    const enum status st = options_parse(o, argc, argv, e);
    kept_copy(o, sizeof(*o));
    return st;
}

static enum status plan_words(struct plan *p, struct options *o, const char *line, struct err *e)
{
    forget_settings(); /* only the line counts */
    cr_assert_eq(parse_words(o, line, e), OK, "%s: %s", line, e->msg);
    o->default_threads = 3;
    *p = (struct plan){0};
    const enum status st = plan_asked(p, o, e);
    kept_copy(p, sizeof(*p));
    return st;
}

void must_plan(struct plan *p, struct options *o, const char *line)
{
    cr_assert_eq(plan_words(p, o, line, &failure), OK, "%s: %s", line, failure.msg);
}

enum status try_plan(struct plan *p, const char *line, struct err *e)
{
    struct options *const o = room(1, sizeof(*o));

    return plan_words(p, o, line, e);
}

struct plan planned(const char *fmt, ...)
{
    struct options *const o = room(1, sizeof(*o));
    char line[1024];
    struct plan p;
    va_list ap;

    va_start(ap, fmt);
    cr_assert_lt(vsnprintf(line, sizeof(line), fmt, ap), (int)sizeof(line));
    va_end(ap);
    must_plan(&p, o, line);
    o->huge_pages = HUGE_NEVER; /* to clear one takes longer than most of these cases run */
    return p;
}

struct config model_of_line(const char *line)
{
    const struct variant *chosen[MAX_LOOKUP];
    struct config c;
    struct options o;
    int n = 0;

    const char *const words = kept_text("-V %s", line);
    forget_settings();
    cr_assert_eq(parse_words(&o, words, &failure), OK, "%s: %s", line, failure.msg);
    cr_assert_eq(lookup_variants(chosen, &n, &o, &failure), OK, "%s: %s", line, failure.msg);
    cr_assert_eq(n, 1, "%s", line);
    cr_assert_eq(config_from_options(&c, chosen[0], &o, 16, 4, 256, SCOPE_MODEL, false, false, NULL,
                                     &failure),
                 OK, "%s: %s", line, failure.msg);
    c.max_seq = 8;
    return c;
}

bool same_shape(const struct bench_case *a, const struct bench_case *b)
{
    return a->workload == b->workload && a->phase == b->phase && a->seq == b->seq &&
           a->mem == b->mem && a->batch == b->batch && a->layers == b->layers &&
           a->config.D == b->config.D && a->config.H == b->config.H &&
           a->config.dh == b->config.dh && a->config.F == b->config.F && a->threads == b->threads;
}
