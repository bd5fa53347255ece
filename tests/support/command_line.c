/* SPDX-License-Identifier: MIT
 *
 * See command_line.h. */
#include "command_line.h"
#include "program.h"

#include <criterion/criterion.h>
#include <string.h>

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
    return options_parse(o, argc, argv, e);
}

void must_plan(struct plan *p, struct options *o, const char *line)
{
    struct err e;
    forget_settings(); /* only the line counts */
    enum status st = parse_words(o, line, &e);

    cr_assert_eq(st, OK, "%s: %s", line, e.msg);
    o->default_threads = 3;
    st = plan_asked(p, o, &e);
    cr_assert_eq(st, OK, "%s: %s", line, e.msg);
}

void drop_plan(struct plan *p, struct options *o)
{
    plan_free(p);
    options_free(o);
}

bool same_shape(const struct bench_case *a, const struct bench_case *b)
{
    return a->workload == b->workload && a->phase == b->phase && a->seq == b->seq &&
           a->mem == b->mem && a->batch == b->batch && a->layers == b->layers &&
           a->config.D == b->config.D && a->config.H == b->config.H &&
           a->config.dh == b->config.dh && a->config.F == b->config.F && a->threads == b->threads;
}
