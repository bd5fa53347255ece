/* SPDX-License-Identifier: MIT
 *
 * Rotary positions of published models, in both spellings: the older one has the base and the share
 * of a head beside an object rope_scaling, the newer one (version 5 of the publisher's program) all
 * in one object rope_parameters. Where both stand, the versions take different ones: they must say
 * the same. */
#include "llama.h"

#define OLD "rope_scaling"
#define NEW "rope_parameters"
#define BASE "rope_theta"
#define SHARE "partial_rotary_factor"

static const double MIN_BASE = 1.0001, MAX_BASE = 0x1p60;

/* What the two objects say; NULL where there is none, or it is empty. */
struct spellings {
    const json_t *old, *new;
    const json_t *how; /* the one that says how frequencies are changed: the old one wins */
    const char *name;  /* of it */
    const char *kind;  /* its rope_type */
};

/* ---- one object --------------------------------------------------------------------------- */

static const json_t *object_at(struct config_json *j, const char *key)
{
    const json_t *const object = config_json_at(j, key);

    if (object && !json_is_object(object))
        config_json_refuse(j, "%s is not an object  -> use a published config", key);
    return json_object_size(object) > 0 ? object : NULL;
}

double import_number_in(struct config_json *j, const json_t *object, const char *name,
                        const char *key, double absent, double least, double most)
{
    const json_t *const value = json_object_get(object, key);
    const double x = json_number_value(value);
    char text[64];

    if (!value || (json_is_number(value) && x >= least && x <= most))
        return value ? x : absent;
    config_json_text(text, sizeof(text), value);
    import_refuse(j, "%s of %s %s: no number from %g to %g  -> give a complete config", key, name,
                  text, least, most);
    return absent;
}

/* A word of an object, NULL without the key. */
static const char *word_in(struct config_json *j, const json_t *object, const char *name,
                           const char *key)
{
    const json_t *const value = json_object_get(object, key);

    if (value && !json_is_null(value) && !json_is_string(value))
        config_json_refuse(j, "%s of %s is not a text  -> use a published config", key, name);
    return json_string_value(value);
}

/* "default" is none. Versions differ in which of the two words they take. */
static const char *kind_of(struct config_json *j, const json_t *object, const char *name)
{
    const char *const kind = word_in(j, object, name, "rope_type");
    const char *const older = word_in(j, object, name, "type");

    if (kind && older && strcmp(kind, older) != 0)
        config_json_refuse(j, "%s with rope_type %.40s, type %.40s  -> use one of them", name, kind,
                           older);
    return kind ? kind : older;
}

/* ---- both --------------------------------------------------------------------------------- */

static bool is_apart(const char *key)
{
    static const char *const apart[] = {"rope_type", "type", BASE, SHARE};

    for (size_t i = 0; i < ARRAY_LEN(apart); i++)
        if (strcmp(apart[i], key) == 0)
            return true;
    return false;
}

static bool equal(const json_t *a, const json_t *b)
{
    if (json_is_number(a) && json_is_number(b))
        return json_number_value(a) == json_number_value(b);
    return json_equal(a, b);
}

/* The first number of an object that another does not have alike, or NULL. */
static const char *differs(const json_t *object, const json_t *other)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)object, key, value)
    {
        if (!is_apart(key) && !equal(value, json_object_get(other, key)))
            return key;
    }
    return NULL;
}

static void read_spellings(struct config_json *j, struct spellings *s)
{
    s->old = object_at(j, OLD);
    s->new = object_at(j, NEW);
    s->how = s->old ? s->old : s->new;
    s->name = s->old ? OLD : NEW;
    const char *const kind = kind_of(j, s->how, s->name);
    const char *const other = s->old && s->new ? kind_of(j, s->new, NEW) : kind;

    s->kind = kind ? kind : "default";
    if (s->old && !kind)
        config_json_refuse(j, OLD " has no rope_type  -> give a complete config");
    if (other != kind && strcmp(other ? other : "default", s->kind) != 0)
        config_json_refuse(j, OLD " is %.40s, " NEW " is %.40s  -> use one of them", s->kind,
                           other ? other : "default");
    if (!s->old || !s->new)
        return;
    const char *const odd =
        differs(s->old, s->new) ? differs(s->old, s->new) : differs(s->new, s->old);
    if (odd)
        config_json_refuse(j, OLD " and " NEW " have another %.40s  -> use one of them", odd);
}

/* A number that may stand in four places, and must be the same in all where it does: in both
 * objects, beside them, and beside them by the family's own name. The old object is no such place
 * for version 4, which then takes what is usual. */
