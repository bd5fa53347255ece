/* SPDX-License-Identifier: MIT
 *
 * The line of options that makes one cell again. Its hash is the cell's name in every run, so the
 * order is fixed and what equals a preset is left out. */
#include "plan.h"

#include <stdlib.h>

/* Widths: what follows from others is not said. */
static void print_shape(FILE *f, const struct bench_case *c, const struct options *preset)
{
    if (c->batch != preset->batch.v[0])
        fprintf(f, " --batch %d", c->batch);
    if (workload_is_model(c->workload) && c->layers != DEFAULT_LAYERS)
        fprintf(f, " --layers %d", c->layers);
    if (c->d_model != preset->d_model)
        fprintf(f, " --d-model %d", c->d_model);
    if (c->heads != preset->heads)
        fprintf(f, " --heads %d", c->heads);
    if (c->kv_heads != variant_kv_heads(c->variant, c->heads))
        fprintf(f, " --kv-heads %d", c->kv_heads);
    if (c->d_model % c->heads != 0 || c->d_head != c->d_model / c->heads)
        fprintf(f, " --d-head %d", c->d_head);
    if (c->d_inner != 4 * c->d_model)
        fprintf(f, " --d-inner %d", c->d_inner);
}

static void print_choices(FILE *f, const struct bench_case *c, const struct options *preset)
{
    const struct config usual =
        config_default(c->variant, c->d_model, c->heads, c->d_head, c->d_inner, c->layers, 0);
    char chosen[SETTINGS_TEXT];

    if (c->gate && c->gate != c->variant->gate)
        fprintf(f, " --gate %s", c->gate->name);
    if (c->rnn_cell >= 0 && c->rnn_cell != (int)usual.rnn_cell)
        fprintf(f, " --rnn-cell %s", rnn_cell_name[c->rnn_cell]);
    if (c->halt >= 0 && c->halt != (int)usual.halt)
        fprintf(f, " --halt %s", halt_name[c->halt]);
    if (c->clip >= 0 && c->clip != preset->clips.v[0])
        fprintf(f, " --clip %d", c->clip);
    if (c->clamp_len >= 0 && c->clamp_len != preset->clamp_len)
        fprintf(f, " --clamp-len %d", c->clamp_len);
    if (c->same_length == 1)
        fputs(" --same-length", f);
    if (*c->mask)
        fprintf(f, " --mask '%s'", c->mask);
    if (*c->mask_heads)
        fprintf(f, " --mask-heads %s", c->mask_heads);
    if (c->wiring != c->variant->wiring)
        fprintf(f, " --norm %s", wiring_name[c->wiring]);
    if (c->ffn != c->variant->ffn)
        fprintf(f, " --ffn %s", c->ffn->name);
    case_own_settings(chosen, c);
    if (*chosen)
        fprintf(f, " --set %s", chosen);
}

char *case_repro(const struct bench_case *c, const struct options *preset)
{
    char *line = NULL;
    size_t size;
    FILE *const f = open_memstream(&line, &size);
    char *const rest = options_repro(c->opt);

    if (!f) {
        free(rest);
        return NULL;
    }
    fprintf(f, "--variant %s --backend %s --workload %s --seq %d --mem %d", c->variant->name,
            c->backend->name, workload_name[c->workload], c->seq, c->mem);
    if (case_names_phase(c))
        fprintf(f, " --phase %s", phase_name[c->phase]);
    if (c->mem_kind != MEM_NONE)
        fprintf(f, " --mem-kind %s", mem_kind_name[c->mem_kind]);
    print_shape(f, c, preset);
    print_choices(f, c, preset);
    fprintf(f, " --threads %d%s", c->threads, rest);
    free(rest);
    if (fclose(f) != 0) {
        free(line);
        return NULL;
    }
    return line;
}
