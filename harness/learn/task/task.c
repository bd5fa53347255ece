/* SPDX-License-Identifier: MIT
 *
 * The table of tasks, their texts and their episodes. */
#include "task.h"

static const struct task_kind *const tasks[] = {&task_tmaze, &task_numpad, &task_catch,
                                                &task_bandit};

static const struct task_kind *kind_of(const char *text)
{
    for (size_t i = 0; i < ARRAY_LEN(tasks); i++)
        if (keyed_is(text, tasks[i]->name))
            return tasks[i];
    return NULL;
}

static struct keyed_name named(const struct task_kind *kind)
{
    return (struct keyed_name){"task", kind->name, kind->keys};
}

bool task_named(const char *text) { return kind_of(text) != NULL; }

bool task_listed(int i, char text[KEYED_TEXT], const char **about)
{
    if (i >= (int)ARRAY_LEN(tasks))
        return false;
    const struct keyed_name name = named(tasks[i]);
    keyed_usual(text, &name);
    *about = tasks[i]->about;
    return true;
}

enum status task_parse(struct task *t, const char *text, struct err *e)
{
    struct err why;

    *t = (struct task){.kind = kind_of(text)};
    CHECK(t->kind);
    const struct keyed_name name = named(t->kind);
    TRY(keyed_read(&name, text, t->value, &t->seed, e));
    if (t->kind->check && t->kind->check(t, &why) != OK)
        return fail(e, E_USAGE, "task \"%.120s\": %s", text, why.msg);
    return OK;
}

int task_length(const struct task *t) { return t->kind->length(t); }
int task_actions(const struct task *t) { return t->kind->actions(t); }
int task_symbols(const struct task *t) { return t->kind->symbols(t); }

void task_begin(const struct task *t, struct episode *e, uint64_t seed, uint64_t number)
{
    *e = (struct episode){.seed = seed, .number = number};
    const uint32_t draw = rng_u32(seed, rng_stream("task.start"), number);
    t->kind->begin(t, e, t->kind->starts ? (int)(draw % (uint32_t)t->kind->starts(t)) : 0);
}

int task_observe(const struct task *t, const struct episode *e)
{
    CHECK(e->t < task_length(t));
    return t->kind->observe(t, e);
}

double task_step(const struct task *t, struct episode *e, int action)
{
    CHECK(e->t < task_length(t) && action >= 0 && action < task_actions(t));
    const double reward = t->kind->step(t, e, action);
    e->t++;
    return reward;
}
