/* SPDX-License-Identifier: MIT
 *
 * Rankings as text: contestants over all shapes, then a line for each shape; and as CSV. */
#include "harness/plan/case.h"
#include "harness/table/keys.h"
#include "harness/util/suggest.h"
#include "harness/util/terminal.h"
#include "harness/util/units.h"
#include "ranking.h"

#include <math.h>
#include <string.h>

/* What is said of a contestant that is not shown to be slower than the leader. An interval above 1
 * of samples that were mostly preempted shows nothing either way. */
static const char *unshown(const struct interval *log)
{
    return log->low > 0 ? "unclear: preempted" : "no difference shown";
}
static const char *const subject[] = {
    [RANKED_VARIANTS] = "variants", [RANKED_BACKENDS] = "backends"};

/* Does the column have one value in the first shapes of all rankings? */
static bool all_agree(const struct rankings *all, int column)
{
    const struct table *t = &tables[TABLE_LATENCY];
    char num[2][NUMBER_SIZE];

    for (int i = 1; i < all->n; i++)
        if (strcmp(row_field(t, column, all->v[0].shape[0], num[0]),
                   row_field(t, column, all->v[i].shape[0], num[1])) != 0)
            return false;
    return true;
}

/* "layer", "layer fwd_bwd threads=2": the workload, and what tells the rankings apart. */
static void setting_text(const struct rankings *all, const struct ranking *r, char *buf,
                         size_t size)
{
    static const char *const of_shape[] = {"variant",    "backend",  "workload", "seq_tokens",
                                           "mem_tokens", "settings", NULL};
    const struct table *t = &tables[TABLE_LATENCY];
    const struct latency_row *row = r->shape[0];
    size_t n = (size_t)snprintf(buf, size, "%s", row->workload);
    char num[NUMBER_SIZE];

    for (int i = 0; i < KEY_COUNT && n < size; i++) {
        const char *const name = t->columns[i].name;
        const int choice = chosen_find(name);
        if (choice < 0 || choice == CASE_mem_kind || choice == CASE_kv_heads ||
            (choice >= CASE_BEFORE_MODEL && choice <= SETTINGS_CHOICE) ||
            word_index(name, of_shape) >= 0 || all_agree(all, i))
            continue;
        n += (size_t)snprintf(buf + n, size - n, " %s=%s", name, row_field(t, i, row, num));
    }
}

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

/* "1.24x [1.20 1.28]" */
static void ratio_text(const struct interval *log, char *buf, size_t size)
{
    const struct unit_text low = units_ratio(exp(log->low)), high = units_ratio(exp(log->high));

    if (isfinite(log->mid))
        snprintf(buf, size, "%s [%.*s %.*s]", units_ratio(exp(log->mid)).s,
                 (int)strcspn(low.s, "x"), low.s, (int)strcspn(high.s, "x"), high.s);
    else
        snprintf(buf, size, "-");
}

/* Its backend, if it is the same in all shapes. */
static const char *backend_of(const struct ranking *r, const struct contestant *v)
{
    const char *name = NULL;

    for (int s = 0; s < r->shapes; s++)
        if (v->place[s].row && name && strcmp(name, v->place[s].row->backend) != 0)
            return "several";
        else if (v->place[s].row)
            name = v->place[s].row->backend;
    return name ? name : "";
}

static void print_contestants(FILE *f, const struct ranking *r, enum ranked what)
{
    int name = 8;

    for (int i = 0; i < r->n; i++)
        name = max_int(name, terminal_columns(r->v[i].name));
    for (int i = 0; i < r->n; i++) {
        const struct contestant *v = &r->v[i];
        char ratio[64] = "", line[256];
        size_t n = (size_t)snprintf(line, sizeof(line), "  %-*s", name, v->name);
        if (what == RANKED_VARIANTS)
            n += (size_t)snprintf(line + n, sizeof(line) - n, "  %-8s", backend_of(r, v));
        if (r->shapes == 1)
            n += (size_t)snprintf(line + n, sizeof(line) - n, "  %9s",
                                  units_ns(v->place[0].row->median_ns).s);
        if (isfinite(v->bits))
            n += (size_t)snprintf(line + n, sizeof(line) - n, "  %5.3f bits", v->bits);
        if (i > 0)
            ratio_text(&v->log, ratio, sizeof(ratio));
        snprintf(line + n, sizeof(line) - n, "  %-20s  %s", ratio,
                 i == 0 || v->slower || !isfinite(v->log.mid) ? "" : unshown(&v->log));
        for (n = strlen(line); n > 0 && line[n - 1] == ' '; n--)
            line[n - 1] = '\0';
        fprintf(f, "%s\n", line);
    }
}

/* ---- a line for each shape ---------------------------------------------------------------- */

struct line {
    FILE *f;
    int width, at, indent;
};

/* The text, on the next line if it does not fit. */
static void put(struct line *l, const char *text)
{
    const int n = terminal_columns(text);

    if (l->at > l->indent && l->at + 1 + n > l->width) {
        fprintf(l->f, "\n%*s", l->indent, "");
        l->at = l->indent;
    } else if (l->at > l->indent) {
        fputc(' ', l->f);
        l->at++;
    }
    fputs(text, l->f);
    l->at += n;
}

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

