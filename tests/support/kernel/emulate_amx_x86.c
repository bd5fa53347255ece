/* SPDX-License-Identifier: MIT
 *
 * Intel, Software Developer's Manual 2: LDTILECFG, TILELOADD, TILESTORED, TILEZERO, TILERELEASE,
 * TDPBF16PS and TDPBSUD, each VEX.128.0F38.W0. A thread has eight tiles of its own. */
#include "emulate_amx_x86.h"

#include "vex_x86.h"

#include <signal.h>

enum { TILES = 8, ROWS = 16, BYTES = 64, PREFIX_NONE = 0, PREFIX_F3 = 2, PREFIX_F2 = 3 };

struct tile {
    int rows, bytes;
    uint8_t at[ROWS][BYTES];
};
static _Thread_local struct tile tile[TILES];
static _Thread_local bool configured;

static float number_of(const uint8_t *bf16)
{
    uint16_t half;
    uint32_t bits;
    float x;

    memcpy(&half, bf16, sizeof(half));
    bits = (uint32_t)half << 16;
    if (!(half & 0x7f80)) /* denormals are zeros */
        bits &= 0x80000000;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

/* A step of a tile's sum: four bytes of a row of a, signed, with four of b, unsigned. */
static int32_t quads(const uint8_t *a, const uint8_t *b)
{
    int32_t sum = 0;

    for (int i = 0; i < 4; i++)
        sum += (int8_t)a[i] * b[i];
    return sum;
}

static bool fit(const struct tile *to, const struct tile *a, const struct tile *b)
{
    return to != a && to != b && a != b && to->rows == a->rows && to->bytes == b->bytes &&
           a->bytes == 4 * b->rows;
}

static void multiply_quads(struct tile *to, const struct tile *a, const struct tile *b)
{
    for (int m = 0; m < to->rows; m++)
        for (int n = 0; n < to->bytes; n += 4) {
            int32_t sum;
            memcpy(&sum, to->at[m] + n, sizeof(sum));
            for (int k = 0; k < b->rows; k++)
                sum += quads(a->at[m] + 4 * k, b->at[k] + n);
            memcpy(to->at[m] + n, &sum, sizeof(sum));
        }
}

/* to[m][n] += sum over k of a[m][2k] b[k][2n] + a[m][2k+1] b[k][2n+1], evens and odds apart. */
static void multiply_pairs(struct tile *to, const struct tile *a, const struct tile *b)
{
    for (int m = 0; m < to->rows; m++)
        for (int n = 0; n < to->bytes; n += 4) {
            float sum, even = 0, odd = 0;
            for (int k = 0; k < b->rows; k++) {
                even += number_of(a->at[m] + 4 * k) * number_of(b->at[k] + n);
                odd += number_of(a->at[m] + 4 * k + 2) * number_of(b->at[k] + n + 2);
            }
            memcpy(&sum, to->at[m] + n, sizeof(sum));
            sum += even + odd;
            memcpy(to->at[m] + n, &sum, sizeof(sum));
        }
}

/* Palette 1: rows and bytes of each tile. */
static bool configure(const uint8_t *from)
{
    uint16_t bytes[TILES];

    memcpy(bytes, from + 16, sizeof(bytes));
    if (from[0] != 1)
        return false;
    for (int i = 0; i < TILES; i++) {
        if (from[48 + i] > ROWS || bytes[i] > BYTES)
            return false;
        tile[i] = (struct tile){.rows = from[48 + i], .bytes = bytes[i]};
    }
    return configured = true;
}

/* Rows between a tile and memory. */
static void move_rows(struct tile *t, const struct vex *v, bool load)
{
    for (int r = 0; r < t->rows; r++) {
        uint8_t *const row = (uint8_t *)(uintptr_t)(v->base + (uint64_t)r * v->index);
        memcpy(load ? t->at[r] : row, load ? row : t->at[r], (size_t)t->bytes);
    }
}

static bool execute(const struct vex *v, int prefix, int opcode)
{
    struct tile *const t = &tile[v->reg & (TILES - 1)];
    const struct tile *const a = &tile[v->rm & (TILES - 1)], *const b =
                                                                 &tile[v->vvvv & (TILES - 1)];

    if (opcode == 0x49 && prefix == PREFIX_NONE && v->in_memory)
        return configure((const uint8_t *)(uintptr_t)(v->base + v->index));
    if (opcode == 0x49 && prefix == PREFIX_NONE)
        return !(configured = false);
    if (!configured || t->rows == 0)
        return false;
    if (opcode == 0x49 && prefix == PREFIX_F2)
        memset(t->at, 0, sizeof(t->at));
    else if (opcode == 0x4b && (prefix == PREFIX_F2 || prefix == PREFIX_F3))
        move_rows(t, v, prefix == PREFIX_F2);
    else if (opcode == 0x5c && prefix == PREFIX_F3 && fit(t, a, b))
        multiply_pairs(t, a, b);
    else if (opcode == 0x5e && prefix == PREFIX_F3 && fit(t, a, b))
        multiply_quads(t, a, b);
    else
        return false;
    return true;
}

static void on_illegal(int number, siginfo_t *info, void *context)
{
    ucontext_t *const c = context;
    const uint8_t *const p = (const uint8_t *)(uintptr_t)c->uc_mcontext.gregs[REG_RIP];
    const bool ours = p[0] == 0xc4 && (p[1] & 0x1f) == 2 && (p[2] & 0x84) == 0;
    const struct vex v = ours ? vex_decode(c, p) : (struct vex){0};

    if (!ours || !execute(&v, p[2] & 3, p[3]))
        signal(number, SIG_DFL); /* the instruction runs again, and ends the process */
    else
        c->uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)v.next;
}

void emulate_amx(void)
{
    struct sigaction by_hand = {.sa_sigaction = on_illegal, .sa_flags = SA_SIGINFO};

    sigemptyset(&by_hand.sa_mask);
    sigaction(SIGILL, &by_hand, NULL);
}
