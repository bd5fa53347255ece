/* SPDX-License-Identifier: MIT
 *
 * Rankings as text: contestants over all shapes, then a line for each shape; and as CSV. */
#include "ranking_text.h"

/* "slower", "probably slower (noisy)", "no difference shown (CPU time)" */
static void verdict_text(const struct change *c, char *buf, size_t size)
{
    const enum verdict v = c->verdict == VERDICT_SAME ? VERDICT_UNSHOWN : c->verdict;
    const char *const remark = change_remark(c);

    snprintf(buf, size, "%s%s%s%s", verdict_name[v], *remark ? " (" : "", remark,
             *remark ? ")" : "");
}

static const char *const subject[] = {
    [RANKED_VARIANTS] = "variants", [RANKED_BACKENDS] = "backends"};

/* "seq 128 mem 512", "geometric mean of 4 shapes" */
static void shapes_text(const struct ranking *r, enum ranked what, char *buf, size_t size)
{
    const char *const one = what == RANKED_BACKENDS ? "case" : "shape";
    char mem[MEM_TEXT];

    mem_text(mem, r->shape[0]->mem_tokens);
    if (r->shapes == 1)
        snprintf(buf, size, "seq %lld mem %s", (long long)r->shape[0]->seq_tokens, mem);
    else if (r->common == 0)
        snprintf(buf, size, "no %s that all ran", one);
    else
        snprintf(buf, size, "geometric mean of %d %s%s", r->common, one, r->common == 1 ? "" : "s");
}

/* "1.24x [1.20 1.28]"; "1.24x (1.20 to 1.28)": the range of few samples */
static void ratio_text(const struct change *c, char *buf, size_t size)
{
    const struct unit_text low = units_ratio(exp(c->log.low)), high = units_ratio(exp(c->log.high));

    if (!isfinite(c->log.mid))
        snprintf(buf, size, "-");
    else if (!isfinite(c->log.low))
        snprintf(buf, size, "%s", units_ratio(exp(c->log.mid)).s);
    else
        snprintf(buf, size, c->few ? "%s (%.*s to %.*s)" : "%s [%.*s %.*s]",
                 units_ratio(exp(c->log.mid)).s, (int)strcspn(low.s, "x"), low.s,
                 (int)strcspn(high.s, "x"), high.s);
}

/* Cells of a contestant; some may be left out. */
enum { NAME, BACKEND, RATIO, QUALITY, ENERGY, SAID, CELLS, CELL = TEXT_SIZE + 16 };

static void fill_cells(char cell[CELLS][CELL], const struct ranking *r, int i, enum ranked what)
{
    const struct contestant *const v = &r->v[i];

    snprintf(cell[NAME], CELL, "%s", v->name);
    *cell[BACKEND] = *cell[QUALITY] = *cell[ENERGY] = *cell[SAID] = '\0';
    if (what == RANKED_VARIANTS)
        contestant_backends(r, v, "/", cell[BACKEND], CELL);
    if (i > 0)
        ratio_text(&v->change, cell[RATIO], CELL);
    else if (r->shapes == 1)
        snprintf(cell[RATIO], CELL, "%s", units_ns(ranking_ns(r, 0, 0)).s);
    else
        snprintf(cell[RATIO], CELL, "1");
    if (isfinite(v->bits))
        snprintf(cell[QUALITY], CELL, "%5.3f", v->bits);
    if (isfinite(v->joules))
        snprintf(cell[ENERGY], CELL, "%s", units_joules(v->joules).s);
    if (i > 0 && isfinite(v->change.log.mid))
        verdict_text(&v->change, cell[SAID], CELL);
}

static void print_cells(FILE *f, char cell[CELLS][CELL], const int width[CELLS])
{
    int blanks = 2;

    for (int k = 0; k < CELLS; k++) {
        if (width[k] == 0)
            continue;
        if (*cell[k]) {
            fprintf(f, "%*s%s", blanks, "", cell[k]);
            blanks = 0;
        }
        blanks += width[k] - terminal_columns(cell[k]) + 2;
    }
    fputc('\n', f);
}

/* "  quality: bits per symbol of copy:lag=192, less is better, 0.830 at best" */
static void print_quality(FILE *f, const struct rankings *all)
{
    fprintf(f, "  quality: bits per %s of ", all->unit);
    text_print(f, path_name(all->corpus));
    fputs(", less is better", f);
    if (isfinite(all->floor_bits))
        fprintf(f, ", %.3f at best", all->floor_bits);
    fputc('\n', f);
}

enum { BY_WALL, BY_CPU, BY_BOTH };
static const char *const clock_name[] = {"wall", "CPU", "mixed"};

/* Of shape s; -1: of all. */
static int by_clock(const struct ranking *r, int s)
{
    const int first = s < 0 ? 0 : s, after = s < 0 ? r->shapes : s + 1;

    for (int i = first + 1; i < after; i++)
        if (r->cpu[i] != r->cpu[first])
            return BY_BOTH;
    return r->cpu[first] ? BY_CPU : BY_WALL;
}

