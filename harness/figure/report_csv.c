/* SPDX-License-Identifier: MIT
 *
 * Writes the tables that the report's script reads. */
#include "report_csv.h"

#include "harness/measure/ranking.h"
#include "harness/measure/study_answer.h"
#include "harness/table/keys.h"
#include "plot_run.h"
#include "seeds.h"

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

void report_print_scores(FILE *f, const struct plot_data *d)
{
    const struct plot_file file = {.table = &tables[TABLE_PERPLEXITY], .train = -1};
    struct scores s = scores_by_contender(d);

    report_print_rows(f, &s.data, &file);
    scores_free(&s);
}

/* ---- rankings ----------------------------------------------------------------------------- */

static const double usual_threshold = 0.02; /* --threshold */

void report_rank(FILE *f, FILE *answer, char *unsampled, size_t size, const struct plot_data *d)
{
    struct study_verdicts v = study_verdicts_make(&d->table[TABLE_STUDY], usual_threshold);
    struct plot_run run;

    plot_run_open(&run, d);
    text_put(unsampled, size, run.unsampled);
    rankings_print_csv_header(f);
    for (enum ranked what = RANKED_VARIANTS; what <= RANKED_BACKENDS; what++) {
        struct rankings r = rankings_make(&run.run, what);
        rankings_print_csv(f, &r, what);
        rankings_answer(answer, &r, what, INT_MAX);
        for (int i = 0; i < r.n && what == RANKED_VARIANTS; i++)
            ranking_say_networks(answer, &r.v[i], "The ");
        rankings_free(&r);
    }
    study_answer(answer, &v);
    study_verdicts_free(&v);
    plot_run_close(&run);
}

void report_judge(FILE *f, const struct plot_data *d)
{
    struct study_verdicts v = study_verdicts_make(&d->table[TABLE_STUDY], usual_threshold);

    study_verdicts_print(f, &v, FORMAT_CSV);
    study_verdicts_free(&v);
}