static double agreed(struct config_json *j, const struct spellings *s, const char *key,
                     const char *own, double usual, double least, double most)
{
    const double beside = config_json_real(j, own, usual, least, most);
    const bool within = !s->old && json_object_get(s->new, key), said = config_json_at(j, own);
    const double x = within ? import_number_in(j, s->new, NEW, key, usual, least, most) : beside;
    const struct {
        const char *key, *of;
        double is;
    } places[] = {{own, "", said ? beside : x},
                  {key, "", config_json_real(j, key, x, least, most)},
                  {key, " of " OLD, import_number_in(j, s->old, OLD, key, x, least, most)},
                  {key, " of " NEW, import_number_in(j, s->new, NEW, key, x, least, most)}};

    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        if (places[i].is != x)
            import_refuse(j, "%s%s %g, %s%s %g%s  -> use one of them", places[i].key, places[i].of,
                          places[i].is, within ? key : own, within ? " of " NEW : "", x,
                          within || said ? "" : " where it is absent");
    return x;
}

/* ---- how frequencies are changed ---------------------------------------------------------- */

/* Numbers that a kind has; every kind may say how long the texts of its training were. */
#define ORIGINAL "original_max_position_embeddings"
enum { KIND_NUMBERS = 8 };
static const struct {
    const char *kind, *numbers[KIND_NUMBERS];
} kinds[] = {
    {"default", {ORIGINAL}},
    {"linear", {"factor", ORIGINAL}},
    {"dynamic", {"factor", ORIGINAL}},
    {"llama3", {"factor", "low_freq_factor", "high_freq_factor", ORIGINAL}},
    {"yarn",
     {"factor", ORIGINAL, "beta_fast", "beta_slow", "attention_factor", "mscale", "mscale_all_dim",
      "truncate"}},
    {"longrope", {"factor", ORIGINAL, "attention_factor", "short_factor", "long_factor"}},
};

/* What would be another change if it were read. */
static void refuse_rest(struct config_json *j, const struct rotary *r, const struct spellings *s,
                        size_t kind)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)s->how, key, value)
    {
        const bool scales = strcmp(key, "factor") == 0 || strcmp(key, "attention_factor") == 0;
        const bool one = json_is_number(value) && json_number_value(value) == 1;
        bool known = is_apart(key) || json_is_null(value) || (scales && one);
        for (int i = 0; i < KIND_NUMBERS && kinds[kind].numbers[i]; i++)
            known = known || strcmp(key, kinds[kind].numbers[i]) == 0;
        for (int i = 0; r->idle && r->idle[i]; i++)
            known = known || strcmp(key, r->idle[i]) == 0;
        if (json_is_object(value))
            import_refuse(j, "%s of \"%.40s\" alone: not supported  -> use the same in all layers",
                          s->name, key);
        if (!known)
            import_refuse(j, "%.40s of %s %s: not supported  -> use a rope_type that has it", key,
                          s->name, s->kind);
    }
}

/* A number that a kind must have. */
static double needed(struct config_json *j, const struct spellings *s, const char *key)
{
    enum { MOST = 1 << 24 };

    if (!json_object_get(s->how, key))
        import_refuse(j, "%s %s: %s is missing  -> give a complete config", s->name, s->kind, key);
    return import_number_in(j, s->how, s->name, key, 1, 1e-6, MOST);
}

/* Which length the texts of the training had: beside the object, version 5 prefers it. */
static double original(struct config_json *j, const struct spellings *s)
{
    const double x = needed(j, s, ORIGINAL);
    const double beside = config_json_real(j, ORIGINAL, x, 1, INT32_MAX);

    if (x != floor(x))
        config_json_refuse(j, ORIGINAL " %g of %s is not a whole number  -> use a published config",
                           x, s->name);
    if (beside != x)
        config_json_refuse(j, ORIGINAL " %g, %g of %s  -> use one of them", beside, x, s->name);
    return x;
}

/* A number that a kind may have: null and absent are the usual one. */
static double optional(struct config_json *j, const struct spellings *s, const char *key,
                       double usual, double least)
{
    enum { MOST = 1 << 20 };

    return json_is_null(json_object_get(s->how, key))
               ? usual
               : import_number_in(j, s->how, s->name, key, usual, least, MOST);
}

