/* SPDX-License-Identifier: MIT
 *
 * Golden files of the bare LocalRNN (kind = local_rnn), forward and backward, after the last rows
 * of an earlier segment if the file has some. */
#include "reader.h"

#include "variants/model/checkpoint/checkpoint.h"

enum { MOST = 1 << 12 };

static enum status read_config(struct run *r, struct err *e)
{
    int D = 0;

    TRY(golden_size(r, "d_model", MOST, &D, e));
    TRY(golden_part(r, golden_variant(r), "D", e));
    TRY(checkpoint_parts(r->s, "param.", &r->c, e));
    TRY(checkpoint_check(r->s, &r->c, e));
    if (r->c.rnn_window > MOST)
        return safetensors_fail(r->s, e, "rnn_window %d  -> use 1 to %d", r->c.rnn_window,
                                (int)MOST);
    return OK;
}

static enum status read(struct run *r, struct err *e)
{
    enum status st = OK;

    TRY(read_config(r, e));
    r->max.M = 0;
    r->c.rnn_carry = safetensors_find(r->s, "in.tail") != NULL;
    if (r->c.rnn_carry) {
        r->max.M = r->c.rnn_window - 1;
        r->mem = golden_need(r, "in.tail", DTYPE_F32,
                             (size_t)r->max.B * (size_t)r->max.M * (size_t)r->c.D, &st, e);
    }
    TRY(st);
    TRY(golden_inputs(r, r->c.D, e));
    sublayers_init_bare(&r->sublayers, &r->c, 'r', &r->params, 0);
    return OK;
}

static enum status bind(struct run *r, struct err *e)
{
    return golden_bind_sublayer(r, MEM_HIDDEN, e);
}

static enum status forward(struct run *r, struct err *e)
{
    struct sublayer *const s = r->sublayers.at;

    params_pack(&r->params, r->g);
    const struct sublayer_input from = golden_enter(r);
    s->kind->forward(r->g, s, r->sublayers.work, from, (struct act){.y = r->y});
    return OK;
}

const struct golden_kind golden_rnn = {
    .name = "local_rnn",
    MEMBERS(, read, bind, forward),
    .backward = golden_backward_sublayer,
};