static void print_contestants(FILE *f, const struct rankings *all, const struct ranking *r,
                              enum ranked what)
{
    char cell[CELLS][CELL],
        head[CELLS][CELL] = {"", "backend", "time vs best", "quality", "energy/token", ""};
    int width[CELLS] = {0};
    bool scored = false;

    snprintf(head[NAME], CELL, "%s", what == RANKED_VARIANTS ? "variant" : "backend");
    if (what == RANKED_BACKENDS)
        *head[BACKEND] = '\0';
    if (by_clock(r, -1) == BY_CPU)
        snprintf(head[RATIO], CELL, "CPU time vs best");
    for (int i = 0; i < r->n; i++) {
        scored = scored || isfinite(r->v[i].bits);
        fill_cells(cell, r, i, what);
        for (int k = 0; k < CELLS; k++)
            width[k] = max_int(width[k], terminal_columns(cell[k]));
    }
    for (int k = 0; k < CELLS; k++)
        if (width[k] > 0)
            width[k] = max_int(width[k], terminal_columns(head[k]));
    print_cells(f, head, width);
    for (int i = 0; i < r->n; i++) {
        fill_cells(cell, r, i, what);
        print_cells(f, cell, width);
    }
    if (scored)
        print_quality(f, all);
    if (by_clock(r, -1) != BY_WALL)
        fputs("  CPU time: wall times are those of a busy machine\n", f);
}

/* ---- a line for each shape ---------------------------------------------------------------- */

/* The contestant that follows `after` in this shape, by its ratio to the leader, which comes first;
 * -1 after the last. */
static int next_in_shape(const struct ranking *r, int s, int after)
{
    int next = -1;

    for (int i = 0; i < r->n; i++) {
        const double x = r->v[i].place[s].change.log.mid;
        if (!r->v[i].place[s].row || i == r->leader[s])
            continue;
        if (after != r->leader[s]) {
            const double last = r->v[after].place[s].change.log.mid;
            if (x < last || (!(x > last) && i <= after))
                continue;
        }
        if (next < 0 || x < r->v[next].place[s].change.log.mid)
            next = i;
    }
    return next;
}

static bool is_shown(const struct change *c)
{
    return c->verdict != VERDICT_UNSHOWN && c->verdict != VERDICT_SAME;
}

static void print_shape(FILE *f, const struct ranking *r, int s, enum ranked what, int width)
{
    const struct latency_row *row = r->shape[s];
    const struct contestant *first = &r->v[r->leader[s]];
    struct flow l = {f, width, 0, 6};
    char text[TEXT_SIZE + 96], mem[MEM_TEXT];

    mem_text(mem, row->mem_tokens);
    snprintf(text, sizeof(text),
             "  %s%sseq %lld mem %s:", what == RANKED_BACKENDS ? row->variant : "",
             what == RANKED_BACKENDS ? " " : "", (long long)row->seq_tokens, mem);
    flow_put(&l, text);
    for (int i = r->leader[s], n = 0; i >= 0; i = next_in_shape(r, s, i), n++) {
        const struct place *p = &r->v[i].place[s];
        const bool last = next_in_shape(r, s, i) < 0;
        if (n == 0)
            snprintf(text, sizeof(text), "%s %s%s", first->name, units_ns(ranking_ns(r, i, s)).s,
                     last ? "" : ",");
        else
            snprintf(text, sizeof(text), "%s %s%s%s%s", r->v[i].name, p->change.noisy ? "~" : "",
                     units_ratio(exp(p->change.log.mid)).s, is_shown(&p->change) ? "" : "?",
                     last ? "" : ",");
        flow_put(&l, text);
    }
    if (r->cpu[s])
        flow_put(&l, "(CPU time)");
    fputc('\n', f);
}

/* What the marks of the lines mean, if there are any. */
static void print_legend(FILE *f, const struct ranking *r)
{
    bool noisy = false, unshown = false;

    for (int s = 0; s < r->shapes; s++)
        for (int i = 0; i < r->n; i++) {
            const struct change *const c = &r->v[i].place[s].change;
            noisy = noisy || c->noisy;
            unshown = unshown || (r->v[i].place[s].row && i != r->leader[s] && !is_shown(c));
        }
    if (noisy)
        fputs("  ~: disturbed while measured\n", f);
    if (unshown)
        fputs("  ?: no difference from the first of its line shown\n", f);
}

void rankings_show(FILE *f, const struct run *run, int width, bool color)
{
    struct rankings r[] = {[RANKED_VARIANTS] = rankings_make(run, RANKED_VARIANTS),
                           [RANKED_BACKENDS] = rankings_make(run, RANKED_BACKENDS)};

    for (enum ranked what = RANKED_VARIANTS; what <= RANKED_BACKENDS; what++)
        if (r[what].n > 0) {
            fputc('\n', f);
            rankings_print(f, &r[what], what, width, color);
        }
    if (r[RANKED_VARIANTS].n + r[RANKED_BACKENDS].n > 0)
        fputc('\n', f);
    for (enum ranked what = RANKED_VARIANTS; what <= RANKED_BACKENDS; what++) {
        rankings_answer(f, &r[what], what, width);
        rankings_free(&r[what]);
    }
}