static void put_llama3(struct config_json *j, const struct spellings *s)
{
    const double low = needed(j, s, "low_freq_factor"), high = needed(j, s, "high_freq_factor");
    const double length = original(j, s);

    if (j->st == OK && high <= low)
        import_refuse(j, "high_freq_factor %g, low_freq_factor %g  -> give more", high, low);
    config_json_put(j, "rope_low", "%.9g", low);
    config_json_put(j, "rope_high", "%.9g", high);
    config_json_put(j, "rope_original", "%.0f", length);
}

/* Of cosines and sines, for contexts `factor` times as long, with a weight. */
static double lengthened(double factor, double weight) { return 0.1 * weight * log(factor) + 1; }

/* What cosines and sines are multiplied by: as said, or the quotient of two that are said by their
 * weights; 0 = by the factor. One weight alone says nothing. */
static double yarn_magnitude(struct config_json *j, const struct spellings *s, double factor)
{
    const double said = optional(j, s, "attention_factor", 0, 1e-6);
    const double over = optional(j, s, "mscale", 0, 0);
    const double under = optional(j, s, "mscale_all_dim", 0, 0);

    if (said > 0 || over == 0 || under == 0)
        return said;
    return lengthened(factor, over) / lengthened(factor, under);
}

static void put_yarn(struct config_json *j, const struct spellings *s, double factor)
{
    const double fast = optional(j, s, "beta_fast", 32, 1e-6);
    const double slow = optional(j, s, "beta_slow", 1, 1e-6);
    const json_t *const truncate = json_object_get(s->how, "truncate");
    const double length = original(j, s);

    if (j->st == OK && fast <= slow)
        import_refuse(j, "beta_fast %g, beta_slow %g of %s  -> give more turns to the fast ones",
                      fast, slow, s->name);
    if (truncate && !json_is_boolean(truncate))
        import_refuse(j, "truncate of %s %s that is not a flag  -> use true or false", s->name,
                      s->kind);
    config_json_put(j, "rope_truncate", "%d", !json_is_false(truncate));
    config_json_put(j, "rope_beta_fast", "%.9g", fast);
    config_json_put(j, "rope_beta_slow", "%.9g", slow);
    config_json_put(j, "rope_mscale", "%.9g", yarn_magnitude(j, s, factor));
    config_json_put(j, "rope_original", "%.0f", length);
}

/* Its name, of which a family may have older ones. */
static const char *todays_kind(const struct rotary *r, const char *kind)
{
    const bool older = strcmp(kind, "su") == 0 || strcmp(kind, "yarn") == 0;

    return r->longrope_alone && older ? "longrope" : kind;
}

static void put_longrope(struct config_json *j, const struct rotary *r, const struct spellings *s,
                         int dim)
{
    import_put_longrope(
        j, &(struct longrope){
               .how = s->how, .name = s->name, .pairs = dim / 2, .usual_original = r->original});
}

static void put_scaling(struct config_json *j, const struct rotary *r, const struct spellings *s,
                        int dim)
{
    const char *const name = todays_kind(r, s->kind);
    size_t kind = 0;

    while (kind < ARRAY_LEN(kinds) && strcmp(kinds[kind].kind, name) != 0)
        kind++;
    const bool other = kind > 0 && strcmp(name, "longrope") != 0;
    if (kind == ARRAY_LEN(kinds) || (r->longrope_alone && other)) {
        import_refuse(j, "%s %.40s: not supported  -> use none, %slongrope", s->name, s->kind,
                      r->longrope_alone ? "or " : "linear, dynamic, llama3, yarn or ");
        return;
    }
    refuse_rest(j, r, s, kind);
    config_json_at(j, ORIGINAL); /* alone it changes nothing */
    if (kind == 0)
        return;
    if (strcmp(name, "longrope") == 0) {
        put_longrope(j, r, s, dim);
        return;
    }
    const double factor = needed(j, s, "factor");
    if (factor < 1)
        import_refuse(j, "%s %s: factor %g  -> use 1 or more", s->name, s->kind, factor);
    config_json_put(j, "rope_scaling", "%s", s->kind);
    config_json_put(j, "rope_factor", "%.9g", factor);
    if (strcmp(s->kind, "dynamic") == 0) /* whatever ORIGINAL is */
        config_json_put(
            j, "rope_original", "%d",
            config_json_whole(j, "max_position_embeddings", j->usual_context, 1, INT32_MAX));
    else if (strcmp(s->kind, "llama3") == 0)
        put_llama3(j, s);
    else if (strcmp(s->kind, "yarn") == 0)
        put_yarn(j, s, factor);
}

/* ---- all ---------------------------------------------------------------------------------- */

