FNR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
$(at["valid_nats"]) != "" { n[FILENAME]++; t[FILENAME, n[FILENAME]] = $(at["tokens"]); v[FILENAME, n[FILENAME]] = $(at["valid_nats"]) }
END {
    for (f in n) if (f ~ /adamw/) { goal += v[f, n[f]]; runs++ }
    goal /= runs
    for (f in n) if (f ~ /muon/) for (i = 2; i <= n[f]; i++) if (v[f, i - 1] > goal && v[f, i] <= goal) {
        share = (v[f, i - 1] - goal) / (v[f, i - 1] - v[f, i])
        printf "%s %.3f\n", f, (t[f, i - 1] + share * (t[f, i] - t[f, i - 1])) / t[f, n[f]]
        break
    }
}
