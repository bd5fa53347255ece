/* SPDX-License-Identifier: MIT
 *
 * Shapes where kernels go wrong, and their plans. */
#include "check_shapes.h"

/* One query, no memory, more memory than segment, odd head widths, H*dh != D, several sequences,
 * clips at both ends, every gate, every kind of memory. */
const char *const check_shapes[] = {
    "--workload attn --seq 1,37 --mem 0,19,64 --batch 1,2 --d-model 48 --heads 3 --d-head 20 "
    "--clip 0,5,64",
    "--workload attn --seq 129,200 --mem 0,300 --d-model 64 --heads 2 --d-head 7",
    "--workload attn --seq 40 --mem 24 --d-model 32 --heads 2 --clamp-len 9",
    "--workload attn --seq 40 --mem 24 --d-model 32 --heads 2 --same-length",
    "--workload layer --seq 1,37 --mem 0,19,64 --batch 1,2 --d-model 48 --heads 3 --d-head 20 "
    "--d-inner 90 --gate gru,input,output,highway,sigtanh,residual",
    "--workload segment,decode --layers 2 --seq 23 --mem 0,41 --batch 1,2 --d-model 48 --heads 3 "
    "--d-inner 96 --mem-kind hidden,kv,recompute,state",
    "--workload attn --phase fwd_bwd --seq 1,37 --mem 0,64 --batch 2 --d-model 48 --heads 3 "
    "--d-head 20 --clip 0,5,64",
    "--workload layer --phase fwd_bwd --seq 1,37 --mem 0,64 --batch 2 --d-model 48 --heads 3 "
    "--d-head 20 --d-inner 90 --gate gru,input,output,highway,sigtanh,residual",
    "--workload attn,layer --phase fwd,fwd_bwd --direction both --seq 1,37 --mem 0 --batch 2 "
    "--d-model 48 --heads 3 --d-head 20 --d-inner 90",
    "--workload layer,decode --phase fwd --head-windows 5,9;40,0,3 --seq 1,37 --mem 19,64 "
    "--d-model 48 --heads 3",
    "--workload cross --phase fwd,fwd_bwd --seq 1,37 --mem 5,64 --batch 2 --d-model 48 --heads 3 "
    "--d-head 20",
    "--workload cross --mem-kind kv --seq 1,9 --mem 41 --d-model 48 --heads 6 --kv-heads 3",
    "--workload train --layers 2 --seq 23 --mem 0,41 --batch 2 --d-model 48 --heads 3 --d-inner 96",
    "--workload attn,layer,decode --seq 1,37 --mem 0,19 --d-model 48 --heads 6 --kv-heads 3",
    "--workload attn,layer --phase fwd,fwd_bwd --seq 37 --mem 0,64 --batch 2 --d-model 48 --heads "
    "3 --mask window=5,dilation=3;block=7,back=1,global=3,random=2;stride=6,fixed=5,summary=2",
};
const int check_shape_count = ARRAY_LEN(check_shapes);

static bool takes_all(const struct shape *s)
{
    struct err e;

    return s->st == OK && taken_check(&s->plan.taken, &s->o, "", &e) == OK;
}

static void plan_shape(struct shape *s, const struct names *chosen)
{
    plan_free(&s->plan);
    s->o.variants = *chosen;
    s->st = plan_make(&s->plan, &s->o, &s->why);
}

/* What one of the chosen variants excludes is no reason to leave the others out. */
static void plan_chosen(struct shape *s, const struct names *chosen)
{
    int n = 0;

    plan_shape(s, chosen);
    if (s->st != E_USAGE || chosen->n == 0)
        return;
    s->fit = need_room((size_t)chosen->n, sizeof(*s->fit));
    for (int i = 0; i < chosen->n; i++) {
        plan_shape(s, &(struct names){&chosen->v[i], 1});
        if (s->st == OK)
            s->fit[n++] = chosen->v[i];
    }
    if (n > 0)
        plan_shape(s, &(struct names){s->fit, n});
    else
        s->st = E_UNSUPPORTED;
}

void shape_open(struct shape *s, const struct options *chosen, const struct backend *b, int threads,
                const char *line)
{
    *s = (struct shape){.line = line};
    s->st = options_parse_line(&s->o, line, &s->why);
    if (s->st == OK && b->adds != ELEM_F32) /* what it computes itself */
        s->st = options_default(&s->o, "dtype", elem_name[b->adds], &s->why);
    const struct names own_variants = s->o.variants, own_backends = s->o.backends;
    if (s->st == OK) {
        s->o.backends = (struct names){(const char *[]){b->name}, 1};
        s->o.default_threads = threads;
        s->o.seed = chosen->seed;
        s->o.impl = chosen->impl;
        plan_chosen(s, &chosen->variants);
        for (int i = 0; variants[i] && !takes_all(s) && !options_given(chosen, "variant"); i++)
            plan_shape(s, &(struct names){(const char *[]){variants[i]->name}, 1});
    }
    s->o.variants = own_variants; /* the lists that o owns */
    s->o.backends = own_backends;
}

void shape_close(struct shape *s)
{
    plan_free(&s->plan);
    options_free(&s->o);
    free(s->fit);
}
