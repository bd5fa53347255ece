# SPDX-License-Identifier: MIT
# bench study FOLDER --format csv | awk -F, -f returns.awk: the table of returns, task by task, whose first
# contender is what the others are compared with.
NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
$at["corpus"] != task {
    task = $at["corpus"]
    printf "\n**%s**: actions at random %.3g, the best policy %.3g\n\n", task, $at["random"], $at["optimum"]
    printf "| contender | parameters | rate | return | 95 %% interval | seeds that solve it | gain over %s" \
        " | 95 %% interval | p (Holm) | verdict |\n", $at["contender"]
    print "|---|---:|---:|---:|---|---|---:|---|---:|---|"
}
{
    printf "| %s | %s | %s | %.3f | %.3f to %.3f | %s |", $at["contender"], $at["parameters"], $at["lr"],
        $at["return"], $at["return_low"], $at["return_high"], $at["solved"]
    if ($at["gain"] == "") print " | | | |"
    else printf " %+.3f | %+.3f to %+.3f | %s | %s |\n", $at["gain"], $at["ci95_low"], $at["ci95_high"], $at["p_holm"],
        $at["verdict"]
}