void rankings_print(FILE *f, const struct rankings *all, enum ranked what, int width, bool color)
{
    char setting[256], shapes[64];

    for (int k = 0; k < all->n; k++) {
        const struct ranking *r = &all->v[k];
        ranking_setting(all, r, setting, sizeof(setting));
        shapes_text(r, what, shapes, sizeof(shapes));
        fprintf(f, "%s%s by time: %s, %s%s\n", color ? "\033[1m" : "", subject[what], setting,
                shapes, color ? "\033[0m" : "");
        print_contestants(f, all, r, what);
        for (int s = 0; s < r->shapes && r->shapes > 1 && what == RANKED_VARIANTS; s++)
            print_shape(f, r, s, what, width);
        if (r->shapes > 1 && what == RANKED_VARIANTS)
            print_legend(f, r);
        if (what == RANKED_VARIANTS)
            ranking_print_networks(f, r);
    }
}

/* ---- CSV ---------------------------------------------------------------------------------- */

static const struct text_table_column csv_columns[] = {
    {.name = "subject"}, {.name = "setting"}, {.name = "mean"},    {.name = "name"},
    {.name = "variant"}, {.name = "backend"}, {.name = "case_id"}, {.name = "ratio"},
    {.name = "low"},     {.name = "high"},    {.name = "few"},     {.name = "verdict"},
    {.name = "bits"},    {.name = "unit"},    {.name = "remark"},  {.name = "clock"},
    {.name = "time_ns"}};

/* Is the first of the ranking, or the leader of shape `s`, shown to be faster than each other that
 * ran there? */
static bool is_alone(const struct ranking *r, int s)
{
    const int leader = s < 0 ? 0 : r->leader[s];

    for (int i = 0; i < r->n; i++) {
        const struct change *const c = s < 0 ? &r->v[i].change : &r->v[i].place[s].change;
        if (i != leader && (s < 0 || r->v[i].place[s].row) && c->verdict != VERDICT_SLOWER)
            return false;
    }
    return true;
}

/* Contestant i in shape s; -1: over all shapes. */
static void csv_row(FILE *f, const struct rankings *all, const struct ranking *r, enum ranked what,
                    int i, int s)
{
    static const struct change one = {.n = 0}, none = {.log = {NAN, NAN, NAN}};
    const struct contestant *const v = &r->v[i];
    const struct latency_row *const row = s < 0 ? NULL : v->place[s].row;
    const struct change *const own = row ? &v->place[s].change : &v->change;
    const bool first = i == (row ? r->leader[s] : 0), leads = first && (row || r->common > 0);
    const struct change *const c = !row && r->common == 0 ? &none : row && leads ? &one : own;
    const double bits = row ? NAN : v->bits;
    const double ns = row || r->shapes == 1 ? ranking_ns(r, i, max_int(0, s)) : NAN;
    char setting[256], shapes[64], num[5][NUMBER_SIZE];

    ranking_setting(all, r, setting, sizeof(setting));
    shapes_text(r, what, shapes, sizeof(shapes));
    const char *const text[ARRAY_LEN(csv_columns)] = {subject[what],
                                                      setting,
                                                      row ? "" : shapes,
                                                      v->name,
                                                      row ? row->variant : "",
                                                      row ? row->backend : "",
                                                      row ? row->case_id : "",
                                                      text_number(num[0], "%.9g", exp(c->log.mid)),
                                                      text_number(num[1], "%.9g", exp(c->log.low)),
                                                      text_number(num[2], "%.9g", exp(c->log.high)),
                                                      c->few ? "1" : "",
                                                      leads ? is_alone(r, s) ? "fastest" : "first"
                                                      : !isfinite(c->log.mid) ? ""
                                                      : is_shown(c) ? verdict_name[c->verdict]
                                                                    : verdict_name[VERDICT_UNSHOWN],
                                                      text_number(num[3], "%.9g", bits),
                                                      isfinite(bits) ? all->unit : "",
                                                      first ? "" : change_remark(own),
                                                      clock_name[by_clock(r, s)],
                                                      text_number(num[4], "%.9g", ns)};
    text_row_print(f, FORMAT_CSV, csv_columns, text, ARRAY_LEN(csv_columns));
}

void rankings_print_csv_header(FILE *f)
{
    text_row_print(f, FORMAT_CSV, csv_columns, NULL, ARRAY_LEN(csv_columns));
}

void rankings_print_csv(FILE *f, const struct rankings *all, enum ranked what)
{
    for (int k = 0; k < all->n; k++)
        for (int i = 0; i < all->v[k].n; i++)
            for (int s = -1; s < all->v[k].shapes; s++)
                if (s < 0 || all->v[k].v[i].place[s].row)
                    csv_row(f, all, &all->v[k], what, i, s);
}