static void print_shape(FILE *f, const struct ranking *r, int s, enum ranked what, int width)
{
    const struct latency_row *row = r->shape[s];
    const struct contestant *first = &r->v[r->leader[s]];
    struct line l = {f, width, 0, 6};
    char text[TEXT_SIZE + 96], mem[MEM_TEXT];

    mem_text(mem, row->mem_tokens);
    snprintf(text, sizeof(text),
             "  %s%sseq %lld mem %s:", what == RANKED_BACKENDS ? row->variant : "",
             what == RANKED_BACKENDS ? " " : "", (long long)row->seq_tokens, mem);
    put(&l, text);
    for (int i = r->leader[s], n = 0; i >= 0; i = next_in_shape(r, s, i), n++) {
        const struct place *p = &r->v[i].place[s];
        const bool last = next_in_shape(r, s, i) < 0;
        if (n == 0)
            snprintf(text, sizeof(text), "%s %s%s", first->name, units_ns(p->row->median_ns).s,
                     last ? "" : ",");
        else
            snprintf(text, sizeof(text), "%s %s%s%s", r->v[i].name, p->slower ? "" : "~",
                     units_ratio(exp(p->change.log.mid)).s, last ? "" : ",");
        put(&l, text);
    }
    fputc('\n', f);
}

enum status rankings_show(FILE *f, const struct run *run, int width, bool color, struct err *e)
{
    enum status st = OK;

    for (enum ranked what = RANKED_VARIANTS; what <= RANKED_BACKENDS && st == OK; what++) {
        struct rankings r;
        st = rankings_make(&r, run, what, e);
        if (st != OK)
            break;
        if (r.n > 0)
            fputc('\n', f);
        rankings_print(f, &r, what, width, color);
        rankings_free(&r);
    }
    return st;
}

void rankings_print(FILE *f, const struct rankings *all, enum ranked what, int width, bool color)
{
    char setting[256], shapes[64];

    for (int k = 0; k < all->n; k++) {
        const struct ranking *r = &all->v[k];
        setting_text(all, r, setting, sizeof(setting));
        shapes_text(r, what, shapes, sizeof(shapes));
        fprintf(f, "%s%s by time: %s, %s%s\n", color ? "\033[1m" : "", subject[what], setting,
                shapes, color ? "\033[0m" : "");
        print_contestants(f, r, what);
        for (int s = 0; s < r->shapes && r->shapes > 1 && what == RANKED_VARIANTS; s++)
            print_shape(f, r, s, what, width);
        if (r->shapes > 1 && what == RANKED_VARIANTS)
            fputs("  ~: not shown to differ from the first of its line\n", f);
    }
}

/* ---- CSV ---------------------------------------------------------------------------------- */

static const char CSV_HEADER[] =
    "subject,setting,mean,name,variant,backend,case_id,ratio,low,high,verdict,bits,unit\n";

static void csv_text(FILE *f, const char *text)
{
    putc('"', f);
    for (; *text; text++)
        fprintf(f, *text == '"' ? "\"\"" : "%c", *text);
    putc('"', f);
}

static void csv_number(FILE *f, double x)
{
    if (isfinite(x))
        fprintf(f, ",%.9g", x);
    else
        putc(',', f);
}

/* `alone`: it leads, and each of the others is shown to be slower. */
static void csv_change(FILE *f, const struct interval *log, bool leads, bool alone, bool slower)
{
    csv_number(f, exp(log->mid));
    csv_number(f, exp(log->low));
    csv_number(f, exp(log->high));
    fprintf(f, ",%s",
            leads                 ? alone ? "fastest" : "first"
            : !isfinite(log->mid) ? ""
            : slower              ? "slower"
                                  : unshown(log));
}

/* Is the first of the ranking, or the leader of shape `s`, shown to be faster than each other that
 * ran there? */
static bool is_alone(const struct ranking *r, int s)
{
    const int leader = s < 0 ? 0 : r->leader[s];

    for (int i = 0; i < r->n; i++)
        if (i != leader &&
            (s < 0 ? !r->v[i].slower : r->v[i].place[s].row && !r->v[i].place[s].slower))
            return false;
    return true;
}

/* The fields up to the changes; `row` is NULL over all shapes. */
static void csv_names(FILE *f, enum ranked what, const char *setting, const char *mean,
                      const struct contestant *v, const struct latency_row *row)
{
    const char *const texts[] = {setting,
                                 mean,
                                 v->name,
                                 row ? row->variant : "",
                                 row ? row->backend : "",
                                 row ? row->case_id : ""};

    fputs(subject[what], f);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        putc(',', f);
        csv_text(f, texts[i]);
    }
}

void rankings_print_csv_header(FILE *f) { fputs(CSV_HEADER, f); }

void rankings_print_csv(FILE *f, const struct rankings *all, enum ranked what)
{
    static const struct interval one = {0, 0, 0}, none = {NAN, NAN, NAN};
    char setting[256], shapes[64];

    for (int k = 0; k < all->n; k++) {
        const struct ranking *r = &all->v[k];
        setting_text(all, r, setting, sizeof(setting));
        shapes_text(r, what, shapes, sizeof(shapes));
        for (int i = 0; i < r->n; i++) {
            const struct contestant *v = &r->v[i];
            csv_names(f, what, setting, shapes, v, NULL);
            csv_change(f, r->common > 0 ? &v->log : &none, i == 0 && r->common > 0, is_alone(r, -1),
                       v->slower);
            csv_number(f, v->bits);
            fprintf(f, ",%s\n", isfinite(v->bits) ? all->unit : "");
            for (int s = 0; s < r->shapes; s++) {
                const struct place *p = &v->place[s];
                const bool leads = i == r->leader[s];
                if (!p->row)
                    continue;
                csv_names(f, what, setting, "", v, p->row);
                csv_change(f, leads ? &one : &p->change.log, leads, is_alone(r, s), p->slower);
                fputs(",,\n", f);
            }
        }
    }
}
