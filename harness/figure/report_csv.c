/* SPDX-License-Identifier: MIT
 *
 * Writes the tables that the report's script reads. */
#include "report_csv.h"

#include "harness/measure/ranking.h"
#include "harness/measure/study_answer.h"
#include "harness/measure/study_verdict.h"
#include "harness/plan/case.h"
#include "harness/table/keys.h"
#include "plot_run.h"
#include "seeds.h"
#include "variants/backends/backend.h"
#include "variants/variant.h"

#include <limits.h>
#include <stdlib.h>

void report_print_columns(FILE *f)
{
    static const char *const type[] = {
        [COLUMN_TEXT] = "text", [COLUMN_I64] = "i64", [COLUMN_REAL] = "real"};

    fputs("table,name,type,unit,role,own,meaning\n", f);
    for (int t = 0; t < TABLE_COUNT; t++)
        for (int i = 0; i < tables[t].n; i++) {
            const struct column *const c = &tables[t].columns[i];
            fprintf(f, "%s,%s,%s,%s,%s,%d,\"%s\"\n", tables[t].name, c->name, type[c->type],
                    c->unit, plot_role_name(plot_role(&tables[t], c)),
                    is_of_variant(chosen_find(c->name)), c->meaning);
        }
}

void report_print_styles(FILE *f)
{
    fputs("column,name,style,reference\n", f);
    for (int i = 0; variants[i]; i++)
        fprintf(f, "variant,%s,%d,0\n", variants[i]->name, plot_variant_style(variants[i]->name));
    for (int i = 0; backends[i]; i++)
        fprintf(f, "backend,%s,%d,%d\n", backends[i]->name, plot_backend_style(backends[i]->name),
                plot_is_reference(backends[i]->name));
}

void report_print_rows(FILE *f, const struct plot_data *d, const struct plot_file *file)
{
    const struct table *const t = file->table;
    const struct rows *const rows =
        file->train >= 0 ? &d->train[file->train].rows : &d->table[t - tables];
    struct selection all;

    CHECK(columns_select(&all, t, NULL, 0, NULL) == OK);
    row_print_names(f, FORMAT_CSV, t, &all);
    for (size_t i = 0; i < rows->n; i++)
        row_print(f, FORMAT_CSV, t, &all, (const char *)rows->row + i * t->row_size);
}

enum status report_print_scores(struct bytes *out, const struct plot_data *d, struct err *e)
{
    const struct plot_file file = {.table = &tables[TABLE_PERPLEXITY], .train = -1};
    struct scores s;
    FILE *const f = bytes_open(out, e);
    enum status st = f ? scores_by_contender(&s, d, e) : E_NOMEM;

    if (st == OK)
        report_print_rows(f, &s.data, &file);
    if (f)
        scores_free(&s);
    if (f && bytes_close(f, out, st == OK ? e : &(struct err){""}) != OK && st == OK)
        st = E_NOMEM;
    return st;
}

/* ---- rankings ----------------------------------------------------------------------------- */

static enum status print_rankings(FILE *f, FILE *answer, const struct run *run, struct err *e)
{
    enum status st = OK;

    rankings_print_csv_header(f);
    for (enum ranked what = RANKED_VARIANTS; what <= RANKED_BACKENDS && st == OK; what++) {
        struct rankings r;
        st = rankings_make(&r, run, what, e);
        if (st != OK)
            break;
        rankings_print_csv(f, &r, what);
        rankings_answer(answer, &r, what, INT_MAX);
        for (int i = 0; i < r.n && what == RANKED_VARIANTS; i++)
            ranking_say_networks(answer, &r.v[i], "The ");
        rankings_free(&r);
    }
    return st;
}

static const double usual_threshold = 0.02; /* --threshold */

static enum status answer_study(FILE *answer, const struct rows *study, struct err *e)
{
    struct study_verdicts v;
    const enum status st = study_verdicts_make(&v, study, usual_threshold, e);

    if (st != OK)
        return st;
    study_answer(answer, &v);
    study_verdicts_free(&v);
    return OK;
}

enum status report_rank(struct bytes *out, struct bytes *answer, char *unsampled, size_t size,
                        const struct plot_data *d, struct err *e)
{
    struct plot_run run;

    plot_run_open(&run, d);
    text_put(unsampled, size, run.unsampled);
    FILE *const f = bytes_open(out, e), *const said = bytes_open(answer, e);
    enum status st = f && said ? print_rankings(f, said, &run.run, e) : E_NOMEM;
    if (st == OK)
        st = answer_study(said, &d->table[TABLE_STUDY], e);
    struct err *const why = st == OK ? e : &(struct err){""};
    if (f && bytes_close(f, out, why) != OK)
        st = E_NOMEM;
    if (said && bytes_close(said, answer, why) != OK)
        st = E_NOMEM;
    plot_run_close(&run);
    return st;
}

enum status report_judge(struct bytes *out, const struct plot_data *d, struct err *e)
{
    struct study_verdicts v;
    FILE *const f = bytes_open(out, e);
    enum status st =
        f ? study_verdicts_make(&v, &d->table[TABLE_STUDY], usual_threshold, e) : E_NOMEM;

    if (st == OK) {
        st = study_verdicts_print(f, &v, FORMAT_CSV, e);
        study_verdicts_free(&v);
    }
    if (f && bytes_close(f, out, st == OK ? e : &(struct err){""}) != OK && st == OK)
        st = E_NOMEM;
    return st;
}
