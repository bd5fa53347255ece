/* SPDX-License-Identifier: MIT
 *
 * Members of a struct that have the names of variables, or of members of another:
 * MEMBERS(o->, rows, n) is .rows = o->rows, .n = o->n; with nothing before the comma .rows = rows. */
#pragma once

#define MEMBERS(x, ...)                                                                            \
    MEMBERS_N(__VA_ARGS__, MEMBERS_8, MEMBERS_7, MEMBERS_6, MEMBERS_5, MEMBERS_4, MEMBERS_3,       \
              MEMBERS_2, )                                                                         \
    (x, __VA_ARGS__)
#define MEMBERS_N(a, b, c, d, e, f, g, h, n, ...) n
#define MEMBERS_2(x, a, b) .a = x a, .b = x b
#define MEMBERS_3(x, a, ...) .a = x a, MEMBERS_2(x, __VA_ARGS__)
#define MEMBERS_4(x, a, ...) .a = x a, MEMBERS_3(x, __VA_ARGS__)
#define MEMBERS_5(x, a, ...) .a = x a, MEMBERS_4(x, __VA_ARGS__)
#define MEMBERS_6(x, a, ...) .a = x a, MEMBERS_5(x, __VA_ARGS__)
#define MEMBERS_7(x, a, ...) .a = x a, MEMBERS_6(x, __VA_ARGS__)
#define MEMBERS_8(x, a, ...) .a = x a, MEMBERS_7(x, __VA_ARGS__)
