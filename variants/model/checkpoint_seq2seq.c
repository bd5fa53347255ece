/* SPDX-License-Identifier: MIT
 *
 * What golden files of an encoder and a decoder say of them, in keys of their own: n_layer layers in
 * the encoder, dec_layers in the decoder, norms after sums, sources of different lengths. */
#include "checkpoint.h"

enum status checkpoint_seq2seq(const struct safetensors *s, struct config *c, struct err *e)
{
    enum { MOST = 1 << 16, MOST_LAYERS = 64 };
    const char *const word = safetensors_meta(s, "pos");
    const struct pos *const pos = pos_find(word ? word : "none");
    int n[7] = {0}, blends = 0;
    double scale = 0, emb_scale = 0, ln_eps = 0;
    static const char *const sizes[] = {"d_model", "n_head",  "d_head",    "d_inner",
                                        "vocab",   "n_layer", "dec_layers"};
    enum status st = OK;

    for (int i = 0; st == OK && i < (int)ARRAY_LEN(sizes); i++)
        st = safetensors_int(s, sizes[i], 0, 1, i < 5 ? MOST : MOST_LAYERS, &n[i], e);
    for (int i = 0; st == OK && i < (int)ARRAY_LEN(sizes); i++)
        if (n[i] == 0)
            return safetensors_fail(s, e, "metadata %s is missing  -> use 1 or more", sizes[i]);
    if (st != OK || (st = safetensors_real(s, "scale", 1, &scale, e)) != OK ||
        (st = safetensors_real(s, "emb_scale", 1, &emb_scale, e)) != OK ||
        (st = safetensors_real(s, "ln_eps", 1e-5, &ln_eps, e)) != OK ||
        (st = safetensors_int(s, "transparent", 0, 0, 1, &blends, e)) != OK)
        return st;
    if (!pos || (pos != pos_find("none") && !(pos->embed && pos->sinusoids && !pos->model_params)))
        return safetensors_fail(s, e, "pos \"%.64s\"  -> use sinusoid, none", word ? word : "");
    *c = config_default(variants[0], n[0], n[1], n[2], n[3], n[6], n[4]);
    if ((st = checkpoint_parts(s, "param.dec.0.", c, e)) != OK ||
        (st = safetensors_int(s, "window", 0, 0, MOST, &c->window, e)) != OK)
        return st;
    c->pos = pos;
    c->wiring = WIRING_POST;
    c->scale = (float)scale;
    c->emb_scale = (float)emb_scale;
    c->ln_eps = (float)ln_eps;
    c->attn_bias = safetensors_find(s, "param.dec.0.attn.q.bias") != NULL;
    c->enc_layers = n[5];
    c->enc_padded = true;
    c->transparent = blends ? TRANSPARENT_TOP : TRANSPARENT_NONE;
    return checkpoint_check(s, c, e);
}
