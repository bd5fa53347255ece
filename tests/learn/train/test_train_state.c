/* SPDX-License-Identifier: MIT
 *
 * The files of a training: which of two states belongs to a checkpoint, older files, and what is
 * refused, with the file and the key named. */
#include "tests/support/command_line.h"
#include "tests/support/edited_file.h"
#include "tests/support/loaded.h"
#include "tests/support/open_trainer.h"
#include "tests/support/tmp_folder.h"

static struct options opt;
static struct trainer trainer;
static char path[FILE_PATH], state[FILE_PATH], next[FILE_PATH];

static void begin(struct trainer *t, struct options *o, const char *mem)
{
    *o = training_parse("--variant xl --seq 4 --batch 2 --d-model 8 "
                        "--corpus copy:lag=5,p=0.9,alphabet=7 --mem %s",
                        mem);
    training_open(t, o);
}

static void save(void) { MUST(trainer_save(&trainer, path, 2.5, &failure)); }

/* A pair of step 2. */
static void make(void)
{
    folder_make();
    folder_path(path, "m");
    folder_path(state, "m.opt");
    folder_path(next, "m.opt.new");
    begin(&trainer, &opt, "6");
    trainer_step(&trainer, 0);
    trainer_step(&trainer, 0);
    trainer.best_valid = 1.25;
    save();
}

static void end(void) { folder_remove(); }

TestSuite(train_state, .init = make, .fini = end);

static void copy_file(const char *to, const char *from)
{
    struct bytes b = must_load(from);
    MUST(file_replace(to, b.data, b.n, &failure));
}

static void expect_loads(int step)
{
    MUST(trainer_load(&trainer, path, &failure));
    NUMBERS({trainer.optimizer.step, step}, {access(state, F_OK), 0});
    cr_expect_neq(access(next, F_OK), 0, "a second state is left");
}

static void expect_refused(enum status want, const char *named)
{
    struct err e = {""};

    cr_expect_eq(trainer_load(&trainer, path, &e), want, "%s: %s", named, e.msg);
    cr_expect(strstr(e.msg, state) && strstr(e.msg, named), "%s: %s", named, e.msg);
}

/* ---- pairs -------------------------------------------------------------------------------- */

/* Killed after the checkpoint, before its state has its name. */
Test(train_state, the_newer_state_belongs_to_it)
{
    const char *const old = in_folder("old");
    copy_file(old, state);
    trainer_step(&trainer, 0);
    save();
    cr_assert_eq(rename(state, next), 0);
    cr_assert_eq(rename(old, state), 0);
    expect_loads(3);
    expect_loads(3);
}

/* Killed before the checkpoint: the newer state belongs to none. */
Test(train_state, the_older_state_belongs_to_it)
{
    const char *const old = in_folder("old");
    const char *const old_state = in_folder("old.opt");
    copy_file(old, path);
    copy_file(old_state, state);
    trainer_step(&trainer, 0);
    save();
    cr_assert_eq(rename(state, next), 0);
    cr_assert_eq(rename(old, path), 0);
    cr_assert_eq(rename(old_state, state), 0);
    expect_loads(2);
}

/* Of the same step, but of another training. */
Test(train_state, a_state_of_other_weights_is_refused)
{
    const char *const kept = in_folder("kept");
    copy_file(kept, state);
    opt.lr *= 2;
    trainer.optimizer.step--; /* the second step once more */
    trainer_step(&trainer, 0);
    save();
    cr_assert_eq(rename(kept, state), 0);
    expect_refused(E_IO, "weights");
}

Test(train_state, a_damaged_newer_state_does_not_hide_the_right_one)
{
    MUST(file_replace(next, "damaged", 7, &failure));
    expect_loads(2);
}

Test(train_state, older_files_name_no_weights)
{
    const char *const kept = in_folder("kept");
    edited_file(kept, state, &(struct edit){.key = "weights"});
    cr_assert_eq(rename(kept, state), 0);
    expect_loads(2);
    NUMBERS({trainer.best_valid, 1.25}, {trainer.trained_s, 2.5});
}

