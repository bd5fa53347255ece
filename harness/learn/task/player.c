/* SPDX-License-Identifier: MIT
 *
 * Observe, think, act. */
#include "player.h"
#include "actor_critic.h"

int player_symbols(const struct task *t) { return max_int(task_symbols(t), task_actions(t) + 1); }

enum status player_check(const struct lm *m, struct err *e)
{
    if (!lm_has_logits(m) || m->drive->heads || m->drive->predicts)
        return fail(e, E_UNSUPPORTED,
                    "%s: --task needs one output of plain logits  -> choose a variant without "
                    "clusters of words, exits or losses of layers",
                    m->c.variant->name);
    return OK;
}

void player_bind(struct player *p, int steps, struct arena *a)
{
    const size_t B = (size_t)p->B, rows = B * (size_t)steps;
    const size_t all = B * (size_t)task_length(&p->task);

    p->episodes = arena_take(a, PART_ACTIVATIONS, B * sizeof(*p->episodes));
    p->returns = arena_take(a, PART_ACTIVATIONS, B * sizeof(*p->returns));
    p->seen = arena_take(a, PART_ACTIVATIONS, all * sizeof(*p->seen));
    p->done = arena_take(a, PART_ACTIVATIONS, all * sizeof(*p->done));
    p->actions = arena_take(a, PART_ACTIVATIONS, rows * sizeof(*p->actions));
    p->rewards = arena_f32(a, PART_ACTIVATIONS, rows);
}

void player_begin(struct player *p, enum split split, uint64_t batch)
{
    for (int b = 0; b < p->B; b++) {
        task_begin(&p->task, &p->episodes[b], (uint64_t)split + SPLIT_COUNT * p->task.seed,
                   batch * (uint64_t)p->B + (uint64_t)b);
        p->returns[b] = 0;
    }
}

void player_look(struct player *p, int at)
{
    for (int b = 0; b < p->B; b++)
        p->seen[b * task_length(&p->task) + at] = task_observe(&p->task, &p->episodes[b]);
}

void player_think(struct player *p, struct lm *m, int from, int to, int scored)
{
    const int n = to - from;

    for (int b = 0; b < p->B; b++)
        memcpy(p->tokens + b * n, p->seen + b * task_length(&p->task) + from,
               sizeof(*p->tokens) * (size_t)n);
    lm_forward(m, p->engine, p->tokens, p->B, n, scored, NULL, NULL);
}

void player_steps(struct player *p, struct lm *m, int at, int n, int past, const char *stream,
                  uint64_t batch)
{
    const int A = task_actions(&p->task), length = task_length(&p->task);
    const uint64_t draws = rng_stream(stream);

    for (int i = 0; i < n; i++) {
        player_look(p, at + i);
        player_think(p, m, at - past, at + i + 1, 1);
        for (int b = 0; b < p->B; b++) {
            const uint64_t step = batch * (uint64_t)length + (uint64_t)(at + i);
            const double u = rng_uniform(p->seed, draws, step * (uint64_t)p->B + (uint64_t)b);
            const int a = actor_critic_draw(m->logits + (ptrdiff_t)b * m->c.V, A, u);
            const double reward = task_step(&p->task, &p->episodes[b], a);
            p->done[b * length + at + i] = p->actions[b * n + i] = a;
            p->rewards[b * n + i] = (float)reward;
            p->returns[b] += reward;
        }
    }
}
