/* SPDX-License-Identifier: MIT
 *
 * Intel, Software Developer's Manual 2, of instructions of 0F38.W0: VPDPBUSD of AVX-VNNI on 256 bits
 * (VEX.256.66); LDTILECFG, TILELOADD, TILESTORED, TILEZERO, TILERELEASE, TDPBF16PS and TDPBSUD of AMX
 * (VEX.128). Registers lie in the signal's frame as XSAVE stores them: the lower halves of ymm
 * in the legacy part, the upper ones in component 2. A thread has eight tiles of its own. */
#include "emulate_x86.h"

#include <cpuid.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

/* ---- operands: C4, ~R ~X ~B and the map, W ~vvvv L pp, the opcode, registers or an address --------- */

enum { PREFIX_NONE, PREFIX_66, PREFIX_F3, PREFIX_F2 }; /* pp */

struct vex {
    int pp, opcode, reg, vvvv, rm; /* rm: where there is no address */
    bool wide;                     /* L */
    bool in_memory;
    uint64_t base, index; /* address = base + index, scaled */
    const uint8_t *next;  /* instruction */
};

static uint64_t general(const ucontext_t *c, int i)
{
    static const int order[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                  REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                  REG_R12, REG_R13, REG_R14, REG_R15};

    return (uint64_t)c->uc_mcontext.gregs[order[i]];
}

static int64_t displacement(const uint8_t *p, int bytes)
{
    int8_t one;
    int32_t four;

    memcpy(&one, p, sizeof(one));
    memcpy(&four, p, sizeof(four));
    return bytes == 1 ? one : bytes == 4 ? four : 0;
}

static struct vex decode(const ucontext_t *c, const uint8_t *p)
{
    const uint8_t *const modrm = p + 4;
    const int r = p[1] & 0x80 ? 0 : 8, x = p[1] & 0x40 ? 0 : 8, b = p[1] & 0x20 ? 0 : 8;
    const int mod = *modrm >> 6, rm = *modrm & 7;
    struct vex v = {.pp = p[2] & 3,
                    .opcode = p[3],
                    .wide = p[2] & 4,
                    .reg = (*modrm >> 3 & 7) | r,
                    .vvvv = ~p[2] >> 3 & 15,
                    .rm = rm | b,
                    .in_memory = mod != 3,
                    .next = modrm + 1};
    if (!v.in_memory)
        return v;
    const bool has_index = rm == 4, relative = rm == 5 && mod == 0;
    const int scaled = modrm[1], base = has_index ? scaled & 7 : rm;
    const bool no_base = base == 5 && mod == 0;
    const int bytes = mod == 1 ? 1 : mod == 2 || no_base ? 4 : 0;
    const uint8_t *const disp = modrm + 1 + has_index;
    const int index = (scaled >> 3 & 7) | x;

    v.next = disp + bytes;
    v.base = (uint64_t)displacement(disp, bytes);
    if (has_index && index != 4)
        v.index = general(c, index) << (scaled >> 6);
    if (!no_base)
        v.base += general(c, base | b);
    if (relative)
        v.base += (uint64_t)(uintptr_t)v.next;
    return v;
}

/* ---- vpdpbusd -------------------------------------------------------------------------------------- */

enum { XMM_AT = 160, HEADER_AT = 512, PARTS_SSE = 2, PARTS_AVX = 4, HALF = 16 };

static unsigned upper_at, upper_size; /* of the upper halves in a frame */

/* Both halves of register i. An upper half that the frame leaves out is 0. */
static void halves(uint8_t *half[2], const ucontext_t *c, int i)
{
    uint8_t *const frame = (uint8_t *)c->uc_mcontext.fpregs;
    uint64_t parts;

    memcpy(&parts, frame + HEADER_AT, sizeof(parts));
    if (!(parts & PARTS_AVX))
        memset(frame + upper_at, 0, upper_size);
    if (!(parts & PARTS_SSE))
        memset(frame + XMM_AT, 0, (size_t)HALF * HALF);
    parts |= PARTS_SSE | PARTS_AVX;
    memcpy(frame + HEADER_AT, &parts, sizeof(parts));
    half[0] = frame + XMM_AT + i * HALF;
    half[1] = frame + upper_at + i * HALF;
}

/* reg += sums of four products of vvvv, unsigned, with rm, signed. */
static bool run_dot4(const struct vex *v, const ucontext_t *c)
{
    const uint8_t *const at = (const uint8_t *)(uintptr_t)(v->base + v->index);
    uint8_t *to[2], *first[2], *second[2];

    if (!v->wide || v->pp != PREFIX_66 || v->opcode != 0x50)
        return false;
    halves(to, c, v->reg);
    halves(first, c, v->vvvv);
    halves(second, c, v->rm);
    for (int h = 0; h < 2; h++) {
        int32_t sum[HALF / 4];
        int8_t by[HALF];
        memcpy(sum, to[h], HALF);
        memcpy(by, v->in_memory ? at + h * HALF : second[h], HALF);
        for (int i = 0; i < HALF; i++)
            sum[i / 4] += first[h][i] * by[i];
        memcpy(to[h], sum, HALF);
    }
    return true;
}

/* ---- tiles ----------------------------------------------------------------------------------------- */

enum { TILES = 8, ROWS = 16, BYTES = 64 };

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
    if (to == a || to == b || a == b)
        return false;
    return to->rows == a->rows && to->bytes == b->bytes && a->bytes == 4 * b->rows;
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

static bool run_tile(const struct vex *v)
{
    const int prefix = v->wide ? -1 : v->pp, opcode = v->opcode;
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

/* ---------------------------------------------------------------------------------------------------- */

static void on_illegal(int number, siginfo_t *info, void *context)
{
    ucontext_t *const c = context;
    const uint8_t *const p = (const uint8_t *)(uintptr_t)c->uc_mcontext.gregs[REG_RIP];
    const bool ours = p[0] == 0xc4 && (p[1] & 0x1f) == 2 && (p[2] & 0x80) == 0;
    const struct vex v = ours ? decode(c, p) : (struct vex){0};

    if (!ours || !(run_dot4(&v, c) || run_tile(&v)))
        signal(number, SIG_DFL); /* the instruction runs again, and ends the process */
    else
        c->uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)v.next;
}

void emulate_x86(void)
{
    struct sigaction by_hand = {.sa_sigaction = on_illegal, .sa_flags = SA_SIGINFO};
    unsigned flags, unused;

    __cpuid_count(0xd, 2, upper_size, upper_at, flags, unused);
    sigemptyset(&by_hand.sa_mask);
    sigaction(SIGILL, &by_hand, NULL);
}
