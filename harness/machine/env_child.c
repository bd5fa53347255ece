/* SPDX-License-Identifier: MIT
 *
 * Variables that control the libraries' thread pools and kernels: which ones the user has set, and
 * an environment without them. They act before main, so a child must be started without them. */
#include "env.h"

struct prefix {
    const char *text;
    bool removed; /* the others are recorded only: our libraries do not read them */
};
static const struct prefix prefixes[] = {
    {"OMP_", true},  {"GOMP_", true}, {"KMP_", true},    {"OPENBLAS_", true},
    {"GOTO_", true}, {"DNNL_", true}, {"ONEDNN_", true}, {"MKL_", false},
};

/* NULL if the variable is none of these. */
static const struct prefix *prefix_of(const char *variable)
{
    for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
        if (strncmp(variable, prefixes[i].text, strlen(prefixes[i].text)) == 0)
            return &prefixes[i];
    return NULL;
}

/* The variable after `last` in byte order; NULL at the end. */
static const char *next_override(char *const *parent, const char *last)
{
    const char *best = NULL;

    for (; *parent; parent++)
        if (prefix_of(*parent) && (!last || strcmp(*parent, last) > 0) &&
            (!best || strcmp(*parent, best) < 0))
            best = *parent;
    return best;
}

void env_overrides(char *const *parent, char *buf, size_t size)
{
    size_t used = 0;

    CHECK(size >= 4);
    buf[0] = '\0';
    for (const char *v = NULL; (v = next_override(parent, v));) {
        used += (size_t)snprintf(buf + used, size - used, "%s%s", used ? ";" : "", v);
        if (used >= size) {
            memcpy(buf + size - 4, "...", 4);
            return;
        }
    }
}

void env_silence_libraries(void)
{
    static const char *const names[] = {"DNNL_VERBOSE", "ONEDNN_VERBOSE", "MKL_VERBOSE"};

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        unsetenv(names[i]);
}

/* The library expects upper case. */
static char *isa_variable(const char *isa)
{
    static const char name[] = "ONEDNN_MAX_CPU_ISA=";
    char *const text = need_text("%s%s", name, isa);

    for (char *c = text + strlen(name); *c; c++)
        *c = *c >= 'a' && *c <= 'z' ? (char)(*c - 'a' + 'A') : *c;
    return text;
}

/* Room for `more` and the end of the list. */
static char **room_for(char *const *environment, size_t more)
{
    size_t n = 0;

    while (environment[n])
        n++;
    return need_room(n + more + 1, sizeof(char *));
}

char **env_child_environment(char *const *parent, const char *openblas_core,
                             const char *onednn_max_isa)
{
    /* An idle sibling's threads must not spin into the next block. */
    static const char *const added[] = {"GOMP_SPINCOUNT=10000", "KMP_BLOCKTIME=1"};
    char **const env = room_for(parent, ARRAY_LEN(added) + 2);
    size_t n = 0;

    for (; *parent; parent++) {
        const struct prefix *const p = prefix_of(*parent);
        if (!p || !p->removed)
            env[n++] = need_text("%s", *parent);
    }
    for (size_t i = 0; i < ARRAY_LEN(added); i++)
        env[n++] = need_text("%s", added[i]);
    if (openblas_core)
        env[n++] = need_text("OPENBLAS_CORETYPE=%s", openblas_core);
    if (onednn_max_isa)
        env[n++] = isa_variable(onednn_max_isa);
    return env;
}

char **env_with(char *const *environment, char *variable)
{
    char **const copy = room_for(environment, 1);
    size_t n = 0;

    for (; environment[n]; n++)
        copy[n] = need_text("%s", environment[n]);
    copy[n] = variable;
    return copy;
}

char **env_padded(char *const *environment, int bytes)
{
    return env_with(environment, need_text("BENCH_PADDING=%0*d", bytes, 0));
}

void env_free(char **environment)
{
    if (!environment)
        return;
    for (char **v = environment; *v; v++)
        free(*v);
    free(environment);
}
