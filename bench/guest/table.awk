# The table of bench/guest.sh: LAB.csv GUEST.csv, both rows of disk,job,scheduler,client,start_ns,elapsed_ns,bytes,calls,...
# A cell's bandwidth is that of all clients together, but for a program that starts, of which the time counts.
function abs(x) { return x < 0 ? -x : x }
function off(lab, guest) { return guest == 0 ? (lab == 0 ? 0 : 999) : (lab / guest - 1) * 100 }
function sort(a, n,    i, j, t) {
    for (i = 2; i <= n; i++) { t = a[i]; for (j = i - 1; j > 0 && a[j] > t; j--) a[j + 1] = a[j]; a[j + 1] = t }
}
function summary(what, a, n,    i, within) {
    if (!n) return
    sort(a, n)
    for (i = 1; i <= n; i++) within += a[i] <= 5
    printf "%s: %d figures, median error %.1f %%, %.0f %% within 5 %%, worst %.0f %%\n", what, n, (a[int((n + 1) / 2)] + a[int(n / 2) + 1]) / 2,
        within / n * 100, a[n]
}
NR == FNR {
    cell = $1 "," $2 "," $3
    if ($4 == "app") lab_app[cell] = $6 / 1e6
    else if ($6 > 0) lab[cell] += $7 / $6 * 1e9 / 1048576
    known[cell] = 1
    next
}
{ cell = $1 "," $2 "," $3 }
!(cell in known) { next }
!(cell in number) { number[cell] = ++cells; name[cells] = cell }
$4 == "app" { app[cell] = $6 / 1e6; next }
$6 > 0 { guest[cell] += $7 / $6 * 1e9 / 1048576 }
END {
    print "| disk | job | scheduler | guest, MiB/s | lab | error, % | start-up: guest, ms | lab | error, % |"
    print "|---|---|---|---:|---:|---:|---:|---:|---:|"
    for (i = 1; i <= cells; i++) {
        cell = name[i]; split(cell, c, ",")
        e = off(lab[cell], guest[cell]); all[++n] = abs(e); per_sched[c[3], ++count[c[3]]] = abs(e); per_disk[c[1], ++disk_count[c[1]]] = abs(e)
        start = "| | | |"
        if (cell in app) {
            s = off(lab_app[cell], app[cell]); all[++n] = abs(s); per_sched[c[3], ++count[c[3]]] = abs(s); per_disk[c[1], ++disk_count[c[1]]] = abs(s)
            start = sprintf("| %.1f | %.1f | %+.1f |", app[cell], lab_app[cell], s)
        }
        printf "| %s | %s | %s | %.4g | %.4g | %+.1f %s\n", c[1], c[2], c[3], guest[cell], lab[cell], e, start
    }
    print ""
    for (d in disk_count) { split("", a); for (i = 1; i <= disk_count[d]; i++) a[i] = per_disk[d, i]; summary(d, a, disk_count[d]) }
    for (s in count) { split("", a); for (i = 1; i <= count[s]; i++) a[i] = per_sched[s, i]; summary(s, a, count[s]) }
    summary("all", all, n)
    if (!n) { print "no cell has both"; exit 3 * check }
    for (i = 1; i <= n; i++) good += all[i] <= 5
    exit check && !((all[int((n + 1) / 2)] + all[int(n / 2) + 1]) / 2 <= 2 && good >= 0.9 * n) * 3
}
