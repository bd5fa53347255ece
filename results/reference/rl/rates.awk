# SPDX-License-Identifier: MIT
# awk -F, -f rates.awk study.csv: of each contender at each rate, task by task, the mean return of the last
# validation over seeds, and how many seeds solve the task. Text fields before these have no commas.
NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
$at["role"] == "tune" && $at["status"] == "ok" {
    who = $at["corpus"] " | " $at["contender"]; lr = $at["lr"]
    if (!(who in seen)) { seen[who] = 1; order[++n] = who }
    if (!(lr in rates)) { rates[lr] = 1; rate[++m] = lr }
    sum[who, lr] += $at["valid_return"]; count[who, lr]++; solved[who, lr] += $at["solved"]
}
END {
    printf "| task | contender |"; for (k = 1; k <= m; k++) printf " %s |", rate[k]
    printf "\n|---|---|"; for (k = 1; k <= m; k++) printf "---:|"; printf "\n"
    for (i = 1; i <= n; i++) {
        printf "| %s |", order[i]
        for (k = 1; k <= m; k++) {
            c = count[order[i], rate[k]]
            if (c) printf " %.2f (%d/%d) |", sum[order[i], rate[k]] / c, solved[order[i], rate[k]], c
            else printf " not run |"
        }
        printf "\n"
    }
}
