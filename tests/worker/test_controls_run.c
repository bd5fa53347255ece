/* SPDX-License-Identifier: MIT
 *
 * One layer of each variant, run beside one of its control: the plan leaves out those that compute
 * the same, and only those. */
#include "tests/support/command_line.h"
#include "tests/support/started_job.h"
#include "variants/model/config/control.h"

enum { D = 32, H = 4, L = 160 };

static void open_layer(struct job *j, const struct bench_case *c)
{
    must_start(j, c);
    job_run(j);
}

Test(controls, a_layer_is_left_out_where_it_computes_what_the_control_does, .timeout = 120)
{
    struct plan p =
        planned("-V xl -b ref --workload layer --seq 160 --mem 0 --d-model 32 --heads 4");
    for (int i = 1; variants[i]; i++) {
        const struct variant *const v = variants[i];
        struct bench_case own = p.cases[0], other = own;
        struct job a, b;
        int dh, F;

        if (v->whole)
            continue;
        variant_sizes(v, D, H, &dh, &F);
        own.variant = v;
        own.config = config_default(v, D, H, dh, F, 1, 0);
        own.config.max_seq = L;
        if (own.config.stream_sinks)
            own.config.window = L / 2; /* fewer than there are */
        for (int k = 0; k < own.config.layer_windows.n; k++)
            own.config.layer_windows.at[k] = fmin(own.config.layer_windows.at[k], L / 2);
        own.mem = other.mem = own.config.mem_len = variant_mem(v)->compressed ? L : 0;
        config_numbers_reset(&own.config);
        model_choices_settle(&own.config);
        own.mem_kind = mem_usual(variant_mem(v), false);
        other.config = control_config(&own.config, 1);
        other.variant = other.config.variant;
        other.mem_kind = mem_usual(variant_mem(other.variant), false);
        open_layer(&a, &own);
        open_layer(&b, &other);
        const bool flop = job_flop(&a) == job_flop(&b);
        const bool out = memcmp(a.out, b.out, a.n_out * sizeof(float)) == 0;
        const bool added = v->pos->embed || v->pos->from_tokens; /* before layers begin */
        if (control_acts_between_layers(v))
            cr_expect(out || flop, "%s computes something else than %s", v->name, v->control);
        else
            cr_expect(!out || !flop || added, "%s computes what %s does", v->name, v->control);
    }
}
