/* SPDX-License-Identifier: MIT
 *
 * numpad:n=2,len=T. A grid of n x n pads, which light up when they are pressed in a hidden order, a
 * path through all of them whose neighbours are neighbours on the grid (after Parisotto et al. 2020,
 * arXiv:1910.06764). The agent begins on pad 0 and presses a pad by stepping on it: stay, up, down,
 * left, right; a step off the grid stays. The pad that is next lights up and gives 1; any other puts
 * all lights out. After the last, all go out and it begins again, in the same order. It sees where it
 * stands and how many are lit. */
#include "task.h"

enum { SIDE, LEN };
enum { ORDER, PAD, LIT };
enum { PADS = 9, ORDERS = 64 }; /* at most; 3 x 3 has 40 */

struct orders {
    int n;
    uint8_t pad[ORDERS][PADS];
};

static int side(const struct task *t) { return task_int(t, SIDE); }
static int pads(const struct task *t) { return side(t) * side(t); }
static int length(const struct task *t) { return task_int(t, LEN); }

static int actions(const struct task *t) { return 5; }

static int symbols(const struct task *t) { return pads(t) * pads(t); }

/* Where an action leads from a pad. */
static int moved(int n, int pad, int action)
{
    static const int dx[] = {0, 0, 0, -1, 1}, dy[] = {0, -1, 1, 0, 0};
    const int x = pad % n + dx[action], y = pad / n + dy[action];

    return x < 0 || x >= n || y < 0 || y >= n ? pad : y * n + x;
}

/* All paths from `first`: tried[i] is the last action that was tried from pad i of the path. */
static void list_from(struct orders *o, int n, int first)
{
    uint8_t path[PADS] = {(uint8_t)first};
    int tried[PADS] = {0};
    unsigned used = 1u << first;

    for (int at = 0; at >= 0;) {
        if (at == n * n - 1) {
            CHECK(o->n < ORDERS);
            memcpy(o->pad[o->n++], path, sizeof(path));
        }
        if (at == n * n - 1 || tried[at] == 4) { /* back */
            used &= ~(1u << path[at]);
            tried[at--] = 0;
            continue;
        }
        const int to = moved(n, path[at], ++tried[at]);
        if (used >> to & 1u)
            continue;
        used |= 1u << to;
        path[++at] = (uint8_t)to;
    }
}

static void list_orders(struct orders *o, int n)
{
    o->n = 0;
    for (int first = 0; first < n * n; first++)
        list_from(o, n, first);
}

static int starts(const struct task *t)
{
    struct orders o;

    list_orders(&o, side(t));
    return o.n;
}

/* The order in digits, so that a step need not list all. */
static void begin(const struct task *t, struct episode *e, int start)
{
    struct orders o;
    int code = 0;

    list_orders(&o, side(t));
    for (int i = pads(t) - 1; i >= 0; i--)
        code = code * PADS + o.pad[start][i];
    e->v[ORDER] = code;
    e->v[PAD] = e->v[LIT] = 0;
}

static int observe(const struct task *t, const struct episode *e)
{
    return e->v[PAD] * pads(t) + e->v[LIT];
}

static int next_pad(const struct episode *e)
{
    int code = e->v[ORDER];

    for (int i = 0; i < e->v[LIT]; i++)
        code /= PADS;
    return code % PADS;
}

static double step(const struct task *t, struct episode *e, int action)
{
    const int to = moved(side(t), e->v[PAD], action);

    if (to == e->v[PAD])
        return 0;
    const bool right = to == next_pad(e);
    e->v[PAD] = to;
    e->v[LIT] = right ? (e->v[LIT] + 1) % pads(t) : 0;
    return right ? 1 : 0;
}

const struct task_kind task_numpad = {
    .name = "numpad",
    .about = "pads of an n x n grid in an order that only trial and error shows",
    .keys = {{"n", 2, 2, 3, false, NULL}, {"len", 50, 1, 200, false, NULL}},
    .length = length,
    .actions = actions,
    .symbols = symbols,
    .starts = starts,
    .begin = begin,
    .observe = observe,
    .step = step,
};