/* Files older than an option were made with its default; those older than all name none. */
Test(train_state, older_files_have_the_defaults)
{
    const char *const kept = in_folder("kept");
    edited_file(kept, state, &(struct edit){.key = "options"});
    cr_assert_eq(rename(kept, state), 0);
    expect_loads(2);
    opt.z_loss = 0.5;
    REFUSED(trainer_load(&trainer, path, &failure), E_USAGE, "z-loss");
}

Test(train_state, a_first_validation_is_still_to_come)
{
    trainer.best_valid = INFINITY;
    save();
    expect_loads(2);
    cr_expect(isinf(trainer.best_valid));
}

/* ---- what is refused ---------------------------------------------------------------------- */

Test(train_state, every_number_is_read_whole_and_in_range)
{
    static const struct {
        const char *key, *value;
    } bad[] = {
        {"format", "bench-optimizer/2"},
        {"format", "-1"},
        {"format", NULL},
        {"step", "x"},
        {"step", "-1"},
        {"step", "2.0"},
        {"step", "99999999999999999999"},
        {"step", NULL},
        {"best", "x"},
        {"best", "nan"},
        {"best", "-0.5"},
        {"best", "1e301"},
        {"best", "99999x"},
        {"best", NULL},
        {"trained_s", "x"},
        {"trained_s", "-1"},
        {"trained_s", "inf"},
        {"trained_s", " 1"},
        {"trained_s", NULL},
        {"seen", "x"},
        {"seen", "-1"},
        {"seen", "99999999999999999999"},
        {"seen", "9223372036854775807"},
        {"compressed", "x"},
        {"compressed", "-1"},
        {"compressed", "7"},
        {"weights", "x"},
    };

    const char *const whole = in_folder("whole");
    cr_assert_eq(rename(state, whole), 0);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        edited_file(state, whole, &(struct edit){.key = bad[i].key, .value = bad[i].value});
        expect_refused(E_IO, bad[i].key);
    }
    cr_assert_eq(rename(whole, state), 0);
    expect_loads(2);
}

Test(train_state, every_tensor_has_its_name_type_and_shape)
{
    char m[TENSOR_NAME + 2], v[TENSOR_NAME + 2];
    const struct params *p = &trainer.lm.params;
    int matrix = 0;

    while (p->v[matrix].rank != 2)
        matrix++;
    snprintf(m, sizeof(m), "m.%s", p->v[matrix].name);
    snprintf(v, sizeof(v), "v.%s", p->v[0].name);
    const struct edit bad[] = {
        {.drop = m},
        {.reshape = m},
        {.retype = m},
        {.rename = v, .new_name = "v.other"},
        {.retype = v},
        {.reshape = "memory.0"},
        {.retype = "memory.0"},
    };
    const char *const named[] = {m, m, m, v, v, "memory.0", "memory.0"};
    const char *const whole = in_folder("whole");
    cr_assert_eq(rename(state, whole), 0);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        edited_file(state, whole, &bad[i]);
        expect_refused(E_IO, named[i]);
    }
    edited_file(state, whole, &(struct edit){.drop = "memory.1"}); /* as with fewer layers of it */
    expect_refused(E_USAGE, "memory.1");
}

Test(train_state, a_tensor_too_many)
{
    const char *const whole = in_folder("whole");
    cr_assert_eq(rename(state, whole), 0);
    const struct safetensors s = tensors_of(whole);
    struct tensor *const list = room((size_t)s.n_tensors + 1, sizeof(*list));
    memcpy(list, s.tensors, (size_t)s.n_tensors * sizeof(*list));
    list[s.n_tensors] = s.tensors[0];
    strcpy(list[s.n_tensors].name, "other");
    MUST(safetensors_write(state, list, s.n_tensors + 1, (const char *const *)s.meta, s.n_meta,
                           &failure));
    expect_refused(E_IO, "tensors");
}

