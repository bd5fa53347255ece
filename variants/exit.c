/* SPDX-License-Identifier: MIT
 *
 * Early exit: after each layer a position looks at what the output would say, and stops when that
 * is certain enough, or has not changed for two layers, or has two votes (rules and papers:
 * model/lm/exit.h). Its state
 * is copied to the layers above, which attend to it. In training every layer has a loss. Norms come
 * first; positions are ALiBi's. */
#include "variants/parts/parts.h"

#define EXIT_PARTS .pos = &pos_alibi, .wiring = WIRING_PRE

const struct variant variant_exit = {
    .name = "exit",
    .paper = "Xin et al. 2020, arXiv:2004.12993",
    .about = "a position stops after the layer whose prediction is certain",
    .control = "alibi --norm pre",
    EXIT_PARTS,
    .exit = EXIT_ENTROPY,
};

const struct variant variant_exit_patience = {
    .name = "exit-patience",
    .paper = "Zhou et al. 2020, arXiv:2006.04152",
    .about = "a position stops when its prediction stays the same for two layers",
    .control = "alibi --norm pre",
    EXIT_PARTS,
    .exit = EXIT_PATIENCE,
};

const struct variant variant_exit_votes = {
    .name = "exit-votes",
    .paper = "Sun et al. 2021, arXiv:2105.13792",
    .about = "a position stops when two layers have voted for the same token",
    .control = "alibi --norm pre",
    EXIT_PARTS,
    .exit = EXIT_VOTES,
};

const struct variant variant_exit_window = {
    .name = "exit-window",
    .paper = "Li et al. 2021, arXiv:2105.13878",
    .about = "a position stops when it and those before it are certain",
    .control = "alibi --norm pre",
    EXIT_PARTS,
    .exit = EXIT_WINDOW,
};