/* Coordinates of a head that are rotated. */
static int rotated(struct config_json *j, const struct rotary *r, double share, int head)
{
    const int dim = (int)floor(head * share);

    if (r->whole && share != 1)
        import_refuse(j, "%s %g: a part of each head, not supported  -> use 1", r->share, share);
    if (dim < 2 || dim % 2)
        import_refuse(j, "%s %g: %d coordinates of %d%s  -> not supported", r->share, share, dim,
                      head, dim < 2 ? "" : " are an odd number");
    return dim;
}

double import_put_rotary(struct config_json *j, const struct rotary *family, int head)
{
    struct rotary own = *family, *const r = &own;
    struct spellings s;

    r->base = r->base ? r->base : BASE;
    r->share = r->share ? r->share : SHARE;
    r->usual_share = r->usual_share > 0 ? r->usual_share : 1;
    r->usual_base = r->usual_base > 0 ? r->usual_base : 10000;
    read_spellings(j, &s);
    const double base = agreed(j, &s, BASE, r->base, r->usual_base, MIN_BASE, MAX_BASE);
    const double share = agreed(j, &s, SHARE, r->share, r->usual_share, 0, 1);
    config_json_put(j, "scheme", "rope");
    config_json_put(j, "rope_base", "%.17g", base);
    const int dim = rotated(j, r, share, head);
    config_json_put(j, "rope_dim", "%d", dim);
    config_json_put(j, "rope_pairs", "half");
    put_scaling(j, r, &s, dim);
    return base;
}

/* ---- two kinds of layers ------------------------------------------------------------------ */

/* The base of one kind of layers: the newer spelling has an object for each. */
static double base_of(struct config_json *j, const json_t *all, const char *kind, const char *own,
                      double usual)
{
    const json_t *const of_kind = json_object_get(all, kind);
    const double beside = config_json_real(j, own, usual, MIN_BASE, MAX_BASE);
    const double x = import_number_in(j, of_kind, kind, BASE, beside, MIN_BASE, MAX_BASE);

    if (all && !json_is_object(of_kind))
        import_refuse(j, "" NEW " without %s  -> give a complete config", kind);
    if (x != beside && config_json_at(j, own))
        import_refuse(j, "%s %g, " BASE " of %s %g  -> use one of them", own, beside, kind, x);
    return x;
}

/* Those with a window are not scaled. */
static void refuse_scaled_windows(struct config_json *j, const json_t *all)
{
    static const char kind[] = "sliding_attention";
    const char *const how = kind_of(j, json_object_get(all, kind), kind);

    if (how && strcmp(how, "default") != 0)
        import_refuse(j, "rope_type %.40s of %s: not supported  -> use default", how, kind);
}

/* The older spelling says it of the layers that see all, too. */
static void put_scaling_of_full(struct config_json *j, const json_t *old, const json_t *all)
{
    static const struct rotary plain = {0};
    struct spellings s = {.old = old, .new = json_object_get(all, "full_attention")};

    s.how = s.old ? s.old : s.new;
    s.name = s.old ? OLD : "full_attention";
    const char *const kind = kind_of(j, s.how, s.name);
    const char *const other = s.old && s.new ? kind_of(j, s.new, "full_attention") : kind;
    s.kind = kind ? kind : "default";
    if (s.old && s.new && (strcmp(other ? other : "default", s.kind) != 0 || differs(s.old, s.new)))
        config_json_refuse(j, OLD " and full_attention of " NEW " differ  -> use one of them");
    if (strcmp(s.kind, "default") != 0 && strcmp(s.kind, "linear") != 0) {
        import_refuse(j, "%s %.40s of some layers: not supported  -> use none or linear", s.name,
                      s.kind);
        return;
    }
    put_scaling(j, &plain, &s, 0);
    if (strcmp(s.kind, "linear") == 0)
        config_json_put(j, "rope_scaled", "windowless");
}

void import_put_rotary_kinds(struct config_json *j, const struct rotary_kinds *r, const bool *full,
                             int head)
{
    const json_t *const old = object_at(j, OLD), *const all = object_at(j, NEW);

    refuse_scaled_windows(j, all);
    put_scaling_of_full(j, old, all);
    const double of_full = base_of(j, all, "full_attention", r->base, r->usual);
    const double of_window = base_of(j, all, "sliding_attention", r->window_base, r->usual_window);
    config_json_put(j, "scheme", "rope");
    config_json_put(j, "rope_base", "%.17g", of_full);
    import_put_by_layer(j, "layer_rope_base", full, of_window, of_full);
    config_json_put(j, "rope_dim", "%d", head);
    config_json_put(j, "rope_pairs", "half");
}