/* Neither more memory than the model has now, nor less. */
Test(train_state, memory_of_other_options)
{
    static const char *const mem[] = {"0", "5"};

    for (size_t i = 0; i < ARRAY_LEN(mem); i++) {
        struct options o;
        struct trainer t;
        struct err e = {""};
        begin(&t, &o, mem[i]);
        cr_expect_eq(trainer_load(&t, path, &e), E_USAGE, "--mem %s: %s", mem[i], e.msg);
        HAS(e.msg, state, "memory.0");
    }
}

enum { KEPT = 2, OLDER = 6 }; /* rows of the layer with a window of 3, of 6 tokens of memory */

/* Each memory of the state with rows before those that are kept, as if nothing saw them. */
static void write_older(void)
{
    int found = 0;

    const char *const whole = in_folder("whole");
    cr_assert_eq(rename(state, whole), 0);
    const struct safetensors s = tensors_of(whole);
    struct tensor *const list = room((size_t)s.n_tensors, sizeof(*list));
    memcpy(list, s.tensors, (size_t)s.n_tensors * sizeof(*list));
    for (int i = 0; i < s.n_tensors; i++) {
        struct tensor *const m = &list[i];
        if (strncmp(m->name, "memory.", 7) != 0)
            continue;
        const size_t B = (size_t)m->shape[0], D = (size_t)m->shape[2];
        cr_assert_eq(m->shape[1], KEPT);
        cr_assert_eq(found++, 0, "a layer without rows has a memory");
        float *const rows = room(B * OLDER * D, sizeof(*rows));
        for (size_t b = 0; b < B; b++)
            memcpy(rows + ((b + 1) * OLDER - KEPT) * D, (const float *)m->data + b * KEPT * D,
                   KEPT * D * sizeof(*rows));
        m->shape[1] = OLDER;
        m->n = B * OLDER * D;
        m->data = rows;
    }
    cr_assert_eq(found, 1);
    MUST(safetensors_write(state, list, s.n_tensors, (const char *const *)s.meta, s.n_meta,
                           &failure));
}

/* A state that has all rows of memory goes on as one that has those that are seen. */
Test(train_state, older_files_have_more_rows)
{
    static const char mem[] = "6 --layer-windows 1,3";
    struct options of[2];
    struct trainer t[2];

    begin(&t[0], &of[0], mem);
    begin(&t[1], &of[1], mem);
    trainer_step(&t[0], 0);
    trainer_step(&t[0], 0);
    MUST(trainer_save(&t[0], path, 2.5, &failure));
    write_older();
    MUST(trainer_load(&t[1], path, &failure));
    for (int k = 0; k < 2; k++)
        trainer_step(&t[k], 0);
    expect_same_weights(&t[0], &t[1], mem);
}

/* ---- leftovers ---------------------------------------------------------------------------- */

Test(train_state, clearing_keeps_a_training_only_for_resume)
{
    static const char *const halves[] = {"m.00000001.tmp", "m.best.00000001.tmp",
                                         "m.opt.00000001.tmp", "m.opt.new.00000001.tmp"};
    const char *at;

    MUST(trainer_save_best(&trainer, path, &failure));
    for (int resume = 1; resume >= 0; resume--) {
        for (size_t i = 0; i < ARRAY_LEN(halves); i++) {
            at = in_folder(halves[i]);
            MUST(file_replace(at, "half", 4, &failure));
        }
        MUST(trainer_clear(path, resume, &failure));
        for (size_t i = 0; i < ARRAY_LEN(halves); i++) {
            at = in_folder(halves[i]);
            cr_expect_neq(access(at, F_OK), 0, "%s is left", at);
        }
        EACH_TEXT (file, "m", "m.opt", "m.best") {
            at = in_folder(file);
            cr_expect_eq(access(at, F_OK) == 0, resume, "%s", at);
        }
    }
}
